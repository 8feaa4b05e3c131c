"""`webgpu-py doctor`: go the whole way once, and say what is missing and how to get it."""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from importlib import metadata
from typing import Any

from webgpu_py.errors import NoAdapter, NoWebGPU, WebGPUPyError
from webgpu_py.host.browser import Settings
from webgpu_py.host.browser_thread import BrowserThread
from webgpu_py.host.cli import add_adapter_argument, browser_settings
from webgpu_py.host.probe import probe
from webgpu_py.host.runner import BrowserRunner

ADVICE = {
    "NoWebGPU": "this browser has no WebGPU; use Chrome or Chromium 113 or newer",
    "NoAdapter": (
        "the browser offers no adapter; update the GPU driver and its Vulkan part, "
        "or try --adapter software"
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    add_adapter_argument(parser)


def main(options: argparse.Namespace) -> int:
    """Check each part in turn and stop at the first that fails; 0 when all is usable."""
    settings = browser_settings(options)
    report: dict[str, Any] = {
        "version": metadata.version("webgpu-py"),
        "python": platform.python_version(),
        "platform": platform.platform(),
    }
    checks: dict[str, Callable[[Settings], Any]] = {
        "browser": _browser,
        "adapter": _adapter,
        "device": _device,
    }
    problem: WebGPUPyError | None = None
    for name, check in checks.items():
        try:
            report[name] = check(settings)
        except WebGPUPyError as error:
            problem = error
            break
    report["ok"] = problem is None
    if problem is not None:
        report["problem"] = {"code": problem.code, "message": str(problem)}
    print(json.dumps(report, indent=2) if options.json else _text(report))
    return 0 if problem is None else 1


def _browser(settings: Settings) -> dict[str, Any]:
    with BrowserThread(settings) as thread:
        assert thread.browser is not None
        return {"path": str(thread.executable), "version": thread.browser.version}


def _adapter(settings: Settings) -> dict[str, Any]:
    with BrowserThread(settings) as thread:
        found = probe(thread)
    if found["adapter"] is None:
        kind = NoWebGPU if found["reason"] == "NoWebGPU" else NoAdapter
        raise kind(ADVICE[kind.code])
    adapter: dict[str, Any] = found["adapter"]
    return adapter


def _device(settings: Settings) -> dict[str, Any]:
    started = time.perf_counter()
    with BrowserRunner(settings) as runner:
        booted = time.perf_counter()
        opened: dict[str, Any] = runner.call("webgpu_py.entry:describe_device", {})
    return {"python_starts_in_s": round(booted - started, 1), **opened}


def _text(report: dict[str, Any]) -> str:
    lines = [f"webgpu-py {report['version']}, Python {report['python']}, {report['platform']}"]
    if "browser" in report:
        lines.append(f"browser   {report['browser']['version']}  {report['browser']['path']}")
    if "adapter" in report:
        adapter = report["adapter"]
        name = [adapter[k] for k in ("vendor", "architecture", "device", "description")]
        lines.append(f"adapter   {' '.join(filter(None, name))}")
        lines.append(f"features  {', '.join(adapter['features']) or 'none'}")
        lines += [f"limit     {k} = {v}" for k, v in adapter["limits"].items() if "ompute" in k]
    if "device" in report:
        lines.append(f"device    opened from Python in a worker: {report['device']['info']}")
        lines.append(f"boot      {report['device']['python_starts_in_s']} s")
        if report["device"]["info"].get("software"):
            lines.append("note      a software adapter: right, but slow; no GPU was offered")
    if report["ok"]:
        lines.append("usable    yes")
    else:
        lines.append(f"usable    no [{report['problem']['code']}]: {report['problem']['message']}")
    return "\n".join(lines)
