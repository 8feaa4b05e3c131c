"""Plans on a desktop GPU through wgpu-py (Vulkan, Metal, DX12); its WGSL compiler is naga.

The dispatches are the browser's own. Kernels that use subgroups lose their `enable` line here:
naga knows the built-ins but refuses the directive (wgpu-py 0.32; may go when it does not).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import FeatureMissing, LimitExceeded, NoAdapter, OutOfMemory, WebGPUPyError
from ..graph.limits import Limits
from ..graph.plan import PipelineSpec, Plan
from ..graph.values import Source

USEFUL_FEATURES = ("timestamp-query", "shader-f16", "subgroup")
STORAGE = 0x80 | 0x8 | 0x4
UNIFORM = 0x40 | 0x8
STAGING = 0x1 | 0x8
LAYOUT_TYPES = {"read": "read-only-storage", "read_write": "storage", "uniform": "uniform"}


@dataclass(slots=True)
class _Loaded:
    """A plan's own objects on the device."""

    plan: Plan
    groups: list[tuple[Any, Any]] = field(default_factory=list)
    params: Any = None
    staging: Any = None

    @property
    def nbytes(self) -> int:
        return sum(b.size for b in (self.params, self.staging) if b is not None)

    def destroy(self) -> None:
        for buffer in (self.params, self.staging):
            if buffer is not None:
                buffer.destroy()


class NativeBridge:
    """An executor on wgpu-py; see `webgpu_py.graph.bridge.Bridge`."""

    kind = "native"
    lost = False

    def __init__(self, device: Any) -> None:
        info = device.adapter.info
        self.info: dict[str, Any] = {
            "vendor": info["vendor"],
            "architecture": info["architecture"],
            "device": info["device"],
            "description": info["description"],
            "software": info["adapter_type"] == "CPU",
        }
        self.limits = Limits.from_mapping(
            {k.replace("-", "_"): v for k, v in device.limits.items()}
        )
        self.features = frozenset(device.features)
        self.crossings = 0
        self._device = device
        self._buffers: dict[int, Any] = {}
        self._pipelines: dict[int, tuple[Any, Any]] = {}
        self._plans: dict[int, _Loaded] = {}
        self._next = 0

    @classmethod
    async def open(cls, power_preference: str = "high-performance") -> NativeBridge:
        """The adapter's device with its own limits. FeatureMissing, NoAdapter."""
        try:
            import wgpu
        except ImportError:
            raise FeatureMissing("the native device needs wgpu-py: pip install wgpu") from None
        try:
            adapter = await wgpu.gpu.request_adapter_async(power_preference=power_preference)
        except RuntimeError as error:
            raise NoAdapter(
                f"no Vulkan, Metal or DX12 adapter ({error}); install a GPU driver, or "
                "mesa-vulkan-drivers for a software adapter"
            ) from None
        features = [f for f in USEFUL_FEATURES if f in adapter.features]
        # The layer reserves some names it can't be asked for.
        limits = {k: v for k, v in adapter.limits.items() if "subgroup" not in k}
        device = await adapter.request_device_async(
            required_features=features, required_limits=limits
        )
        return cls(device)

    def _handle(self) -> int:
        self._next += 1
        return self._next

    async def create_buffers(self, nbytes: Sequence[int], labels: Sequence[str]) -> list[int]:
        """See Bridge."""
        self.crossings += 1
        made: list[Any] = []
        try:
            for n, label in zip(nbytes, labels, strict=True):
                made.append(self._device.create_buffer(size=n, usage=STORAGE, label=label))
        except Exception as error:
            for buffer in made:
                buffer.destroy()
            raise OutOfMemory(
                f"allocating {len(nbytes)} buffers ({sum(nbytes)} bytes): {error}"
            ) from None
        handles = [self._handle() for _ in made]
        self._buffers.update(zip(handles, made, strict=True))
        return handles

    def write(self, buffer: int, offset: int, data: np.ndarray) -> None:
        """See Bridge."""
        self.crossings += 1
        if not data.flags.c_contiguous:
            raise LimitExceeded("an array for the device must be contiguous")
        flat = data.reshape(-1).view(np.uint8)
        if flat.nbytes % 4:
            flat = np.concatenate([flat, np.zeros(-flat.nbytes % 4, np.uint8)])
        if flat.nbytes:
            self._device.queue.write_buffer(self._buffers[buffer], offset, flat)

    async def upload(
        self, buffer: int, offset: int, source: Source, source_offset: int, nbytes: int
    ) -> None:
        """See Bridge."""
        step = 4 << 20
        for start in range(0, nbytes, step):
            part = await source.read(source_offset + start, min(step, nbytes - start))
            self.write(buffer, offset + start, np.frombuffer(part, np.uint8))

    async def read(self, buffer: int, offset: int, nbytes: int) -> bytes:
        """See Bridge."""
        self.crossings += 1
        start = offset & ~3
        size = (offset - start + nbytes + 3) & ~3
        data = self._device.queue.read_buffer(self._buffers[buffer], start, size)
        return bytes(data)[offset - start : offset - start + nbytes]

    async def create_pipelines(self, specs: Sequence[PipelineSpec]) -> list[int]:
        """See Bridge."""
        return [self._pipeline(spec) for spec in specs]

    def _pipeline(self, spec: PipelineSpec) -> int:
        kernel, device = spec.kernel, self._device
        text = kernel.wgsl.replace("enable subgroups;", "")
        try:
            module = device.create_shader_module(code=text, label=kernel.name)
            layout = device.create_bind_group_layout(
                entries=[
                    {
                        "binding": b.number,
                        "visibility": 4,
                        "buffer": {"type": LAYOUT_TYPES[b.access]},
                    }
                    for b in kernel.bindings
                ]
            )
            pipeline = device.create_compute_pipeline(
                layout=device.create_pipeline_layout(bind_group_layouts=[layout]),
                compute={
                    "module": module,
                    "entry_point": "main",
                    "constants": dict(spec.constants),
                },
                label=kernel.name,
            )
        except Exception as error:
            raise WebGPUPyError(f"pipeline {kernel.name}: {error}") from None
        handle = self._handle()
        self._pipelines[handle] = pipeline, layout
        return handle

    async def load_plan(self, plan: Plan) -> int:
        """See Bridge."""
        self.crossings += 1
        loaded = _Loaded(plan)
        device = self._device
        if plan.params:
            size = (len(plan.params) + 15) & ~15
            loaded.params = device.create_buffer(size=size, usage=UNIFORM)
            device.queue.write_buffer(loaded.params, 0, plan.params.ljust(size, b"\0"))
        if plan.result_nbytes:
            loaded.staging = device.create_buffer(size=plan.result_nbytes, usage=STAGING)
        for at in range(0, len(plan.bind_groups), 3):
            pipeline, first, count = plan.bind_groups[at : at + 3]
            loaded.groups.append(self._bind_group(loaded, pipeline, first, count))
        handle = self._handle()
        self._plans[handle] = loaded
        return handle

    def _bind_group(self, loaded: _Loaded, handle: int, first: int, count: int) -> tuple[Any, Any]:
        pipeline, layout = self._pipelines[handle]
        entries = []
        for e in range(first, first + count):
            binding, buffer, offset, size = loaded.plan.entries[4 * e : 4 * e + 4]
            bound = loaded.params if buffer < 0 else self._buffers[buffer]
            resource = {"buffer": bound, "offset": offset, "size": size}
            entries.append({"binding": binding, "resource": resource})
        return pipeline, self._device.create_bind_group(layout=layout, entries=entries)

    async def run(self, plan: int, blob: np.ndarray) -> bytes:
        """See Bridge."""
        self.crossings += 1
        loaded = self._plans[plan]
        self._write_inputs(loaded.plan, blob)
        encoder = self._device.create_command_encoder()
        work = encoder.begin_compute_pass()
        self._encode(work, loaded, 0, len(loaded.plan.labels))
        work.end()
        return self._finish(encoder, loaded)

    async def profile(self, plan: int, blob: np.ndarray) -> tuple[bytes, list[float]]:
        """See Bridge; FeatureMissing without timestamp-query."""
        if "timestamp-query" not in self.features:
            raise FeatureMissing("profile: this device has no timestamp-query")
        self.crossings += 1
        loaded = self._plans[plan]
        count = len(loaded.plan.labels)
        self._write_inputs(loaded.plan, blob)
        queries = self._device.create_query_set(type="timestamp", count=max(2 * count, 2))
        resolved = self._device.create_buffer(size=max(16 * count, 16), usage=0x200 | 0x4)
        encoder = self._device.create_command_encoder()
        for i in range(count):
            work = encoder.begin_compute_pass(
                timestamp_writes={
                    "query_set": queries,
                    "beginning_of_pass_write_index": 2 * i,
                    "end_of_pass_write_index": 2 * i + 1,
                }
            )
            self._encode(work, loaded, i, i + 1)
            work.end()
        if count:
            encoder.resolve_query_set(queries, 0, 2 * count, resolved, 0)
        result = self._finish(encoder, loaded)
        stamps = np.frombuffer(self._device.queue.read_buffer(resolved), np.uint64)[: 2 * count]
        resolved.destroy()
        spent = (stamps[1::2].astype(np.int64) - stamps[::2].astype(np.int64)) / 1000
        return result, [max(float(t), 0.0) for t in spent]

    async def repeat(self, plan: int, count: int) -> float:
        """See Bridge."""
        self.crossings += 1
        loaded = self._plans[plan]
        started = time.perf_counter()
        encoder = self._device.create_command_encoder()
        for _ in range(count):
            work = encoder.begin_compute_pass()
            self._encode(work, loaded, 0, len(loaded.plan.labels))
            work.end()
        self._finish(encoder, loaded)
        return 1e3 * (time.perf_counter() - started)

    def _write_inputs(self, plan: Plan, blob: np.ndarray) -> None:
        queue = self._device.queue
        for t in plan.inputs:
            part = np.ascontiguousarray(blob[t.offset : t.offset + t.nbytes])
            if part.nbytes:
                queue.write_buffer(self._buffers[t.buffer], 0, part)
        if plan.fault is not None:
            queue.write_buffer(self._buffers[plan.fault], 0, bytes(16))

    def _encode(self, work: Any, loaded: _Loaded, first: int, end: int) -> None:
        for i in range(first, end):
            group, x, y, z = loaded.plan.commands[4 * i : 4 * i + 4]
            pipeline, bind_group = loaded.groups[group]
            work.set_pipeline(pipeline)
            work.set_bind_group(0, bind_group)
            work.dispatch_workgroups(x, y, z)

    def _finish(self, encoder: Any, loaded: _Loaded) -> bytes:
        plan = loaded.plan
        for t in plan.outputs:
            source = self._buffers[t.buffer]
            encoder.copy_buffer_to_buffer(source, 0, loaded.staging, t.offset, t.nbytes)
        if plan.fault is not None:
            end = plan.result_nbytes - 16
            fault = self._buffers[plan.fault]
            encoder.copy_buffer_to_buffer(fault, 0, loaded.staging, end, 16)
        self._device.queue.submit([encoder.finish()])
        if loaded.staging is None:
            return b""
        loaded.staging.map_sync(1)
        result = bytes(loaded.staging.read_mapped())
        loaded.staging.unmap()
        return result

    def destroy_plan(self, plan: int) -> None:
        """See Bridge."""
        loaded = self._plans.pop(plan, None)
        if loaded is not None:
            loaded.destroy()

    def destroy_buffers(self, buffers: Sequence[int]) -> None:
        """See Bridge."""
        for handle in buffers:
            buffer = self._buffers.pop(handle, None)
            if buffer is not None:
                buffer.destroy()

    def plan_nbytes(self, plan: int) -> int:
        """See Bridge."""
        return self._plans[plan].nbytes if plan in self._plans else 0

    def stats(self) -> dict[str, int]:
        """See Bridge."""
        held = sum(b.size for b in self._buffers.values())
        return {
            "buffers": len(self._buffers),
            "buffer_nbytes": held + sum(p.nbytes for p in self._plans.values()),
            "plans": len(self._plans),
            "pipelines": len(self._pipelines),
        }

    async def close(self) -> None:
        """See Bridge."""
        for loaded in self._plans.values():
            loaded.destroy()
        self.destroy_buffers(list(self._buffers))
        self._plans.clear()
        self._device.destroy()
