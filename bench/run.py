"""Measure this package and its peers in one browser session: `python -m bench.run --suite kernels`.

Rows come as they are measured; the whole goes to `bench/results/<date>-<adapter>.json`, or where
`--out` says. `--only` takes globs of case names, `--quick` one round of few samples.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import sys
import threading
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from bench.results import RESULTS, SUITES, file_name
from bench.serving import site_mounts
from bench.site import CASE, site_row
from webgpu_py.host.browser import Settings, has_gpu
from webgpu_py.host.browser_thread import BrowserThread
from webgpu_py.host.fetch import say
from webgpu_py.host.server import Server

# Chromium rounds timestamps to 100 us unless told otherwise.
FLAGS = ("--disable-dawn-features=timestamp_quantization",)
# Dawn withholds shader-f16 from NVIDIA's Vulkan driver unless told otherwise.
F16_FLAG = "--enable-dawn-features=vulkan_enable_f16_on_nvidia"
# Without isolation performance.now steps by 100 us; with it, by 5.
HEADERS = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
}


def machine_name() -> str:
    """The processor and its cores, as a person would name the machine."""
    name = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        found = re.search(r"^model name\s*:\s*(.+)$", cpuinfo.read_text(), re.M)
        name = found.group(1) if found else name
    return f"{name}, {os.cpu_count()} cores"


def measure(settings: Settings, query: dict[str, str], timeout_s: float) -> dict[str, Any]:
    """Open the page, wait for its result, and return it; rows are told as they come.

    Raises:
        RuntimeError: the page failed, or nothing came within the time.
    """
    done = threading.Event()
    found: dict[str, Any] = {}

    def told(path: str, body: bytes) -> None:
        if path == "/__log":
            say(body.decode())
        if path == "/__result":
            found.update(json.loads(body))
            done.set()

    headers = dict(HEADERS)
    with (
        Server(site_mounts(), headers=headers, sinks={"/__": told}) as server,
        BrowserThread(settings) as thread,
    ):
        page = thread.new_page()

        async def open_page() -> None:
            page.on("pageerror", lambda e: say(f"page: {e}"))
            page.on("console", lambda m: say(f"page: {m.text}") if m.type == "error" else None)
            await page.goto(f"{server.url}/index.html?{urlencode(query)}")

        thread.call(open_page)
        if not done.wait(timeout_s):
            raise RuntimeError(f"the page gave no result within {timeout_s:.0f} s")
        assert thread.browser is not None
        version = thread.browser.version
    if "error" in found:
        raise RuntimeError(f"the page failed: {found['error']}")
    # Pages are told a shortened version.
    found["versions"]["browser"] = f"Chromium {version}"
    return found


def merged(path: Path, result: dict[str, Any]) -> dict[str, Any]:
    """`result` with the rows of an earlier run of the same day that it does not replace."""
    if not path.is_file():
        return result
    before = json.loads(path.read_text())
    new = {(r["suite"], r["case"]) for r in result["rows"]}
    kept = [r for r in before["rows"] if (r["suite"], r["case"]) not in new]
    done = {r["case"] for r in [*kept, *result["rows"]]}
    waiting = [*before["left_out"], *result["left_out"]]
    return {
        **result,
        "versions": {**before["versions"], **result["versions"]},
        "rows": [*kept, *result["rows"]],
        "left_out": sorted({case for case in waiting if case not in done}),
    }


def main(arguments: list[str] | None = None) -> int:
    """Run suites; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.run", description=__doc__)
    parser.add_argument("--suite", action="append", choices=SUITES, help="default: all")
    parser.add_argument("--only", default="*", metavar="GLOB[,GLOB]")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--adapter", choices=("auto", "software", "hardware"), default="auto")
    parser.add_argument("--f16", action="store_true", help="shader-f16 on NVIDIA under Linux too")
    parser.add_argument("--machine", default=machine_name())
    parser.add_argument("--seconds", type=float, help="begin no case after so long")
    parser.add_argument("--timeout", type=float, default=3600.0, metavar="SECONDS")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args(arguments)
    adapter = given.adapter
    if adapter == "auto":
        adapter = "hardware" if has_gpu() else "software"
    if given.f16 and adapter != "hardware":
        parser.error("--f16 is for a hardware adapter; the software adapter has no shader-f16")
    flags = (*FLAGS, F16_FLAG) if given.f16 else FLAGS
    settings = replace(Settings(), adapter=adapter, extra_flags=flags)
    query = {"machine": given.machine, "only": given.only}
    query["date"] = datetime.date.today().isoformat()
    if given.suite:
        query["suite"] = ",".join(given.suite)
    if given.seconds:
        query["seconds"] = str(given.seconds)
    if given.quick:
        query["quick"] = "1"
    suites = given.suite or SUITES
    wanted = "overhead" in suites and any(fnmatch(CASE, g) for g in given.only.split(","))
    site = [site_row(settings)] if wanted else []
    result = measure(settings, query, given.timeout)
    result["rows"] += site
    path = given.out or RESULTS / file_name(result)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(merged(path, result), indent=1) + "\n")
    say(f"{len(result['rows'])} rows in {path}")
    if result["left_out"]:
        say(f"left out for want of time: {','.join(result['left_out'])}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
