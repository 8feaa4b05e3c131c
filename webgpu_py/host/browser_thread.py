"""A browser on a thread of its own, so that plain synchronous code can drive it.

Playwright's own synchronous interface leaves an event loop running on the caller's thread, which
forbids `asyncio.run` there. Here the caller's thread stays free.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from webgpu_py.errors import NoAdapter
from webgpu_py.host.browser import DRIVER_ADVICE, Settings, choose_browser, launch

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page, Playwright

T = TypeVar("T")


class BrowserThread:
    """One headless browser; `call` runs a function on its thread and waits for the result."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.browser: Browser | None = None
        self.executable: Path | None = None
        self._playwright: Playwright | None = None
        self._loop = asyncio.new_event_loop()
        self._heard = 0.0
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def start(self) -> Self:
        """Start the browser.

        Raises:
            NoAdapter: Playwright or a browser is missing; the message says how to get it.
        """
        try:
            from playwright.async_api import async_playwright
        except ImportError as error:
            raise NoAdapter(
                f"driving a browser needs Playwright: {sys.executable} -m pip install playwright"
            ) from error

        async def begin() -> None:
            try:
                self._playwright = await async_playwright().start()
            except Exception as error:
                raise NoAdapter(f"Playwright does not start ({error}); {DRIVER_ADVICE}") from error
            own = Path(self._playwright.chromium.executable_path)
            self.executable = choose_browser(self.settings, own)
            self.browser = await launch(self._playwright, self.settings, self.executable)

        self._thread.start()
        try:
            self.call(begin, self.settings.launch_s + 10)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Close the browser and end the thread; more than once does no harm."""
        if not self._thread.is_alive():
            return

        async def end() -> None:
            if self.browser is not None:
                await self.browser.close()
            if self._playwright is not None:
                await self._playwright.stop()

        self.call(end, 30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def call(self, function: Callable[[], Awaitable[T]], timeout_s: float | None = None) -> T:
        """Run `function` on the browser's thread, await what it returns, and give the result.

        Raises:
            TimeoutError: nothing was heard for `timeout_s` (by default `settings.run_s`): neither
                the result nor a call of `heard`.
        """

        async def body() -> T:
            return await function()

        limit = self.settings.run_s if timeout_s is None else timeout_s
        future = asyncio.run_coroutine_threadsafe(body(), self._loop)
        self._heard = time.monotonic()
        while True:
            try:
                return future.result(max(self._heard + limit - time.monotonic(), 0))
            except TimeoutError:
                if self._heard + limit > time.monotonic():
                    continue
                future.cancel()
                raise TimeoutError(
                    f"nothing came from the browser for {limit:.0f} s; it hangs, or this machine "
                    "is too busy (the deadlines are in webgpu_py/host/browser.py)"
                ) from None

    def heard(self) -> None:
        """Put off the deadline of the call under way: something came from the page."""
        self._heard = time.monotonic()

    def new_page(self, **context: Any) -> Page:
        """A page in a fresh context; drive it through `call` or wrap it in `Synchronous`."""

        async def open_page() -> Page:
            assert self.browser is not None
            return await (await self.browser.new_context(**context)).new_page()

        return self.call(open_page, self.settings.launch_s)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


class Synchronous:
    """A Playwright object whose methods run on the browser's thread and return when done.

    Attributes, arguments and results are wrapped and unwrapped, so `page.locator("b").click()`
    reads as it does in Playwright's synchronous interface. Event callbacks get raw objects.
    """

    def __init__(self, thread: BrowserThread, target: Any) -> None:
        self._thread = thread
        self.target = target

    def __getattr__(self, name: str) -> Any:
        async def get() -> Any:
            return getattr(self.target, name)

        value = self._thread.call(get)
        if not callable(value):
            return self._wrap(value)

        def method(*args: Any, **kwargs: Any) -> Any:
            plain = [_unwrap(a) for a in args]
            named = {k: _unwrap(v) for k, v in kwargs.items()}

            async def invoke() -> Any:
                result = value(*plain, **named)
                return await result if inspect.isawaitable(result) else result

            return self._wrap(self._thread.call(invoke))

        return method

    def _wrap(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._wrap(v) for v in value]
        if type(value).__module__.startswith("playwright."):
            return Synchronous(self._thread, value)
        return value


def _unwrap(value: Any) -> Any:
    return value.target if isinstance(value, Synchronous) else value
