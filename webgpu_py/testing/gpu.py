"""The `gpu` fixture: Python in a worker of real Chromium, called like a function."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from webgpu_py.host.browser_thread import BrowserThread
from webgpu_py.host.remote import RemoteWorker
from webgpu_py.host.server import Server

MOUNT = "/testing/"
PAGE = Path(__file__).parent / "page"
"""The page with the worker, which a server must have at `MOUNT`."""

_WRITE = """
import importlib, pathlib
path = pathlib.Path(name)
path.parent.mkdir(parents=True, exist_ok=True)
path.write_bytes(data)
importlib.invalidate_caches()
None
"""


class Gpu:
    """One page with one worker; `run` sends Python there and brings back its last expression."""

    kind = "browser"
    """What `request_device` takes in there."""

    def __init__(
        self,
        thread: BrowserThread,
        server: Server,
        half: str = "/js/bridge.js",
        packages: Sequence[str] = (),
    ) -> None:
        path = f"{MOUNT}index.html?half={half}&packages={','.join(packages)}"
        self.progress: list[dict[str, Any]] = []
        self.worker = RemoteWorker(thread, server, path, self.progress.append)
        self.server = server
        self.worker.open()

    @property
    def adapter(self) -> dict[str, Any]:
        """vendor, architecture, limits and features, in WebGPU's own spelling."""
        found: dict[str, Any] = self.worker.info["adapter"]
        return found

    @property
    def console(self) -> list[str]:
        """What the page printed."""
        return self.worker.console

    def run(self, code: str, /, timeout_s: float | None = None, **values: Any) -> Any:
        """Run `code` (top-level await allowed) with `values` as its names.

        Values and the result may be anything that `webgpu_py.transfer.pack` takes: numbers, text,
        bytes, arrays, and lists, tuples and dicts of them. An exception there is raised here: of
        this package's class when its code is known, else of the builtin class of that name, else
        `RemoteError`; the browser's traceback is in its notes.
        """
        return self.worker.request({"code": code}, values, timeout_s=timeout_s)

    def call(
        self, function: Callable[..., Any], /, timeout_s: float | None = None, **values: Any
    ) -> Any:
        """Run a function that needs nothing but its arguments; `async def` is awaited."""
        source = textwrap.dedent(inspect.getsource(function))
        wait = "await " if inspect.iscoroutinefunction(function) else ""
        names = ", ".join(f"{name}={name}" for name in values)
        code = f"{source}\n{wait}{function.__name__}({names})"
        return self.run(code, timeout_s=timeout_s, **values)

    def add(self, path: Path) -> None:
        """Copy a file, or a folder with all in it, to where Python in the worker imports from.

        `gpu.add(Path("my_ops.py"))` and then `gpu.run("import my_ops")`; again after `restart`.
        """
        path = path.resolve()
        files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
        for file in files:
            if "__pycache__" not in file.parts:
                name = file.relative_to(path.parent).as_posix()
                self.run(_WRITE, name=name, data=file.read_bytes())

    def restart(self) -> None:
        """Throw the page away and boot a new one."""
        self.worker.close()
        self.worker.open()

    def close(self) -> None:
        """Close the page."""
        self.worker.close()
