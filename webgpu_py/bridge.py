"""The browser's bridge, over `js/bridge.js`: the only file that imports `js` and `pyodide.ffi`.

What a session asks of any bridge is `graph/bridge.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Sequence
from typing import Any, cast

import numpy as np

from .errors import (
    FeatureMissing,
    LimitExceeded,
    NetworkError,
    VersionMismatch,
    WebGPUPyError,
    error_of_code,
)
from .events import heard
from .generation import GenerationOptions, Piece
from .graph.limits import Limits
from .graph.plan import PipelineSpec, Plan
from .graph.values import Source

PROTOCOL_VERSION = 4
"""What both halves must speak; changed with every change of the calls below."""


JS_MODULES = (
    "errors", "events", "http", "sources", "stores", "checks", "cache", "download", "device",
    "buffers", "plans", "text", "generate", "bridge",
)  # fmt: skip
"""The JavaScript half, each after what it imports."""


class BrowserBridge:
    """`navigator.gpu` behind `js/bridge.js`."""

    kind = "browser"

    def __init__(self, half: Any, info: dict[str, Any], device: int) -> None:
        self._half = half
        self._device = device
        self.info = info["info"]
        self.limits = Limits.from_mapping(info["limits"])
        self.features = frozenset(info["features"])
        self.crossings = 0

    @classmethod
    async def open(cls, half: Any = None, **options: Any) -> BrowserBridge:
        """Adapter and device with the adapter's own limits and useful features.

        Errors: VersionMismatch, NoWebGPU, InsecureContext, NoAdapter.
        """
        if half is None:
            half = await registered_half()
        theirs = int(half.PROTOCOL_VERSION)
        if theirs != PROTOCOL_VERSION:
            raise VersionMismatch(
                f"the JavaScript half speaks protocol {theirs}, the Python half "
                f"{PROTOCOL_VERSION}; reload so that both come from one release"
            )
        opened = (await settled(half.open(_to_js(options)))).to_py()
        return cls(half, opened, opened["device"])

    @property
    def lost(self) -> bool:
        """See Bridge."""
        return bool(self._half.isLost(self._device))

    async def create_buffers(self, nbytes: Sequence[int], labels: Sequence[str]) -> list[int]:
        """See Bridge."""
        found = await self._call("createBuffers", list(nbytes), list(labels))
        return list(found.to_py())

    def write(self, buffer: int, offset: int, data: np.ndarray) -> None:
        """See Bridge."""
        self.crossings += 1
        _checked(lambda: self._half.write(self._device, buffer, offset, _contiguous(data)))

    async def upload(
        self, buffer: int, offset: int, source: Source, source_offset: int, nbytes: int
    ) -> None:
        """See Bridge; a JavaScript source streams to the GPU past Python's heap."""
        handle = getattr(source, "handle", None)
        if handle is not None:
            await self._call("upload", buffer, offset, handle, source_offset, nbytes)
            return
        step = 4 << 20
        for start in range(0, nbytes, step):
            count = min(step, nbytes - start)
            part = await source.read(source_offset + start, count)
            self.write(buffer, offset + start, np.frombuffer(part, np.uint8))

    async def read(self, buffer: int, offset: int, nbytes: int) -> bytes:
        """See Bridge."""
        return cast(bytes, (await self._call("read", buffer, offset, nbytes)).to_bytes())

    async def create_pipelines(self, specs: Sequence[PipelineSpec]) -> list[int]:
        """See Bridge."""
        kernels = [
            {
                "name": s.kernel.name,
                "wgsl": s.kernel.wgsl,
                "constants": dict(s.constants),
                "bindings": [[b.number, b.access] for b in s.kernel.bindings],
            }
            for s in specs
        ]
        return list((await self._call("createPipelines", kernels)).to_py())

    async def load_plan(self, plan: Plan) -> int:
        """See Bridge."""
        data = {
            "labels": plan.labels,
            "bindGroups": plan.bind_groups,
            "entries": plan.entries,
            "commands": plan.commands,
            "inputs": [[t.buffer, t.offset, t.nbytes] for t in plan.inputs],
            "outputs": [[t.buffer, t.offset, t.nbytes] for t in plan.outputs],
            "fault": -1 if plan.fault is None else plan.fault,
        }
        params = np.frombuffer(plan.params, np.uint8)
        return int(await self._call("loadPlan", data, params))

    async def run(self, plan: int, blob: np.ndarray) -> bytes:
        """See Bridge."""
        result = await self._call("run", plan, _contiguous(blob))
        return cast(bytes, result.to_bytes())

    async def profile(self, plan: int, blob: np.ndarray) -> tuple[bytes, list[float]]:
        """See Bridge; FeatureMissing without timestamp-query."""
        if "timestamp-query" not in self.features:
            raise FeatureMissing("profile: this device has no timestamp-query")
        found = await self._call("profile", plan, _contiguous(blob))
        return found.result.to_bytes(), list(found.micros.to_py())

    async def repeat(self, plan: int, count: int) -> float:
        """See Bridge."""
        return float(await self._call("repeat", plan, count))

    def destroy_plan(self, plan: int) -> None:
        """See Bridge."""
        self.crossings += 1
        self._half.destroyPlan(self._device, plan)

    def destroy_buffers(self, buffers: Sequence[int]) -> None:
        """See Bridge."""
        self.crossings += 1
        self._half.destroyBuffers(self._device, _to_js(list(buffers)))

    def plan_nbytes(self, plan: int) -> int:
        """See Bridge."""
        return int(self._half.planNbytes(self._device, plan))

    def stats(self) -> dict[str, int]:
        """See Bridge."""
        return cast("dict[str, int]", self._half.stats(self._device).to_py())

    async def close(self) -> None:
        """See Bridge."""
        await self._call("close")

    def create_generator(
        self, spec: dict[str, Any], blob: bytes, offsets: np.ndarray
    ) -> BrowserGenerator:
        """The token loop of `js/generate.js` over loaded plans."""
        table = [np.frombuffer(blob, np.uint8), _contiguous(offsets)]
        handle = _checked(lambda: self._half.createGenerator(self._device, _to_js(spec), *table))
        return BrowserGenerator(self._half, handle)

    async def _call(self, name: str, *args: Any) -> Any:
        self.crossings += 1
        ready = [a if isinstance(a, (int, float, str, np.ndarray)) else _to_js(a) for a in args]
        return await settled(getattr(self._half, name)(self._device, *ready))


def _to_js(value: Any) -> Any:
    """The one conversion of Python data to plain JavaScript objects."""
    from js import Object
    from pyodide.ffi import to_js

    return to_js(value, dict_converter=Object.fromEntries)


def _contiguous(data: np.ndarray) -> np.ndarray:
    # A strided view would be uploaded silently wrong: the buffer protocol gives its whole extent.
    if not data.flags.c_contiguous:
        raise LimitExceeded("an array for the device must be contiguous; use np.ascontiguousarray")
    return data.reshape(-1).view(np.uint8)


def _checked(call: Any) -> Any:
    from pyodide.ffi import JsException

    try:
        return call()
    except JsException as error:
        raise _translated(error) from None


async def settled(promise: Awaitable[Any]) -> Any:
    """What a JavaScript promise resolves to; an error with a known code as ours."""
    from pyodide.ffi import JsException

    try:
        return await promise
    except JsException as error:
        raise _translated(error) from None


def _translated(error: Any) -> WebGPUPyError:
    code = getattr(error, "code", None)
    if not isinstance(code, str):
        # What the browser itself threw: its own name says most.
        code = str(getattr(error, "name", "JavaScript"))
    found, status = error_of_code(code, str(error.message)), getattr(error, "status", None)
    if isinstance(found, NetworkError) and isinstance(status, int):
        found.status = status
    return found


async def registered_half() -> Any:
    """The JavaScript half: registered by the page's worker, else loaded from the package.

    From then on its events come to the logger.
    """
    # One for all: what one instance of a module has opened, another does not know.
    if not _halves:
        try:
            import _webgpu_py_js as half
        except ImportError:
            half = await _half_from_package()
        if not _halves:
            from pyodide.ffi import create_proxy

            half.hearEvents(create_proxy(heard))
            _halves.append(half)
    return _halves[0]


_halves: list[Any] = []


async def _half_from_package() -> Any:
    """Load the half out of the installed package: for notebooks, whose pages set no CSP."""
    from js import URL, Blob
    from pyodide.code import run_js

    from .assets import asset_text

    # A module in a blob: URL can't import its neighbours by a relative name.
    urls: dict[str, str] = {}
    for name in JS_MODULES:
        text = asset_text(f"js/{name}.js")
        for other, url in urls.items():
            text = text.replace(f"'./{other}.js'", f"'{url}'")
        blob = Blob.new(_to_js([text]), _to_js({"type": "text/javascript"}))
        urls[name] = str(URL.createObjectURL(blob))
    try:
        return await run_js("(url) => import(url)")(urls["bridge"])
    finally:
        for url in urls.values():
            URL.revokeObjectURL(url)


class BrowserGenerator:
    """A decoder whose token loop is JavaScript's; see `webgpu_py.generation.Generator`."""

    def __init__(self, half: Any, handle: int) -> None:
        self._half = half
        self.handle = handle

    def start(self, prompt: Sequence[int], options: GenerationOptions) -> BrowserRequest:
        """See Generator."""
        given = _to_js(list(prompt)), _to_js(options.plain())
        return BrowserRequest(_checked(lambda: self._half.startRequest(self.handle, *given)))

    def close(self) -> None:
        """See Generator."""
        self._half.destroyGenerator(self.handle)


class BrowserRequest:
    """One answer of a BrowserGenerator."""

    def __init__(self, request: Any) -> None:
        self._request = request
        self.finish_reason: str | None = None
        self.timings: dict[str, float] = {}

    async def next(self) -> Piece | None:
        """See Request: one crossing a piece."""
        step = (await settled(self._request.next())).to_py()
        if not step["done"]:
            found = step["value"]
            top = [(int(t), float(p)) for t, p in found["top"]]
            return Piece(found["tokens"], found["text"], found["logprobs"], top)
        self.finish_reason = self._request.finishReason or None
        self.timings = self._request.timings.to_py()
        return None

    def cancel(self) -> None:
        """See Request."""
        self._request.cancel()


def is_offline() -> bool:
    """Whether the browser knows that there is no network; what it keeps is there all the same."""
    if sys.platform != "emscripten":
        return False
    import js

    return js.navigator.onLine is False


def heap_nbytes() -> int:
    """Bytes of the memory Python lives in: wasm memory, which only grows, or the process's peak."""
    if sys.platform == "emscripten":
        import pyodide_js

        return int(pyodide_js._module.HEAP8.length)
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
