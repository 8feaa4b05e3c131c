"""A graph on a device: built once, run many times, one crossing a run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import IndexOutOfRange, LimitExceeded, ShapeError
from . import boundary
from .call import Call, Env
from .constants import upload_constant
from .limits import Limits
from .lowering import Lowered, SessionSlots, lower
from .memory import MemoryPlan, Upload, plan_memory
from .plan import PipelineKey, Plan, encode, layout_transfers, specs_of
from .shapes import DimsKey, dims_key, propagate, resolve
from .values import Dim, GraphIR, Port, SymInt, Tensor, TensorSpec, ValueId

if TYPE_CHECKING:
    from ..device import Device


Progress = Callable[[int, int], None]


@dataclass(slots=True)
class _Variant:
    """A loaded plan, with what a run needs beside it."""

    handle: int
    plan: Plan
    lowered: Lowered


@dataclass(frozen=True, slots=True)
class Replay:
    """What a loop in JavaScript needs to run one variant by itself.

    `nodes` says for each dispatch which node it belongs to; `buffers` has a handle for every
    port by name, `live` and `fault` among them; `words` the live word of every SymInt input.
    """

    plan: int
    nodes: tuple[int, ...]
    buffers: dict[str, int]
    words: dict[str, int]


@dataclass(slots=True)
class _Timings:
    build_ms: float = 0.0
    run_ms: float = 0.0
    kernels: list[tuple[str, float]] = field(default_factory=list)


class Session:
    """Runs one graph on one device; made by `Graph.build` or `Session.build`."""

    def __init__(
        self, device: Device, graph: GraphIR, limits: Limits, calls: list[Call], memory: MemoryPlan
    ) -> None:
        self.device = device
        self.graph = graph
        self._limits = limits
        self._calls = calls
        self._memory = memory
        self._slots = SessionSlots(
            live=memory.add(4 * (len(graph.values) + 4 * len(calls) + 4), "state", "live words"),
            fault=memory.add(16, "state", "fault words"),
            dummy=memory.add(16, "state", "absent operands"),
        )
        self._buffers: list[int] = []
        self._transient: list[int] = []
        self._variants: dict[DimsKey, _Variant] = {}
        self._lock = asyncio.Lock()
        self._timings = _Timings()
        self._closed = False

    # -- building

    @classmethod
    async def build(
        cls,
        device: Device,
        graph: GraphIR,
        limits: Mapping[str, int] | None = None,
        progress: Progress | None = None,
    ) -> Session:
        """Check, plan, lower, and only then allocate, upload and prepack.

        `limits` are injected upper bounds on the device's, for tests. `progress` hears of every
        constant: (bytes done, bytes in all). Errors name the node.
        """
        start = time.perf_counter()
        capped = device.limits.capped(limits)
        calls = resolve(graph)
        env = propagate(graph, calls, {}, {})
        memory = plan_memory(graph, calls)
        session = cls(device, graph, capped, calls, memory)
        lowered = session._lower(env)
        session._check_sizes()
        try:
            await session._allocate()
            variant = await session._load(lowered)
            session._variants[dims_key(env)] = variant
            await session._prepack(lowered, progress)
        except BaseException:
            session.close()
            raise
        session._timings.build_ms = 1e3 * (time.perf_counter() - start)
        return session

    def _lower(self, env: Env) -> Lowered:
        # What is done once at build needs no second lowering for other live dims.
        calls = [c for c in self._calls if not self._variants or c.index not in self._memory.once]
        device = self.device
        return lower(
            calls,
            env,
            self._limits,
            device.features,
            self._memory,
            self._slots,
            bool(device.info.get("software")),
        )

    def _check_sizes(self) -> None:
        limit = self._limits.max_buffer_size
        for slot in self._memory.slots:
            if slot.nbytes > limit:
                raise LimitExceeded(
                    f"{slot.label} needs a buffer of {slot.nbytes} bytes, this device allows "
                    f"{limit}; use a smaller model or a device with a larger max_buffer_size"
                )

    async def _allocate(self) -> None:
        """Buffers for slots that have none yet (scratch may have been added by a variant)."""
        new = self._memory.slots[len(self._buffers) :]
        if new:
            self._buffers += await self.device.bridge.create_buffers(
                [s.nbytes for s in new], [s.label for s in new]
            )

    async def _load(self, lowered: Lowered) -> _Variant:
        await self._allocate()
        handles = await self._pipelines(lowered)
        plan = encode(lowered.dispatches, handles, self._buffers, self._limits, self._slots.fault)
        env = lowered.env
        live = (self._buffers[self._slots.live], 4 * len(lowered.live))
        slot_of, values = self._memory.slot_of, self.graph.values
        plan.buffer_of = {i: self._buffers[s] for i, s in slot_of.items()}
        sizes = [live] + [
            (plan.buffer_of[p.value], self._live_spec(env, p.value).nbytes)
            for p in self.graph.inputs
            if isinstance(values[p.value], Tensor)
        ]
        plan.inputs = layout_transfers(sizes)
        plan.outputs = layout_transfers(
            [
                (plan.buffer_of[p.value], self._live_spec(env, p.value).nbytes)
                for p in self.graph.outputs
            ]
        )
        skipped = self._memory.once | self._memory.elided
        plan.calls = [c.with_env(env) for c in self._calls if c.index not in skipped]
        plan.env = env
        plan.symint_words = lowered.symint_words
        return _Variant(await self.device.bridge.load_plan(plan), plan, lowered)

    async def _pipelines(self, lowered: Lowered) -> dict[PipelineKey, int]:
        return await self.device.pipelines(specs_of([*lowered.once, *lowered.dispatches]))

    async def _prepack(self, lowered: Lowered, progress: Progress | None) -> None:
        """Upload every constant once; run the operators that only rearrange constants."""
        bridge = self.device.bridge
        batches = self._memory.batches
        uploads = [*self._memory.uploads, *(u for b in batches for u in b.uploads)]
        total = sum(self.graph.constants[u.constant].spec.nbytes for u in uploads)
        done = 0

        async def upload(some: Sequence[Upload]) -> None:
            nonlocal done
            for one in some:
                await self._upload(one)
                done += self.graph.constants[one.constant].spec.nbytes
                if progress:
                    progress(done, total)

        await upload(self._memory.uploads)
        handles = await self._pipelines(lowered)
        for batch in batches:
            await upload(batch.uploads)
            dispatches = [d for d in lowered.once if d.node in batch.nodes]
            plan = encode(dispatches, handles, self._buffers, self._limits, self._slots.fault)
            plan.calls = [c.with_env(lowered.env) for c in self._calls if c.index in batch.nodes]
            plan.buffer_of = {i: self._buffers[s] for i, s in self._memory.slot_of.items()}
            plan.offset_of = self._memory.offset_of
            handle = await bridge.load_plan(plan)
            await bridge.run(handle, np.empty(0, np.uint8))
            bridge.destroy_plan(handle)
        transient = [
            self._buffers[i] for i, s in enumerate(self._memory.slots) if s.kind == "transient"
        ]
        bridge.destroy_buffers(transient)
        self._transient = transient

    async def _upload(self, upload: Upload, fresh: bool = True) -> None:
        constant = self.graph.constants[upload.constant]
        buffer = self._buffers[upload.slot]
        await upload_constant(self.device.bridge, buffer, constant, upload.offset, fresh)

    # -- running

    async def run(self, **inputs: Any) -> dict[str, np.ndarray]:
        """Run on host arrays by input name; the outputs by name, int64 inputs narrowed.

        Raises ShapeError, DtypeError or IndexOutOfRange before anything reaches the device, and
        IndexOutOfRange after it for an index that only the device knows.
        """
        names = {p.name for p in self.graph.inputs}
        if names != set(inputs):
            raise ShapeError(f"run() takes {sorted(names)}, got {sorted(inputs)}")
        outputs = await self.run_list([inputs[p.name] for p in self.graph.inputs])
        return {p.name: a for p, a in zip(self.graph.outputs, outputs, strict=True)}

    async def run_list(self, inputs: Sequence[Any]) -> list[np.ndarray]:
        """Run on arrays in input order; the outputs in output order, in device dtypes."""
        return (await self._run(inputs, profile=False))[0]

    async def profile(self, **inputs: Any) -> list[tuple[str, float]]:
        """Run once with a pass and a timestamp pair a dispatch: (label, microseconds) each.

        FeatureMissing where the device has no timestamp-query.
        """
        self._timings.kernels = (
            await self._run([inputs[p.name] for p in self.graph.inputs], profile=True)
        )[1]
        return self._timings.kernels

    async def _run(
        self, inputs: Sequence[Any], profile: bool
    ) -> tuple[list[np.ndarray], list[tuple[str, float]]]:
        self._check_open()
        async with self._lock:
            start = time.perf_counter()
            arrays, env = self._bind(inputs)
            variant = await self._variant(env)
            blob = self._blob(variant, arrays, env)
            bridge = self.device.bridge
            times: list[tuple[str, float]] = []
            if profile:
                result, spent = await bridge.profile(variant.handle, blob)
                times = list(zip(variant.plan.labels, spent, strict=True))
            else:
                result = await bridge.run(variant.handle, blob)
            outputs = self._outputs(variant, env, result)
            self._timings.run_ms = 1e3 * (time.perf_counter() - start)
            return outputs, times

    def _bind(self, inputs: Sequence[Any]) -> tuple[list[np.ndarray], Env]:
        ports = self.graph.inputs
        if len(inputs) != len(ports):
            raise ShapeError(f"{len(inputs)} inputs, this graph takes {len(ports)}")
        live: dict[ValueId, tuple[int, ...]] = {}
        host: dict[ValueId, np.ndarray] = {}
        symints: dict[ValueId, int] = {}
        arrays = []
        for port, given in zip(ports, inputs, strict=True):
            value = self.graph.values[port.value]
            if isinstance(value, SymInt):
                symints[port.value] = _symint(port.name, given)
                continue
            assert isinstance(value, Tensor)
            array = boundary.to_device(port.name, given, value.spec.dtype)
            boundary.check_live(port.name, array.shape, value.spec.dims)
            live[port.value] = array.shape
            host[port.value] = np.asarray(given)
            arrays.append(array)
        _check_named_dims(ports, live)
        return arrays, propagate(self.graph, self._calls, live, host, symints)

    async def _variant(self, env: Env) -> _Variant:
        key = dims_key(env)
        if key not in self._variants:
            self._variants[key] = await self._load(self._lower(env))
        return self._variants[key]

    def _blob(self, variant: _Variant, arrays: Sequence[np.ndarray], env: Env) -> np.ndarray:
        blob = np.zeros(variant.plan.blob_nbytes, np.uint8)
        words = [value(env) for value in variant.lowered.live]
        parts = [np.array(words, np.int32), *arrays]
        for transfer, part in zip(variant.plan.inputs, parts, strict=True):
            blob[transfer.offset : transfer.offset + part.nbytes] = part.reshape(-1).view(np.uint8)
        return blob

    def _outputs(self, variant: _Variant, env: Env, result: bytes) -> list[np.ndarray]:
        view = memoryview(result)
        if variant.plan.fault is not None:
            node, position, value = np.frombuffer(view[-16:-4], np.uint32)
            if node:
                raise self._calls[int(node) - 1].error(
                    IndexOutOfRange,
                    f"index {int(value.astype(np.int32))} at position {int(position)} "
                    "is out of range",
                )
        return [
            boundary.from_device(
                view[t.offset : t.offset + t.nbytes], self._live_spec(env, p.value)
            )
            for p, t in zip(self.graph.outputs, variant.plan.outputs, strict=True)
        ]

    def _live_spec(self, env: Env, value_id: ValueId) -> TensorSpec:
        value = self.graph.values[value_id]
        assert isinstance(value, Tensor)
        return TensorSpec(value.spec.dtype, env.dims[value_id])

    async def replay(self, **dims: tuple[int, ...]) -> Replay:
        """Lower and load the variant for live dims by input name; others stay maximal."""
        self._check_open()
        async with self._lock:
            live = {p.value: dims[p.name] for p in self.graph.inputs if p.name in dims}
            for port in self.graph.inputs:
                value = self.graph.values[port.value]
                if port.value in live and isinstance(value, Tensor):
                    boundary.check_live(port.name, live[port.value], value.spec.dims)
            variant = await self._variant(propagate(self.graph, self._calls, live, {}))
        ports = [*self.graph.inputs, *self.graph.outputs]
        buffer_of, words = variant.plan.buffer_of, variant.plan.symint_words
        buffers = {p.name: buffer_of[p.value] for p in ports if p.value in buffer_of}
        buffers["live"] = self._buffers[self._slots.live]
        buffers["fault"] = self._buffers[self._slots.fault]
        return Replay(
            variant.handle,
            tuple(d.node for d in variant.lowered.dispatches),
            buffers,
            {p.name: words[p.value] for p in self.graph.inputs if p.value in words},
        )

    # -- state and facts

    async def reset(self) -> None:
        """Give every mutable tensor (KV caches) its initial content again."""
        self._check_open()
        async with self._lock:
            for upload in self._memory.uploads:
                if self._memory.slots[upload.slot].kind == "state":
                    await self._upload(upload, fresh=False)

    def memory(self) -> dict[str, int]:
        """Bytes held on the device by kind, equal to what was allocated; `total` adds them up."""
        live = [s for s in self._memory.slots if s.kind != "transient"]
        found = {
            kind: sum(s.nbytes for s in live if s.kind == kind)
            for kind in ("weights", "state", "activations")
        }
        found["plans"] = sum(
            self.device.bridge.plan_nbytes(v.handle) for v in self._variants.values()
        )
        return found | {"total": sum(found.values())}

    def timings(self) -> dict[str, Any]:
        """Milliseconds of build and last run, and the last `profile`'s time per dispatch."""
        return {
            "build_ms": self._timings.build_ms,
            "run_ms": self._timings.run_ms,
            "kernels": list(self._timings.kernels),
        }

    @property
    def dispatches(self) -> int:
        """Dispatches of the first (maximal) variant."""
        return len(next(iter(self._variants.values())).lowered.dispatches)

    def _check_open(self) -> None:
        if self._closed:
            raise ShapeError("session is closed; build the graph again")

    def close(self) -> None:
        """Free everything this session holds on the device; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        for variant in self._variants.values():
            self.device.bridge.destroy_plan(variant.handle)
        gone = set(self._transient)
        self.device.bridge.destroy_buffers([b for b in self._buffers if b not in gone])


def _symint(name: str, given: Any) -> int:
    value = int(given)
    if not -(2**31) <= value < 2**31:
        raise IndexOutOfRange(f"input {name!r}: {value} does not fit int32")
    return value


def _check_named_dims(ports: Sequence[Port], live: Mapping[ValueId, tuple[int, ...]]) -> None:
    seen: dict[str, tuple[int, str]] = {}
    for port in ports:
        if port.dims is None or port.value not in live:
            continue
        for at, (dim, size) in enumerate(zip(port.dims, live[port.value], strict=True)):
            if isinstance(dim, Dim):
                first, where = seen.setdefault(dim.name, (size, port.name))
                if first != size:
                    raise ShapeError(
                        f"dim {dim.name!r} is {first} in {where!r} and {size} in {port.name!r}"
                    )
            elif dim != size:
                raise ShapeError(f"input {port.name!r} dim {at} is {size}, must be {dim}")
