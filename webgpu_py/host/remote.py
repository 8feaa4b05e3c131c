"""Drive a page whose worker answers requests: `web/remote-page.js` and `web/remote.js`.

Arguments go in as a page of the server, results come back as a POST, so nothing large passes
through the browser's debugging connection.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

from webgpu_py.errors import WebGPUPyError, error_of_code
from webgpu_py.host.browser_thread import BrowserThread
from webgpu_py.host.server import Server
from webgpu_py.transfer import RemoteError, pack, unpack_result

_CONSOLE_LINES = 20
_PREFIX = "/remote/"


class RemoteWorker:
    """One page with one worker. `console` keeps what the page printed."""

    def __init__(
        self,
        thread: BrowserThread,
        server: Server,
        path: str,
        on_progress: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        self.thread, self.server, self.path = thread, server, path
        self.console: list[str] = []
        self.info: dict[str, Any] = {}
        self._on_progress = on_progress
        self._on_event: Callable[[Any], None] | None = None
        self._results: dict[str, bytes] = {}
        self._count = itertools.count()
        server.sinks[_PREFIX] = self._received

    def open(self) -> None:
        """Load the page and wait until its worker is ready.

        Raises:
            WebGPUPyError: the worker gave a known reason why it cannot start.
        """
        self.console.clear()
        self.page = self.thread.new_page()

        async def load() -> Any:
            self.page.on("console", lambda m: self.console.append(f"{m.type}: {m.text}"))
            self.page.on("pageerror", lambda e: self.console.append(f"error: {e}"))
            await self.page.expose_function("onRemoteEvent", self._event)
            report = self._on_progress
            if report is not None:
                await self.page.expose_function("onRemoteProgress", lambda p: report(p))
            await self.page.goto(self.server.url + self.path)
            return await self.page.evaluate(
                "remote.ready.then(info => ({info}), error => ({failed: error.message}))"
            )

        answer = self._waited(load, self.thread.settings.boot_s)
        if "failed" in answer:
            code, _, message = answer["failed"].partition(": ")
            known = code in {kind.code for kind in WebGPUPyError.__subclasses__()}
            raise self._noted(
                error_of_code(code, message)
                if known
                else RemoteError("the page did not start", answer["failed"])
            )
        self.info = answer["info"]

    def request(
        self,
        request: dict[str, Any],
        values: Any,
        on_event: Callable[[Any], None] | None = None,
        timeout_s: float | None = None,
    ) -> Any:
        """Send one request with `values` as its payload; return or raise what comes back.

        A worker that dies or takes longer than `timeout_s` is thrown away, and the next request
        finds a new one.
        """
        key = f"{_PREFIX}{next(self._count)}"
        self.server.pages[key] = pack(values)
        self._on_event = on_event
        try:
            done = self._waited(
                lambda: self.page.evaluate("a => remote.request(...a)", [request, key, key]),
                timeout_s,
            )
        except Exception:
            self.close()
            self.open()
            raise
        finally:
            self._on_event = None
            del self.server.pages[key]
        if done["error"]:
            raise self._noted(RemoteError(done["error"]["type"], done["error"]["message"]))
        try:
            return unpack_result(self._results.pop(key))
        except Exception as error:
            raise self._noted(error) from None

    def close(self) -> None:
        """Close the page and its browser context."""
        self.thread.call(self.page.context.close, self.thread.settings.launch_s)

    def _waited(self, function: Callable[[], Any], timeout_s: float | None) -> Any:
        try:
            return self.thread.call(function, timeout_s)
        except Exception as error:
            raise self._noted(error) from None

    def _received(self, path: str, body: bytes) -> None:
        self._results[path] = body

    def _event(self, _id: int, text: str) -> None:
        self.thread.heard()
        if self._on_event is not None:
            self._on_event(json.loads(text))

    def _noted(self, error: Exception) -> Exception:
        for line in self.console[-_CONSOLE_LINES:]:
            error.add_note(f"console {line}")
        return error
