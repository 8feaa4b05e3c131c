"""`make demo`: a real model in headless Chromium, checked, asked, and photographed."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from webgpu_py.errors import WebGPUPyError, error_of_code
from webgpu_py.host.browser import Settings
from webgpu_py.host.browser_thread import BrowserThread, Synchronous
from webgpu_py.host.cmd_generate import LLM_PACKAGES
from webgpu_py.host.demo_model import ensure_demo_model
from webgpu_py.host.fetch import say
from webgpu_py.host.mounts import development_mounts
from webgpu_py.host.paths import cache_dir
from webgpu_py.host.runner import BrowserRunner
from webgpu_py.host.server import Server

MODEL_URL = "/demo/model.gguf"

PROMPT = "The capital of France is"
QUESTION = "What is the capital of France? Answer in one sentence."
PATIENCE_S = 600.0


def main() -> int:
    """Check the first layer, then ask in the page; exit status 0 when both went well."""
    model = ensure_demo_model()
    settings = Settings(adapter="auto", run_s=PATIENCE_S)
    with BrowserRunner(settings, packages=LLM_PACKAGES) as runner:
        found = runner.call(
            "webgpu_py.commands:first_layer_entry", {"model": model, "prompt": PROMPT}, _progress
        )
    report(found, model)
    chat(settings, model)
    return 0


def chat(settings: Settings, model: Path) -> None:
    """Ask in the chat page, print the answer as it comes, and take two screenshots."""
    mounts = {**development_mounts(), MODEL_URL: model}
    headers = dict(settings.headers)
    with Server(mounts, headers=headers) as server, BrowserThread(settings) as thread:
        page = Synchronous(thread, thread.new_page(viewport={"width": 1280, "height": 900}))
        page.set_default_timeout(1000 * PATIENCE_S)
        say("opening the chat page")
        page.goto(f"{server.url}/?model={MODEL_URL}")
        page.locator('html:not([data-state="loading"])').wait_for(state="attached")
        failed = page.locator("html").get_attribute("data-error")
        if failed:
            raise error_of_code(failed, page.locator("main").inner_text())
        page.get_by_test_id("prompt").fill(QUESTION)
        page.get_by_test_id("send").click()
        print(f"\n> {QUESTION}")
        _stream(page)
        _photograph(page, "demo-chat.png")
        page.locator("[data-view=inside]").click()
        page.get_by_test_id("check").first.wait_for()
        page.get_by_test_id("check").last.scroll_into_view_if_needed()
        _photograph(page, "demo.png")


def _stream(page: Synchronous) -> None:
    shown, heard = "", time.monotonic()
    while True:
        done = page.locator(".after").count() > 0
        text = page.get_by_test_id("answer").last.inner_text()
        if text != shown:
            heard = time.monotonic()
            fresh = text[len(shown) :] if text.startswith(shown) else f"\r{text}"
            print(fresh, end="", flush=True)
            shown = text
        if done:
            print(flush=True)
            return
        if time.monotonic() > heard + PATIENCE_S:
            raise TimeoutError(f"no word from the model for {PATIENCE_S:.0f} s")
        time.sleep(0.3)


def _photograph(page: Synchronous, name: str) -> None:
    path = cache_dir() / name
    page.screenshot(path=path)
    say(f"screenshot: {path}")


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
