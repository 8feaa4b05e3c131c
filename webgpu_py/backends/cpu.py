"""Plans on NumPy: no GPU, slow and right. Runs every node's reference on the planned buffers.

It shares slots as the GPU does, so a wrong memory plan shows here too.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import DeviceLost
from ..graph.call import Call
from ..graph.limits import Limits
from ..graph.plan import PipelineSpec, Plan
from ..graph.reference import run_reference
from ..graph.values import Source, Tensor, TensorSpec, ValueId

_HUGE = 1 << 40


class CpuBridge:
    """An executor without a GPU; see `webgpu_py.graph.bridge.Bridge`."""

    kind = "cpu"
    lost = False

    def __init__(self) -> None:
        self.info: dict[str, Any] = {
            "vendor": "numpy",
            "architecture": "cpu",
            "device": "",
            "description": f"NumPy {np.__version__}",
            "software": True,
        }
        self.limits = Limits(max_buffer_size=_HUGE, max_storage_buffer_binding_size=_HUGE)
        self.features: frozenset[str] = frozenset()
        self.crossings = 0
        self._buffers: dict[int, np.ndarray] = {}
        self._plans: dict[int, Plan] = {}
        self._pipelines = 0
        self._next = 1

    def _handle(self) -> int:
        self._next += 1
        return self._next

    async def create_buffers(self, nbytes: Sequence[int], labels: Sequence[str]) -> list[int]:
        """See Bridge."""
        self.crossings += 1
        handles = [self._handle() for _ in nbytes]
        for handle, n in zip(handles, nbytes, strict=True):
            self._buffers[handle] = np.zeros(n, np.uint8)
        return handles

    def write(self, buffer: int, offset: int, data: np.ndarray) -> None:
        """See Bridge."""
        self.crossings += 1
        flat = data.reshape(-1).view(np.uint8)
        self._buffers[buffer][offset : offset + flat.nbytes] = flat

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
        return self._buffers[buffer][offset : offset + nbytes].tobytes()

    async def create_pipelines(self, specs: Sequence[PipelineSpec]) -> list[int]:
        """See Bridge: nothing is compiled, the handles only count."""
        self._pipelines += len(specs)
        return [self._handle() for _ in specs]

    async def load_plan(self, plan: Plan) -> int:
        """See Bridge."""
        self.crossings += 1
        handle = self._handle()
        self._plans[handle] = plan
        return handle

    async def run(self, plan: int, blob: np.ndarray) -> bytes:
        """See Bridge."""
        return (await self.profile(plan, blob))[0]

    async def profile(self, plan: int, blob: np.ndarray) -> tuple[bytes, list[float]]:
        """See Bridge; one time a dispatch of the GPU's plan, a node's time on its first."""
        self.crossings += 1
        if plan not in self._plans:
            raise DeviceLost(f"plan {plan} was destroyed")
        p = self._plans[plan]
        for t in p.inputs:
            self._buffers[t.buffer][: t.nbytes] = blob[t.offset : t.offset + t.nbytes]
        env = p.env
        if p.symint_words:
            words = blob[: p.inputs[0].nbytes].view(np.int32)
            env = replace(env, symints={i: int(words[w]) for i, w in p.symint_words.items()})
        times = []
        for call in p.calls:
            start = time.perf_counter()
            at = call.with_env(env)
            run_reference(at, lambda i: self._array(p, at, i))  # noqa: B023
            times.append(1e6 * (time.perf_counter() - start))
        out = [self._buffers[t.buffer][: t.nbytes].tobytes() for t in p.outputs]
        if p.fault is not None:
            out.append(bytes(16))
        return b"".join(out), (times + [0.0] * len(p.labels))[: len(p.labels)]

    async def repeat(self, plan: int, count: int) -> float:
        """See Bridge."""
        loaded = self._plans[plan]
        blob = np.zeros(loaded.blob_nbytes, np.uint8)
        for t in loaded.inputs:
            blob[t.offset : t.offset + t.nbytes] = self._buffers[t.buffer][: t.nbytes]
        start = time.perf_counter()
        for _ in range(count):
            await self.run(plan, blob)
        return 1e3 * (time.perf_counter() - start)

    def _array(self, plan: Plan, call: Call, value_id: ValueId) -> np.ndarray:
        value = call.graph.values[value_id]
        assert isinstance(value, Tensor)
        spec = TensorSpec(value.spec.dtype, call.env.dims[value_id])
        buffer = self._buffers[plan.buffer_of[value_id]]
        start = plan.offset_of.get(value_id, 0)
        return buffer[start : start + spec.nbytes].view(spec.dtype).reshape(spec.dims)

    def destroy_plan(self, plan: int) -> None:
        """See Bridge."""
        self._plans.pop(plan, None)

    def destroy_buffers(self, buffers: Sequence[int]) -> None:
        """See Bridge."""
        for buffer in buffers:
            self._buffers.pop(buffer, None)

    def plan_nbytes(self, plan: int) -> int:
        """See Bridge: a plan holds no device memory here."""
        return 0

    def stats(self) -> dict[str, int]:
        """See Bridge."""
        return {
            "buffers": len(self._buffers),
            "buffer_nbytes": sum(b.nbytes for b in self._buffers.values()),
            "plans": len(self._plans),
            "pipelines": self._pipelines,
        }

    async def close(self) -> None:
        """See Bridge."""
        self._buffers.clear()
        self._plans.clear()
