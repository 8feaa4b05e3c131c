"""What the built page weighs, and how long its first visitor waits for it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from webgpu_py.host.browser import Settings
from webgpu_py.host.demo_model import ensure_demo_model
from webgpu_py.host.site import build_site
from webgpu_py.host.site_check import visit

CASE = "site/smollm2/ready"


def site_row(settings: Settings) -> dict[str, Any]:
    """A row of the suite `overhead`: `build --model demo`, opened with an empty cache."""
    with tempfile.TemporaryDirectory() as scratch:
        site = build_site(Path(scratch) / "site", ensure_demo_model(), bundled=True)
        seen = visit(site.folder, settings)
    if seen.outside:
        raise RuntimeError(f"a bundled site asked other servers: {', '.join(seen.outside)}")
    return {
        "suite": "overhead",
        "case": CASE,
        "ours": "webgpu_py",
        "ours_ms": round(1000 * seen.seconds, 1),
        "peer": None,
        "peer_version": None,
        "peer_ms": None,
        "ratio": None,
        "share_of_limit": None,
        "nbytes": site.nbytes(),
        "model_nbytes": site.nbytes("model-"),
    }
