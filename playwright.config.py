"""What the browser tests run with: the project's settings, or what you override here.

For a GPU of your own: `replace(Settings(), adapter="hardware")`; for another browser:
`replace(Settings(), executable=Path("/path/to/chrome"))`.
"""

from webgpu_py.host.browser import Settings

settings = Settings()
