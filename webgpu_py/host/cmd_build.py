"""`webgpu-py build OUT`: the page as a static folder, with or without a model in it."""

from __future__ import annotations

import argparse
from pathlib import Path

from webgpu_py.host.cli import add_adapter_argument, browser_settings
from webgpu_py.host.demo_model import ensure_demo_model
from webgpu_py.host.fetch import say
from webgpu_py.host.site import Site, build_site
from webgpu_py.host.site_check import visit

GROUPS = {"app-": "page and worker", "python-": "Python", "model-": "model"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "out", metavar="OUT", type=Path, help="a new, empty or earlier built folder"
    )
    parser.add_argument(
        "--model",
        metavar="M",
        help="a .gguf or .pte file, a model's folder, a URL that the page loads from, or 'demo'; "
        "without one the page asks for a file",
    )
    parser.add_argument(
        "--pyodide",
        choices=("cdn", "bundled"),
        default="bundled",
        help="where Python comes from: files in the folder (default) or the public CDN",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="open the result in headless Chromium and print the time until it is ready",
    )
    add_adapter_argument(parser)


def main(options: argparse.Namespace) -> int:
    """Build and print what it weighs, and on demand how soon it is ready."""
    site = build_site(options.out, _model(options.model), bundled=options.pyodide == "bundled")
    for line in report(site):
        print(line)
    if options.check:
        seen = visit(site.folder, browser_settings(options))
        on = f"{seen.browser}, {seen.adapter}" if seen.adapter else seen.browser
        print(f"{seen.seconds:>13.1f} s      until ready on loopback ({on})")
        print(f"{len(seen.outside):>13} requests to other servers")
    say(f"to look at it: python3 -m http.server --bind 127.0.0.1 -d {site.folder}")
    return 0


def report(site: Site) -> list[str]:
    """Sizes by group, in the units of a download, and the sum."""
    rows = [(purpose, site.nbytes(top)) for top, purpose in GROUPS.items()]
    rows = [(purpose, nbytes) for purpose, nbytes in rows if nbytes]
    rows.append((f"{len(site.files)} files in {site.folder}", site.nbytes()))
    return [f"{nbytes:>13,} bytes  {purpose}" for purpose, nbytes in rows]


def _model(given: str | None) -> Path | str | None:
    if given == "demo":
        return ensure_demo_model()
    return given if given is None or "://" in given else Path(given)
