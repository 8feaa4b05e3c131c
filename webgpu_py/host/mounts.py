"""What a development server serves: the pages, Pyodide, the JavaScript half and this package."""

from __future__ import annotations

from pathlib import Path

from webgpu_py.assets import asset_path
from webgpu_py.host.paths import cache_dir
from webgpu_py.host.pyodide_files import ensure_pyodide
from webgpu_py.host.wheel import build_wheel

WHEEL_URL = "/wheel/webgpu_py.whl"


def development_mounts(wheels: Path | None = None) -> dict[str, Path]:
    """URL prefix -> folder or file, after fetching Pyodide if needed and packing the package.

    `wheels` is where the wheel is packed, by default `.cache/wheel`.
    """
    wheel = build_wheel(wheels or cache_dir() / "wheel")
    return {
        "/": asset_path("web"),
        "/js/": asset_path("js"),
        "/pyodide/": ensure_pyodide(),
        "/wheel/": wheel.path.parent,
        WHEEL_URL: wheel.path,
        "/models/": cache_dir() / "models",
    }


def fresh_wheel() -> bytes:
    """The package packed as it is now: a server that asks at every request serves every edit."""
    return build_wheel(cache_dir() / "wheel").path.read_bytes()
