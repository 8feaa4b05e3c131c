"""Run this package in a real browser for the command line: Pyodide, WebGPU, no code from outside.

```python
with BrowserRunner(Settings()) as runner:
    result = runner.call("webgpu_py.conformance:run_case", {"model": Path("model.pte")})
```
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from webgpu_py.host.browser import Settings
from webgpu_py.host.browser_thread import BrowserThread
from webgpu_py.host.mounts import development_mounts
from webgpu_py.host.remote import RemoteWorker
from webgpu_py.host.server import Server


class BrowserRunner:
    """A server, a headless browser and a worker, started on entry and closed on exit.

    `packages` are names in the Pyodide lock beyond the core, such as tiktoken.
    """

    def __init__(
        self,
        settings: Settings,
        packages: Sequence[str] = (),
        on_progress: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        self.settings = settings
        self._path = f"/runner.html?packages={','.join(packages)}"
        self._on_progress = on_progress
        self._thread = BrowserThread(settings)
        self._count = itertools.count()

    def call(
        self,
        name: str,
        args: dict[str, Any],
        on_event: Callable[[Any], None] | None = None,
        timeout_s: float | None = None,
    ) -> Any:
        """Call `"webgpu_py.module:function"` in the worker with `args` and return its result.

        Every `Path` in `args` arrives there as a URL, a folder's ends with a slash. An exception
        there is raised here, with its class. `on_event` gets what the function emits before it
        returns.
        """
        return self._worker.request({"name": name}, self._served(args), on_event, timeout_s)

    def _served(self, value: Any) -> Any:
        if isinstance(value, Path):
            url = f"/files/{next(self._count)}/{value.name}"
            if not value.is_dir():
                self._server.mounts[url] = value
                return quote(url)
            # One by one, as a downloaded folder may hold links to files elsewhere.
            self._server.mounts |= {f"{url}/{p.name}": p for p in value.iterdir() if p.is_file()}
            return quote(f"{url}/")
        if isinstance(value, dict):
            return {k: self._served(v) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self._served(v) for v in value)
        return value

    def __enter__(self) -> Self:
        headers = dict(self.settings.headers)
        self._server = Server(development_mounts(), headers=headers).start()
        try:
            self._thread.start()
            self._worker = RemoteWorker(self._thread, self._server, self._path, self._on_progress)
            self._worker.open()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._thread.stop()
        self._server.stop()
