"""`webgpu-py doctor`: go the whole way once, and say what is missing and how to get it."""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from importlib import metadata
from typing import Any

from webgpu_py.diagnosis import ADVICE, Report
from webgpu_py.errors import NoAdapter, NoWebGPU, WebGPUPyError, error_of_code
from webgpu_py.host.browser import Settings
from webgpu_py.host.browser_thread import BrowserThread
from webgpu_py.host.cli import add_adapter_argument, browser_settings
from webgpu_py.host.probe import probe
from webgpu_py.host.runner import BrowserRunner


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
        "page": _page,
    }
    report["advice"] = []
    problem: WebGPUPyError | None = None
    for name, check in checks.items():
        try:
            report[name] = check(settings)
        except WebGPUPyError as error:
            problem = error
            # Where no browser starts, the message itself says how to get one.
            told = {} if name == "browser" else ADVICE
            report["advice"] = [told.get(error.code, str(error))]
            break
    if problem is None:
        page = report["page"]
        report["advice"] = page["advice"]
        if page["problem"]:
            problem = error_of_code(page["problem"]["code"], page["problem"]["message"])
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
        raise kind("navigator.gpu is missing" if kind is NoWebGPU else "requestAdapter gives null")
    adapter: dict[str, Any] = found["adapter"]
    return adapter


def _page(settings: Settings) -> dict[str, Any]:
    started = time.perf_counter()
    with BrowserRunner(settings) as runner:
        booted = time.perf_counter()
        found: dict[str, Any] = runner.call("webgpu_py.diagnosis:doctor_entry", {})
    return {"python_starts_in_s": round(booted - started, 1), **found}


def _text(report: dict[str, Any]) -> str:
    lines = [f"webgpu-py {report['version']}, Python {report['python']}, {report['platform']}"]
    if "browser" in report:
        lines.append(f"chromium   {report['browser']['version']}  {report['browser']['path']}")
    problem = report.get("problem")
    page = report.get("page", {"facts": {}})
    if "python_starts_in_s" in page:
        lines.append(f"boot       {page['python_starts_in_s']} s")
    lines.append(str(Report(page["facts"], problem, report["advice"])))
    return "\n".join(lines)
