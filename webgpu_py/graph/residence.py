"""A graph's presence on a device: its buffers, its constants, and a loaded plan a variant."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..errors import IndexOutOfRange, LimitExceeded, ShapeError
from ..events import since, tell
from . import boundary
from .call import Call, Env
from .choices import Choices
from .constants import upload_constant
from .limits import SMALLER, Limits
from .lowering import Dispatch, Lowered, SessionSlots, Target, lower
from .memory import MemoryPlan, Slot, Upload, plan_memory, tensors_read
from .plan import PipelineKey, Plan, encode, layout_transfers, specs_of
from .shapes import DimsKey, dims_key
from .values import GraphIR, Tensor, TensorSpec, ValueId

if TYPE_CHECKING:
    from ..device import Device

Progress = Callable[[int, int], None]


@dataclass(slots=True)
class Variant:
    """The plan of one set of live dims, loaded, with what a run needs beside it."""

    handle: int
    plan: Plan
    lowered: Lowered


class Residence:
    """What one session holds on its device. Nothing is created before `settle`."""

    def __init__(self, device: Device, graph: GraphIR, calls: list[Call], limits: Limits) -> None:
        self.device = device
        self.graph = graph
        # Not whatever is behind the device by then: after a restart that knows none of these.
        self.bridge = device.bridge
        self.memory: MemoryPlan = plan_memory(graph, calls)
        self.slots = SessionSlots(
            live=self._own(4 * (len(graph.values) + 4 * len(calls) + 4), "live words"),
            fault=self._own(16, "fault words"),
            dummy=self._own(16, "absent operands"),
        )
        self.variants: dict[DimsKey, Variant] = {}
        self._calls = calls
        self._limits = limits
        self._buffers: list[int] = []
        self._begun = self._given_up = False

    def _own(self, nbytes: int, label: str) -> int:
        return self.memory.add(nbytes, "state", label)

    async def settle(
        self, lowered: Lowered, prepare: Sequence[Env], progress: Progress | None
    ) -> None:
        """Allocate, upload constants and prepack; meanwhile load the variants, the first first."""
        self._check_sizes()
        await self._allocate()
        loading = asyncio.ensure_future(self._load_all(lowered, prepare))
        try:
            await self._prepack(lowered, loading, progress)
            await asyncio.shield(loading)
        except BaseException:
            # What a browser is making can't be called off; once there, it is freed like the rest.
            self._given_up = True
            await asyncio.shield(asyncio.gather(loading, return_exceptions=True))
            raise

    async def _load_all(self, first: Lowered, envs: Sequence[Env]) -> None:
        """Load the variants; a browser compiles the kernels of all of them side by side."""
        self._begun = True
        # What weights wait for is asked for before what they don't.
        compiling = [self._compile(first.once), self._compile(first.dispatches)]
        found = {dims_key(first.env): first}
        try:
            for env in envs:
                await asyncio.sleep(0)
                if dims_key(env) not in found and not self._given_up:
                    found[dims_key(env)] = self.lower(env)
                    compiling.append(self._compile(found[dims_key(env)].dispatches))
        finally:
            made = await asyncio.gather(*compiling, return_exceptions=True)
        for error in made:
            if isinstance(error, BaseException):
                raise error
        for key, lowered in found.items():
            if not self._given_up:
                self.variants[key] = await self.load(lowered)

    def _compile(self, dispatches: Sequence[Dispatch]) -> asyncio.Future[dict[PipelineKey, int]]:
        return asyncio.ensure_future(self.device.pipelines(specs_of(dispatches)))

    async def variant(self, env: Env) -> Variant:
        """The variant of `env`'s dims, lowered and loaded at its first use."""
        key = dims_key(env)
        if key not in self.variants:
            self.variants[key] = await self.load(self.lower(env))
        return self.variants[key]

    def buffer(self, slot: int) -> int:
        """The bridge's handle of a slot's buffer."""
        return self._buffers[slot]

    def lower(self, env: Env, choices: Choices | None = None) -> Lowered:
        """Dispatches at `env`'s live dims, by the device's choices or others."""
        # What is done once at build needs no second lowering for other live dims.
        calls = [c for c in self._calls if not self._begun or c.index not in self.memory.once]
        device = self.device
        target = Target(
            self._limits,
            device.features,
            bool(device.info.get("software")),
            int(device.info.get("subgroup_min_size", 0)),
            choices or device.choices,
        )
        try:
            return lower(calls, env, target, self.memory, self.slots)
        except BaseException:
            self._forget_new_slots()
            raise

    def _forget_new_slots(self) -> None:
        """Leave out slots that have no buffer: other variants may do without."""
        count = len(self._buffers)
        del self.memory.slots[count:]
        self.slots.scratch = [s for s in self.slots.scratch if s < count]

    def replace(self, variant: Variant) -> None:
        """Take a variant in place of that of the same dims, and free scratch that none uses."""
        key = dims_key(variant.lowered.env)
        if key in self.variants:
            self.drop(self.variants[key])
        self.variants[key] = variant
        dispatches = [d for v in self.variants.values() for d in v.lowered.dispatches]
        used = {bound.slot for d in dispatches for bound in d.bound}
        unused = [s for s in self.slots.scratch if s not in used]
        self.bridge.destroy_buffers([self._buffers[s] for s in unused])
        for s in unused:
            self.slots.scratch.remove(s)
            self.memory.slots[s].kind = "transient"

    def drop(self, variant: Variant) -> None:
        """Free a variant's plan."""
        self.bridge.destroy_plan(variant.handle)

    def _check_sizes(self) -> None:
        limit = self._limits.max_buffer_size
        for slot in self.memory.slots:
            if slot.nbytes > limit:
                raise LimitExceeded(
                    f"{slot.label} needs a buffer of {slot.nbytes} bytes, this device allows "
                    f"{limit}; {SMALLER} or a device with a larger max_buffer_size"
                )

    async def _allocate(self) -> None:
        """Buffers for slots that have none yet (scratch may have been added by a variant)."""
        new = self.memory.slots[len(self._buffers) :]
        if not new:
            return
        try:
            self._buffers += await self.bridge.create_buffers(
                [s.nbytes for s in new], [s.label for s in new]
            )
        except BaseException:
            self._forget_new_slots()
            raise

    async def load(self, lowered: Lowered) -> Variant:
        """The plan of what was lowered, with its buffers and pipelines."""
        await self._allocate()
        handles = await self._pipelines(lowered)
        plan = encode(lowered.dispatches, handles, self._buffers, self._limits, self.slots.fault)
        env = lowered.env
        live = (self._buffers[self.slots.live], 4 * len(lowered.live))
        slot_of, values = self.memory.slot_of, self.graph.values
        plan.buffer_of = {i: self._buffers[s] for i, s in slot_of.items()}
        plan.offset_of = self.memory.offset_of
        sizes = [live] + [
            (plan.buffer_of[p.value], self.live_spec(env, p.value).nbytes)
            for p in self.graph.inputs
            if isinstance(values[p.value], Tensor)
        ]
        plan.inputs = layout_transfers(sizes)
        plan.outputs = layout_transfers(
            [
                (plan.buffer_of[p.value], self.live_spec(env, p.value).nbytes)
                for p in self.graph.outputs
            ]
        )
        skipped = self.memory.once | self.memory.elided
        plan.calls = [c.with_env(env) for c in self._calls if c.index not in skipped]
        plan.env = env
        plan.symint_words = lowered.symint_words
        return Variant(await self.bridge.load_plan(plan), plan, lowered)

    async def _pipelines(self, lowered: Lowered) -> dict[PipelineKey, int]:
        return await self.device.pipelines(specs_of([*lowered.once, *lowered.dispatches]))

    async def _prepack(
        self,
        lowered: Lowered,
        loading: asyncio.Future[None],
        progress: Progress | None,
    ) -> None:
        """Upload every constant once; run the operators that only rearrange constants.

        Raises what `loading` raised, not only once all has arrived.
        """
        batches = self.memory.batches
        uploads = [*self.memory.uploads, *(u for b in batches for u in b.uploads)]
        total = sum(self.graph.constants[u.constant].spec.nbytes for u in uploads)
        done, started = 0, time.perf_counter()

        async def upload(some: Sequence[Upload]) -> None:
            nonlocal done
            for one in some:
                if loading.done():
                    loading.result()
                await self._upload(one)
                done += self.graph.constants[one.constant].spec.nbytes
                if progress:
                    progress(done, total)

        # Small tensors lie all over a file: first, they would wait for the whole of a download.
        early = self._read_once()
        await upload([u for u in self.memory.uploads if u.slot in early])
        for batch in batches:
            await upload(batch.uploads)
            dispatches = [d for d in lowered.once if d.node in batch.nodes]
            await self.run_nodes(dispatches, batch.nodes, lowered.env)
        await upload([u for u in self.memory.uploads if u.slot not in early])
        self._free(lambda slot: slot.kind == "transient")
        if uploads:
            # What went wrong with one comes with the next answer, which should not be a user's.
            await self.bridge.read(self._buffers[self.slots.fault], 0, 16)
            tell("weights.prepacked", {"nbytes": total, "ms": since(started)})

    async def run_nodes(self, dispatches: Sequence[Dispatch], nodes: set[int], env: Env) -> None:
        """Run some nodes alone, on what lies in the buffers; IndexOutOfRange."""
        handles = await self.device.pipelines(specs_of(dispatches))
        plan = encode(dispatches, handles, self._buffers, self._limits, self.slots.fault)
        plan.calls = [c.with_env(env) for c in self._calls if c.index in nodes]
        plan.buffer_of = {i: self._buffers[s] for i, s in self.memory.slot_of.items()}
        plan.offset_of = self.memory.offset_of
        plan.env = env
        handle = await self.bridge.load_plan(plan)
        try:
            self.check_fault(plan, await self.bridge.run(handle, np.empty(0, np.uint8)))
        finally:
            self.bridge.destroy_plan(handle)

    def check_fault(self, plan: Plan, result: bytes) -> None:
        """IndexOutOfRange for an index that a kernel found, by the fault words after a result."""
        if plan.fault is None:
            return
        node, position, value = np.frombuffer(memoryview(result)[-16:-4], np.uint32)
        if node:
            raise self._calls[int(node) - 1].error(
                IndexOutOfRange,
                f"index {int(value.astype(np.int32))} at position {int(position)} is out of range",
            )

    def _read_once(self) -> set[int]:
        """Slots that operators read which run at build."""
        once = [c for c in self._calls if c.index in self.memory.once]
        slot_of = self.memory.slot_of
        return {slot_of[i] for c in once for i in tensors_read(c) if i in slot_of}

    async def _upload(self, upload: Upload, fresh: bool = True) -> None:
        constant = self.graph.constants[upload.constant]
        buffer = self._buffers[upload.slot]
        await upload_constant(self.device.bridge, buffer, constant, upload.offset, fresh)

    async def reset(self) -> None:
        """Give mutable tensors their initial content again."""
        for upload in self.memory.uploads:
            if self.memory.slots[upload.slot].kind == "state":
                await self._upload(upload, fresh=False)

    async def read(self, value_id: ValueId, offset: int, nbytes: int | None) -> bytes:
        """Bytes of a tensor whose buffer is its own between runs; ShapeError."""
        slot = self.memory.slot_of.get(value_id)
        if slot is None:
            raise ShapeError(f"value {value_id} is no tensor on the device")
        value = self.graph.values[value_id]
        assert isinstance(value, Tensor)
        if self.memory.slots[slot].kind not in ("weights", "state"):
            raise ShapeError(f"value {value_id} does not last from run to run; make it an output")
        left = value.spec.nbytes - offset
        if not 0 <= (left if nbytes is None else nbytes) <= left or offset < 0:
            raise ShapeError(
                f"value {value_id} has {value.spec.nbytes} bytes, {nbytes} from {offset} were asked"
            )
        count = left if nbytes is None else nbytes
        offset += self.memory.offset_of.get(value_id, 0)
        return await self.bridge.read(self._buffers[slot], offset, count)

    async def read_live(self, env: Env, value_id: ValueId) -> np.ndarray:
        """Any tensor as it lies in its buffer at the moment, at its live dims."""
        spec = self.live_spec(env, value_id)
        buffer = self._buffers[self.memory.slot_of[value_id]]
        raw = await self.bridge.read(buffer, self.memory.offset_of.get(value_id, 0), spec.nbytes)
        return boundary.from_device(raw, spec)

    def live_spec(self, env: Env, value_id: ValueId) -> TensorSpec:
        """A tensor's dtype and live dims."""
        value = self.graph.values[value_id]
        assert isinstance(value, Tensor)
        return TensorSpec(value.spec.dtype, env.dims[value_id])

    def nbytes(self) -> dict[str, int]:
        """Bytes held, by kind, equal to what was allocated."""
        held = [s for s in self.memory.slots if s.kind != "transient"]
        found = {
            kind: sum(s.nbytes for s in held if s.kind == kind)
            for kind in ("weights", "state", "activations")
        }
        plan_nbytes = self.bridge.plan_nbytes
        found["plans"] = sum(plan_nbytes(v.handle) for v in self.variants.values())
        return found

    def leave(self) -> None:
        """Free everything."""
        for variant in self.variants.values():
            self.bridge.destroy_plan(variant.handle)
        self._free(lambda slot: True)

    def _free(self, chosen: Callable[[Slot], bool]) -> None:
        slots = zip(self._buffers, self.memory.slots, strict=False)
        self.bridge.destroy_buffers([b for b, s in slots if chosen(s)])
