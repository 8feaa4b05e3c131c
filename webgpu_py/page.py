"""What a page's worker calls: named methods with JSON and buffers in, JSON and buffers out.

An array in JSON is `{"$array": index, "dtype": ..., "shape": ...}`, its bytes stand in the list
beside it. `web/protocol.js` lists the methods; `emit` takes the JSON text of an event.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import inspect
import json
import traceback
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

import webgpu_py

from .bridge import registered_half
from .browser_source import adopt_source
from .device import Device, request_device
from .errors import Cancelled, DeviceLost, FormatError, WebGPUPyError
from .events import Forwarding
from .graph.values import Source
from .sources import check_sha256, close_sources, give_up

SNIFFED = 9


class Call:
    """One request under way, as the method that answers it sees it."""

    def __init__(self, emit: Callable[[str], None]) -> None:
        self._emit = emit
        self.on_cancel: Callable[[], None] | None = None
        """Ends the work so that the method returns soon; without it the method is interrupted."""

    def emit(self, **event: Any) -> None:
        """Send an event ahead of the result."""
        self._emit(json.dumps(event))

    def progress(self, stage: str, loaded: int = 0, total: int = 0) -> None:
        """Say what is being done; `total` 0 when its size is not known."""
        self.emit(progress={"stage": stage, "loaded": loaded, "total": total})


class Opened(Protocol):
    """An open file; its other public methods answer requests of their names."""

    kind: str

    def description(self) -> dict[str, Any]:
        """What the page shows of it at once."""
        ...

    def close(self) -> None:
        """Free what it holds on the device."""
        ...


class Service:
    """One page's open file on one device; calls that use the device take turns."""

    def __init__(self) -> None:
        self.version = webgpu_py.__version__
        self._device: Device | None = None
        self._opened: Opened | None = None
        self._close_source: Callable[[], None] = lambda: None
        self._running: dict[int, tuple[asyncio.Task[Any], Call]] = {}
        self._forwarding: Forwarding | None = None
        self._turn = asyncio.Lock()

    def call(
        self, id: int, method: str, text: str, buffers: Sequence[Any], emit: Callable[[str], None]
    ) -> asyncio.Future[tuple[str, list[bytes]]]:
        """Answer one request; errors come back as `{"error": {code, message}}`.

        It can be cancelled as soon as this has returned.
        """
        call = Call(emit)
        task = asyncio.ensure_future(self._answer(method, text, buffers, call))
        self._running[id] = task, call
        return asyncio.ensure_future(self._outcome(id, task))

    async def _outcome(self, id: int, task: asyncio.Task[Any]) -> tuple[str, list[bytes]]:
        try:
            return _encoded({"result": await task})
        except asyncio.CancelledError:
            return _encoded({"error": {"code": Cancelled.code, "message": "cancelled"}})
        except Exception as error:
            return _encoded({"error": _described(error)})
        finally:
            del self._running[id]

    def cancel(self, id: int) -> None:
        """End a request soon; one that is done or unknown is left alone."""
        if id in self._running:
            task, call = self._running[id]
            (call.on_cancel or task.cancel)()

    async def _answer(self, method: str, text: str, buffers: Sequence[Any], call: Call) -> Any:
        args = _decoded(text, buffers)
        if method == "device":
            return await self.device(args)
        async with self._turn:
            if method == "open":
                return await self.open(args, call)
            if method == "build":
                return await self.build(args)
            if method == "close":
                return await self.close()
            if self._opened is None:
                raise FormatError(f"{method}: no file is open; open one first")
            found = getattr(self._opened, method, None)
            if method.startswith("_") or not inspect.iscoroutinefunction(found):
                raise FormatError(f"{method}: not for a {self._opened.kind}")
            return await found(args, call)

    async def device(self, args: dict[str, Any]) -> dict[str, Any]:
        """The device as it was granted; requests one at the first call (`kind`)."""
        device = await self._granted(args.get("kind", "browser"))
        return {
            "kind": device.kind,
            "info": dict(device.info),
            "limits": dataclasses.asdict(device.limits),
            "features": sorted(device.features),
        }

    async def _granted(self, kind: Any) -> Device:
        if self._device is None:
            self._device = await request_device(kind)
        await self._device.restart()
        return self._device

    async def open(self, args: dict[str, Any], call: Call) -> dict[str, Any]:
        """Open a file by its first bytes, or a model's folder; what was open before is closed."""
        await self.close()
        given = args["source"]
        if "handle" not in given:
            return await self._open_folder(given, args, call)
        source = await adopt_source(
            given["handle"], given["name"], given["nbytes"], given["sha256"]
        )
        self._close_source = source.close
        try:
            opener = await _opener(source)
            device = await self._granted(args.get("device", "browser"))
            opened: Opened = await opener(source, device, args.get("options", {}), call)
            if sha256 := args.get("sha256"):
                call.progress("hash")
                try:
                    await check_sha256(source, sha256)
                except BaseException:
                    opened.close()
                    raise
        except BaseException as error:
            await give_up([source], error)
            raise
        source.fetch_all()
        self._opened = opened
        facts = {"kind": opened.kind, "name": source.name, "nbytes": source.nbytes}
        return facts | opened.description()

    async def _open_folder(
        self, given: dict[str, Any], args: dict[str, Any], call: Call
    ) -> dict[str, Any]:
        """A model of several files: the `url` of their folder, or `files` that were dropped."""
        from .page_model import open_model

        if args.get("sha256"):
            raise FormatError("sha256 is the hash of one file, this model has several")
        files = {
            f["name"]: await adopt_source(f["handle"], f["name"], f["nbytes"], None)
            for f in given["files"]
        }
        self._close_source = lambda: close_sources([*files.values()])
        try:
            device = await self._granted(args.get("device", "browser"))
            source = files or given["url"]
            opened = await open_model(source, device, args.get("options", {}), call)
        except BaseException:
            close_sources([*files.values()])
            raise
        self._opened = opened
        name = given.get("url") or ", ".join(files)
        return {"kind": opened.kind, "name": name} | opened.description()

    async def build(self, args: dict[str, Any]) -> dict[str, Any]:
        """Build a graph from the steps that a page noted; what was open before is closed."""
        from .page_graph import build_graph

        await self.close()
        device = await self._granted(args.get("device", "browser"))
        opened = self._opened = await build_graph(args["steps"], device)
        return {"kind": opened.kind} | opened.description()

    async def listen(self, level: str | None, send: Callable[[str], object]) -> None:
        """Give events of `level` and above to `send` as JSON, no longer as before; None ends it."""
        await registered_half()
        if self._forwarding is not None:
            self._forwarding.stop()
        self._forwarding = None if level is None else Forwarding(send, level)
        if self._forwarding is not None:
            self._forwarding.start()

    async def close(self) -> None:
        """Free what the open file holds on the device."""
        opened, self._opened = self._opened, None
        if opened is not None:
            self._close_source()
            self._close_source = lambda: None
            with contextlib.suppress(DeviceLost):
                opened.close()


async def _opener(source: Source) -> Any:
    """What opens a file, told by its magic bytes, whatever its name."""
    start = await source.read(0, min(SNIFFED, source.nbytes))
    if start[:4] == b"GGUF" or start[8:] == b"{":
        from .page_model import open_model

        return open_model
    if start[4:6] == b"ET":
        from .page_program import open_program

        return open_program
    raise FormatError(
        f"{source.name}: begins with {start!r}; a model is a GGUF file (begins with b'GGUF'), "
        "safetensors with config.json and tokenizer.json (all files at once, or the address of "
        "their folder), or an ExecuTorch program (.pte, b'ET12' at byte 4)"
    )


def _decoded(text: str, buffers: Sequence[Any]) -> Any:
    def array(record: dict[str, Any]) -> Any:
        if "$array" not in record:
            return record
        data = np.frombuffer(buffers[record["$array"]], record["dtype"])
        return data.reshape(record["shape"])

    return json.loads(text, object_hook=array)


def _encoded(value: Any) -> tuple[str, list[bytes]]:
    buffers: list[bytes] = []

    def plain(part: Any) -> Any:
        if isinstance(part, np.ndarray):
            buffers.append(part.tobytes())
            return {"$array": len(buffers) - 1, "dtype": str(part.dtype), "shape": part.shape}
        if isinstance(part, np.generic):
            return part.item()
        raise TypeError(f"a {type(part).__name__} cannot cross to the page")

    return json.dumps(value, default=plain), buffers


def _described(error: Exception) -> dict[str, str]:
    if isinstance(error, WebGPUPyError):
        return {"code": error.code, "message": str(error)}
    where = traceback.extract_tb(error.__traceback__)[-1]
    said = f"{type(error).__name__}: {error} ({where.name}, {where.filename}:{where.lineno})"
    return {"code": WebGPUPyError.code, "message": said}
