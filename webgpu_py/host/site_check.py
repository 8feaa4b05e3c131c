"""Open a built site as its first visitor would, and say how long that takes."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from webgpu_py.errors import error_of_code
from webgpu_py.host.browser import Settings
from webgpu_py.host.browser_thread import BrowserThread, Synchronous
from webgpu_py.host.server import Server


@dataclass(frozen=True)
class Visit:
    """What a visitor with an empty cache saw."""

    seconds: float
    """From the request of the page to `data-state=ready`."""
    browser: str
    adapter: str
    """As the page shows it; empty where it has opened nothing that needs one."""
    outside: list[str]
    """Addresses that were asked for beside the site's own server."""


def visit(folder: Path, settings: Settings) -> Visit:
    """Serve `folder` on loopback without special headers and wait until its page is ready.

    Raises:
        WebGPUPyError: the page's own error; or NoAdapter without a browser.
        TimeoutError: the page became neither ready nor failed within `settings.boot_s`.
    """
    with Server({"/": folder}) as server, BrowserThread(settings) as thread:
        raw = thread.new_page()
        page = Synchronous(thread, raw)
        asked: list[str] = []

        async def listen() -> None:
            raw.on("request", lambda request: asked.append(request.url))

        thread.call(listen)
        page.set_default_timeout(1000 * settings.boot_s)
        start = time.perf_counter()
        page.goto(f"{server.url}/")
        page.locator('html:not([data-state="loading"])').wait_for(state="attached")
        seconds = time.perf_counter() - start
        failed = page.locator("html").get_attribute("data-error")
        if failed:
            raise error_of_code(failed, page.locator("#error").inner_text())
        assert thread.browser is not None
        own = (f"{server.url}/", "blob:", "data:")
        return Visit(
            seconds,
            f"Chromium {thread.browser.version}",
            " ".join(page.get_by_test_id("adapter").inner_text().split()),
            sorted({url for url in asked if not url.startswith(own)}),
        )
