pytest_plugins = ["webgpu_py.testing"]
