"""Measure this package and its peers in one browser session: `python -m bench.run --suite kernels`.

Rows come as they are measured; after each suite, which has a page of its own, the whole goes to
`bench/results/<date>-<adapter>.json`, or where `--out` says. `--only` takes globs of case names,
`--quick` one round of few samples. A suite begins no case after its time, and names those left out.
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
from webgpu_py.errors import WebGPUPyError
from webgpu_py.host.browser import Settings, has_gpu
from webgpu_py.host.browser_thread import BrowserThread
from webgpu_py.host.fetch import say
from webgpu_py.host.server import Server

# After so many seconds a suite begins no further case, to keep to 25 minutes. Kernels come last, as
# any of their cases can be left out. A model of 1B parameters is for a GPU.
SECONDS = {"overhead": 120.0, "model": 240.0, "llama1b": 300.0, "kernels": 720.0}
SOFTWARE_SECONDS = {**SECONDS, "llama1b": 0.0}
LONGEST_CASE_S = 300.0
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

    def failed(reason: str) -> None:
        found["error"] = reason
        done.set()

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
            page.on("crash", lambda _: failed("its process ended; was there memory enough?"))
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
    # The kernels' shares are of the limits that were measured beside them.
    limits = result if any(r["suite"] == "kernels" for r in result["rows"]) else before
    return {
        **result,
        "limits": limits["limits"],
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
    parser.add_argument("--seconds", type=float, help="of each suite; by default as SECONDS says")
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
    if given.quick:
        query["quick"] = "1"
    times = SECONDS if adapter == "hardware" else SOFTWARE_SECONDS
    status = 0
    for suite in given.suite or times:
        seconds = times[suite] if given.seconds is None else given.seconds
        asked = {**query, "suite": suite, "seconds": str(seconds)}
        try:
            result = measure(settings, asked, seconds + LONGEST_CASE_S)
            if suite == "overhead" and any(fnmatch(CASE, g) for g in given.only.split(",")):
                result["rows"].append(site_row(settings))
        except (RuntimeError, WebGPUPyError) as error:
            say(f"{suite}: not measured: {error}")
            status = 1
            continue
        _keep(given.out or RESULTS / file_name(result), result, suite)
    return status


def _keep(path: Path, result: dict[str, Any], suite: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(merged(path, result), indent=1) + "\n")
    say(f"{suite}: {len(result['rows'])} rows in {path}")
    if result["left_out"]:
        say(f"left out for want of time: {','.join(result['left_out'])}")


if __name__ == "__main__":
    sys.exit(main())
