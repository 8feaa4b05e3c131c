"""Where downloads and build results live: the checkout's `.cache`, else the user's cache folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def checkout() -> Path | None:
    """The repository root when the package is imported from a checkout, else None."""
    root = Path(__file__).resolve().parents[2]
    return root if (root / "pyproject.toml").is_file() and (root / "wgsl").is_dir() else None


def cache_dir() -> Path:
    """The folder for Pyodide, models and built wheels; made when missing."""
    root = checkout()
    folder = root / ".cache" if root else _user_cache() / "webgpu-py"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _user_cache() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
