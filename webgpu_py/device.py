"""A device: an executor with its limits, features and compiled pipelines."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

from .errors import DeviceLost, FeatureMissing
from .events import since, tell
from .graph.bridge import Bridge
from .graph.choices import Choices
from .graph.limits import Limits
from .graph.plan import PipelineKey, PipelineSpec

DeviceKind = Literal["browser", "cpu", "native"]
Reopen = Callable[[], Awaitable[Bridge]]


def named(info: Mapping[str, Any]) -> dict[str, str]:
    """An adapter's vendor and architecture, as events tell them."""
    return {k: str(info.get(k, "")) for k in ("vendor", "architecture")}


class Device:
    """What sessions run on; several sessions may share one.

    `reopen` asks for another bridge like this one; a device that an app handed over has none.
    """

    def __init__(self, bridge: Bridge, reopen: Reopen | None = None) -> None:
        self.bridge = bridge
        self._reopen = reopen
        self._turn = asyncio.Lock()
        self._pipelines: dict[PipelineKey, int] = {}
        self._compiling: dict[PipelineKey, asyncio.Task[None]] = {}
        self.choices = Choices()
        """Kernels that `Session.autotune` found fast here."""

    @property
    def kind(self) -> str:
        """`browser`, `cpu` or `native`."""
        return self.bridge.kind

    @property
    def info(self) -> dict[str, Any]:
        """Adapter: vendor, architecture, device, description, software."""
        return self.bridge.info

    @property
    def limits(self) -> Limits:
        """The device's limits."""
        return self.bridge.limits

    @property
    def features(self) -> frozenset[str]:
        """Optional features of WebGPU that were granted, and of WGSL that kernels use."""
        return self.bridge.features

    @property
    def lost(self) -> bool:
        """Whether what is behind it is gone; `restart` brings another."""
        return self.bridge.lost

    async def restart(self) -> None:
        """Put a new GPU device behind this one if it is lost; one that is not stays.

        Sessions on the old one stay lost: build them again. Errors as of `request_device`, and
        DeviceLost where the device was the app's own.
        """
        async with self._turn:
            if not self.lost:
                return
            if self._reopen is None:
                raise DeviceLost("the device was the app's own; load again with a new GPUDevice")
            fresh = await self._reopen()
            await self.bridge.close()
            self._pipelines.clear()
            self._compiling.clear()
            self.bridge = fresh
            tell("device.restarted", named(fresh.info))

    async def pipelines(self, specs: Mapping[PipelineKey, PipelineSpec]) -> dict[PipelineKey, int]:
        """Handles of compiled pipelines; each distinct one is compiled once a device.

        What another call is compiling is waited for; if that fails, it is that call's error, and
        what is shared with it is compiled again. DeviceLost after a restart meanwhile.
        """
        bridge = self.bridge
        while missing := {k: s for k, s in specs.items() if k not in self._pipelines}:
            own = self._begin({k: s for k, s in missing.items() if k not in self._compiling})
            await asyncio.wait({self._compiling[k] for k in missing})
            if own is not None:
                own.result()
            if bridge is not self.bridge:
                raise DeviceLost("the device was restarted meanwhile; build the session again")
        return {k: self._pipelines[k] for k in specs}

    def _begin(self, specs: Mapping[PipelineKey, PipelineSpec]) -> asyncio.Task[None] | None:
        """Compile in a task of its own, which lives on if who waits for it is cancelled."""
        if not specs:
            return None
        task = asyncio.ensure_future(self._compile(specs))
        self._compiling.update(dict.fromkeys(specs, task))

        def ended(task: asyncio.Task[None]) -> None:
            for key in specs:
                if self._compiling.get(key) is task:
                    del self._compiling[key]
            # Nobody may be left who would ask for it.
            if not task.cancelled():
                task.exception()

        task.add_done_callback(ended)
        return task

    async def _compile(self, specs: Mapping[PipelineKey, PipelineSpec]) -> None:
        started, bridge = time.perf_counter(), self.bridge
        handles = await bridge.create_pipelines(list(specs.values()))
        tell("pipelines.compiled", {"count": len(specs), "ms": since(started)})
        if bridge is self.bridge:
            self._pipelines.update(zip(specs, handles, strict=True))

    async def recall_choices(self) -> None:
        """Take up what `Session.autotune` found on an earlier visit, in a browser."""
        from .remembered import recall

        text = await recall(self, "choices")
        if text is not None:
            self.choices = Choices(json.loads(text))

    async def keep_choices(self) -> None:
        """Keep the choices for the next visit, in a browser."""
        if self.kind == "browser":
            from .remembered import keep

            await keep(self, "choices", json.dumps(self.choices.found))

    async def close(self) -> None:
        """Give the device back; its sessions end with it."""
        await self.bridge.close()


async def request_device(kind: DeviceKind = "browser", **options: Any) -> Device:
    """A device: `browser` (WebGPU in a page or worker), `cpu` (NumPy), `native` (wgpu-py).

    A browser's GPU is tested once: see `webgpu_py.self_test`. `features` are the optional features
    of WebGPU, and of WGSL "packed_4x8_integer_dot_product", to use: by default all that kernels
    have a use for. Without that one and "chromium-experimental-subgroup-matrix" every product is
    computed in float32.

    Errors: NoWebGPU, InsecureContext, NoAdapter, VersionMismatch, WrongNumbers; FeatureMissing
    for another kind or feature, or for `browser` outside of one.
    """
    if kind == "browser":
        if sys.platform != "emscripten":
            raise FeatureMissing(
                "this Python does not run in a browser; use request_device('native') for this "
                "machine's GPU, 'cpu' for NumPy, or the command webgpu-py, which starts a browser"
            )
        from .bridge import BrowserBridge
        from .self_test import check_numbers

        async def reopen() -> Bridge:
            return await BrowserBridge.open(**options)

        device = Device(await reopen(), None if "device" in options else reopen)
        try:
            await check_numbers(device)
            await device.recall_choices()
        except BaseException:
            await device.close()
            raise
        tell("device.opened", named(device.info))
        return device
    if kind == "cpu":
        from .backends.cpu import CpuBridge

        return Device(CpuBridge())
    if kind == "native":
        from .backends.native import NativeBridge

        return Device(await NativeBridge.open(**options))
    raise FeatureMissing(f"no device kind {kind!r}; use 'browser', 'cpu' or 'native'")
