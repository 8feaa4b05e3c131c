"""What the bench page is served from, by the runner or packed into a folder."""

from __future__ import annotations

from pathlib import Path

from bench.peers import ensure_peers
from webgpu_py.assets import asset_path
from webgpu_py.host.mounts import development_mounts

PAGE = Path(__file__).resolve().parent / "page"


def site_mounts() -> dict[str, Path]:
    """URL prefix -> folder or file; Pyodide under /pyodide/, the rest beside the page."""
    served = development_mounts()
    kept = {prefix: path for prefix, path in served.items() if prefix != "/"}
    peers = {"/peers/": ensure_peers()}
    return {**kept, **peers, "/": PAGE, "/web/": asset_path("web")}
