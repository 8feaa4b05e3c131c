"""`make demo`: a real model in headless Chromium, checked, asked, and photographed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from webgpu_py.errors import WebGPUPyError
from webgpu_py.host.browser import Settings
from webgpu_py.host.cmd_generate import LLM_PACKAGES
from webgpu_py.host.demo_model import ensure_demo_model
from webgpu_py.host.fetch import say
from webgpu_py.host.runner import BrowserRunner

PROMPT = "The capital of France is"


def main() -> int:
    """Check the first layer, print what came of it; exit status 0 when the numbers are right."""
    model = ensure_demo_model()
    with BrowserRunner(Settings(adapter="hardware"), packages=LLM_PACKAGES) as runner:
        found = runner.call(
            "webgpu_py.commands:first_layer_entry", {"model": model, "prompt": PROMPT}, _progress
        )
    report(found, model)
    return 0


def _progress(event: dict[str, Any]) -> None:
    say(event["stage"])


def report(found: dict[str, Any], model: Path) -> None:
    """The check's lines, with adapter and timings."""
    adapter = found["adapter"]
    software = " (software: correct but slow)" if adapter["software"] else ""
    print(f"model: {model.name}")
    print(f"adapter: {adapter['vendor']} {adapter['architecture']}{software}")
    print(f"tokens: {' '.join(repr(t) for t in found['tokens'])}")
    for line in found["lines"]:
        print(line)
    for label, micros in found["kernels"]:
        print(f"  {micros:9.1f} us  {label}")
    print(
        f"build {found['build_ms']:.0f} ms, run {found['run_ms']:.1f} ms, "
        f"{found['dispatches']} dispatches, {found['gpu_bytes']:,} bytes on the GPU",
        flush=True,
    )


if __name__ == "__main__":
    try:
        sys.exit(main())
    except WebGPUPyError as error:
        say(f"error [{error.code}]: {error}")
        sys.exit(1)
