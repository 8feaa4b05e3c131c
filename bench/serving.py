"""What the bench page is served from, by the runner or packed into a folder."""

from __future__ import annotations

from pathlib import Path

from bench.peers import ensure_peers
from webgpu_py.assets import asset_path
from webgpu_py.host.mounts import development_mounts

PAGE = Path(__file__).resolve().parent / "page"


def site_mounts(peers: bool = True, wheels: Path | None = None) -> dict[str, Path]:
    """URL prefix -> folder or file: the page at /, and what it loads beside it.

    `peers` fetches the other libraries where they are missing; the page does without them.
    `wheels` is where this package is packed, by default `.cache/wheel`.
    """
    served = development_mounts(wheels)
    kept = {prefix: path for prefix, path in served.items() if prefix != "/"}
    beside = {"/peers/": ensure_peers()} if peers else {}
    return {**kept, **beside, "/": PAGE, "/web/": asset_path("web")}
