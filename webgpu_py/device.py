"""A device: an executor with its limits, features and compiled pipelines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from .bridge import Bridge
from .errors import FeatureMissing
from .graph.limits import Limits
from .graph.plan import PipelineKey, PipelineSpec

DeviceKind = Literal["browser", "cpu", "native"]


class Device:
    """What sessions run on; several sessions may share one."""

    def __init__(self, bridge: Bridge) -> None:
        self.bridge = bridge
        self._pipelines: dict[PipelineKey, int] = {}

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
        """Optional WebGPU features that were granted."""
        return self.bridge.features

    async def pipelines(self, specs: Mapping[PipelineKey, PipelineSpec]) -> dict[PipelineKey, int]:
        """Handles of compiled pipelines; each distinct one is compiled once a device."""
        new = {k: s for k, s in specs.items() if k not in self._pipelines}
        if new:
            handles = await self.bridge.create_pipelines(list(new.values()))
            self._pipelines.update(zip(new, handles, strict=True))
        return {k: self._pipelines[k] for k in specs}

    async def close(self) -> None:
        """Give the device back; its sessions end with it."""
        await self.bridge.close()


async def request_device(kind: DeviceKind = "browser", **options: Any) -> Device:
    """A device: `browser` (WebGPU in a page or worker), `cpu` (NumPy), `native` (wgpu-py).

    Errors: NoWebGPU, InsecureContext, NoAdapter, VersionMismatch; FeatureMissing for another kind.
    """
    if kind == "browser":
        from .bridge import BrowserBridge

        return Device(await BrowserBridge.open(**options))
    if kind == "cpu":
        from .backends.cpu import CpuBridge

        return Device(CpuBridge())
    if kind == "native":
        from .backends.native import NativeBridge

        return Device(await NativeBridge.open(**options))
    raise FeatureMissing(f"no device kind {kind!r}; use 'browser', 'cpu' or 'native'")
