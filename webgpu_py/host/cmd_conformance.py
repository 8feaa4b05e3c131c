"""`webgpu-py conformance DIR`: run every case below a folder and report a line each."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

from webgpu_py.commands import shared_device
from webgpu_py.conformance import CaseResult, run_case
from webgpu_py.errors import WebGPUPyError
from webgpu_py.host.browser import Settings
from webgpu_py.host.cli import add_device_arguments, browser_settings
from webgpu_py.host.fetch import say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_device_arguments(parser)
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results here")
    parser.add_argument("--only", metavar="GLOB", help="cases whose op/case matches")
    parser.add_argument("--allow-missing", action="store_true")


def main(args: argparse.Namespace) -> int:
    """Exit status: 0 when cases ran, and none failed, erred or (unless allowed) was missing."""
    cases = [
        manifest.parent
        for manifest in sorted(args.folder.rglob("manifest.json"))
        if not args.only or fnmatch(_name(manifest), args.only)
    ]
    if not cases:
        wanted = f" that matches {args.only}" if args.only else ""
        say(f"{args.folder}: no case{wanted}; a case is a folder with a manifest.json")
    results = []
    for result in _results(cases, args):
        results.append(result)
        print(result.line(), flush=True)
    if args.json:
        args.json.write_text(json.dumps([r.as_dict() for r in results], indent=1))
    n = Counter(r.status for r in results)
    print(
        f"conformance: {n['PASS']} passed, {n['FAIL']} failed, {n['ERROR']} errors, "
        f"{n['MISSING']} missing"
    )
    bad = n["FAIL"] + n["ERROR"] + (0 if args.allow_missing else n["MISSING"])
    return 1 if bad or not results else 0


def _name(manifest: Path) -> str:
    facts = json.loads(manifest.read_text())
    return f"{facts['op']}/{facts['case']}"


def _results(cases: list[Path], args: argparse.Namespace) -> Iterator[CaseResult]:
    if args.device == "browser":
        yield from _in_browser(cases, browser_settings(args))
        return
    with asyncio.Runner() as loop:
        for case in cases:
            yield loop.run(_on_host(case, args.device))


async def _on_host(case: Path, kind: str) -> CaseResult:
    async def read(name: str) -> bytes:
        return (case / name).read_bytes()

    external = [p.name for p in case.glob("*.ptd")]
    return await run_case(read, await shared_device(kind), external)


def _in_browser(cases: list[Path], settings: Settings) -> Iterator[CaseResult]:
    from webgpu_py.host.runner import BrowserRunner

    with BrowserRunner(settings) as runner:
        for case in cases:
            files = {p.name: p for p in case.iterdir() if p.is_file()}
            try:
                found = runner.call("webgpu_py.commands:conformance_entry", {"files": files})
                yield CaseResult(**found)
            except WebGPUPyError as error:
                op, name = _name(case / "manifest.json").split("/", 1)
                yield CaseResult(op, name, "ERROR", message=f"{error.code}: {error}")
