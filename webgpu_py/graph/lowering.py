"""Turning calls at live dims into dispatches: the one place where Python decides about the GPU."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import cast

from ..errors import LimitExceeded
from .call import Call, Env, TensorRef
from .choices import Choices
from .kernel import Binding, Kernel, Number, baked, load_kernel
from .limits import SMALLER, Limits, padded
from .memory import MemoryPlan
from .operator import Operator
from .values import SymInt, Tensor


@dataclass(frozen=True, slots=True)
class Scratch:
    """Temporary memory of one call; other calls reuse it afterwards."""

    slot: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class Slice:
    """Part of a tensor's bytes as a binding; `offset` is a multiple of 256."""

    tensor: TensorRef
    offset: int
    nbytes: int


Operand = TensorRef | Scratch | Slice | None


@dataclass(frozen=True, slots=True)
class Bound:
    """A binding number with the bytes of a slot."""

    binding: int
    slot: int
    offset: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class Dispatch:
    """One dispatch: pipeline key, bindings without params, params bytes, grid."""

    kernel: Kernel
    constants: tuple[tuple[str, float], ...]
    bound: tuple[Bound, ...]
    params: bytes
    grid: tuple[int, int, int]
    node: int
    label: str


LiveValue = Callable[[Env], int]


@dataclass(slots=True)
class SessionSlots:
    """Slots that belong to a session rather than to a tensor."""

    live: int
    fault: int
    dummy: int
    scratch: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Lowered:
    """What one set of live dims lowers to."""

    env: Env
    dispatches: list[Dispatch] = field(default_factory=list)
    once: list[Dispatch] = field(default_factory=list)
    live: list[LiveValue] = field(default_factory=list)
    symint_words: dict[int, int] = field(default_factory=dict)
    literal_words: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Target:
    """What is lowered for.

    `software` says that the adapter runs on the CPU, where barriers cost more than they save;
    `subgroup` is the least size of a subgroup, 0 if that is not known.
    """

    limits: Limits
    features: frozenset[str]
    software: bool
    subgroup: int
    choices: Choices


class Lowering:
    """What an operator's `lower` works with: the target's facts, dispatch, scratch, live words."""

    def __init__(
        self,
        call: Call,
        target: Target,
        memory: MemoryPlan,
        slots: SessionSlots,
        lowered: Lowered,
    ) -> None:
        self.limits = target.limits
        self.features = target.features
        self.software = target.software
        self.subgroup = target.subgroup
        self.choices = target.choices
        self._call = call
        self._memory = memory
        self._slots = slots
        self._lowered = lowered
        self._scratch_taken: list[int] = []

    def width(self, wanted: int) -> int:
        """Workgroup width: a power of two, at most `wanted` and what the device launches."""
        return self.limits.workgroup_width(wanted)

    def bakes(self, rows: int, fixed: bool = True) -> bool:
        """Whether to `bake` a kernel that does little for each of so many rows.

        One row is a matter of 2 or 3 us, of which it waits 0.2 for its params (H200). An adapter
        on the CPU does not wait for them. Params that are not `fixed` change from run to run and
        would have a pipeline compiled for each value. A kernel that reports faults has its node
        among them, so that each node has one of its own.
        """
        return rows == 1 and fixed and not self.software

    def dispatch(
        self,
        kernel: str | Kernel,
        bind: Mapping[str, Operand],
        params: Mapping[str, Number],
        groups: int | tuple[int, int] | tuple[int, int, int],
        constants: Mapping[str, float] | None = None,
        bake: bool = False,
    ) -> None:
        """Add a dispatch of `wgsl/<kernel>.wgsl`, or of a kernel that is parsed already.

        `bind` gives an operand for every storage variable by name (None binds 16 zero bytes);
        `params` every field of Params except `node`; an integer `groups` is folded to 2-D. With
        `bake` the params become constants of the kernel, which is compiled for them alone.
        """
        found = load_kernel(kernel) if isinstance(kernel, str) else kernel
        constants = constants or {}
        unknown = set(constants) - found.overrides
        if unknown:
            raise KeyError(f"kernel {found.name} has no override {sorted(unknown)}")
        values = dict(params)
        if any(f.name == "node" for f in found.fields):
            values["node"] = self._call.index
        grid = self._grid(found.name, groups)
        # WGSL writes neither infinity nor NaN.
        if bake and all(math.isfinite(cast(float, v)) for v in values.values()):
            found, values = baked(found, values, grid), {}
        if 0 in grid:
            raise self._call.error(LimitExceeded, f"{found.name}: grid {grid} has a zero dimension")
        dispatch = Dispatch(
            found,
            tuple(sorted((k, float(v)) for k, v in constants.items())),
            self._bind(found, dict(bind)),
            found.pack(values),
            grid,
            self._call.index,
            f"{self._call.name} {found.name}",
        )
        once = self._call.index in self._memory.once
        (self._lowered.once if once else self._lowered.dispatches).append(dispatch)

    def scratch(self, nbytes: int) -> Scratch:
        """Temporary memory for this call only; contents are undefined at first."""
        need = padded(nbytes)
        slots = self._memory.slots
        free = [s for s in self._slots.scratch if s not in self._scratch_taken]
        fits = [s for s in free if need <= slots[s].nbytes <= 2 * need]
        if fits:
            slot = min(fits, key=lambda s: slots[s].nbytes)
        else:
            slot = self._memory.add(need, "activations", f"scratch of {self._call.name}")
            self._slots.scratch.append(slot)
        self._scratch_taken.append(slot)
        return Scratch(slot, nbytes)

    def live(self, name: str) -> int:
        """Word in `live` that holds the integer argument `name`, SymInt or literal."""
        found = self._call.id(name)
        if found is not None and isinstance(self._call.graph.values[found], SymInt):
            return self._lowered.symint_words[found]
        value = self._call.int(name)
        words = self._lowered.literal_words
        if value not in words:
            words[value] = self.live_value(lambda env: value)
        return words[value]

    def live_value(self, value: LiveValue) -> int:
        """Word in `live` for an integer computed from SymInts and dims at the start of a run."""
        self._lowered.live.append(value)
        return len(self._lowered.live) - 1

    # -- checks

    def _grid(self, kernel: str, groups: int | tuple[int, ...]) -> tuple[int, int, int]:
        if isinstance(groups, int):
            return (*self.limits.fold(groups, f"{self._call.name} ({kernel})"), 1)
        limit = self.limits.max_compute_workgroups_per_dimension
        if any(g > limit for g in groups):
            raise self._call.error(
                LimitExceeded,
                f"{kernel}: grid {groups}, allowed are {limit} workgroups a dimension",
            )
        x, y, z = (*groups, 1)[:3]
        return x, y, z

    def _bind(self, kernel: Kernel, bind: dict[str, Operand]) -> tuple[Bound, ...]:
        bound: list[Bound] = []
        storage = [b for b in kernel.bindings if b.access != "uniform"]
        limit = self.limits.max_storage_buffers_per_shader_stage
        if len(storage) > limit:
            raise self._call.error(
                LimitExceeded, f"{kernel.name}: {len(storage)} storage buffers, allowed are {limit}"
            )
        for b in storage:
            bound.append(self._bind_one(kernel, b, bind))
        if bind:
            raise KeyError(f"kernel {kernel.name} has no binding {sorted(bind)}")
        by_slot: dict[int, Binding] = {}
        for b, x in zip(storage, bound, strict=True):
            other = by_slot.setdefault(x.slot, b)
            if other.access != b.access:
                raise self._call.error(
                    LimitExceeded,
                    f"{kernel.name}: {other.name} and {b.name} share a buffer, "
                    "which WebGPU can't bind both read and read_write",
                )
        return tuple(bound)

    def _bind_one(self, kernel: Kernel, b: Binding, bind: dict[str, Operand]) -> Bound:
        special = {"live": self._slots.live, "fault": self._slots.fault}.get(b.name)
        if special is not None:
            return Bound(b.number, special, 0, self._memory.slots[special].nbytes)
        if b.name not in bind:
            raise KeyError(f"kernel {kernel.name}: nothing is bound to {b.name}")
        operand = bind.pop(b.name)
        if operand is None:
            return Bound(b.number, self._slots.dummy, 0, 16)
        if isinstance(operand, Scratch):
            slot, offset, nbytes = operand.slot, 0, padded(operand.nbytes)
        elif isinstance(operand, Slice):
            slot = self._memory.slot_of[operand.tensor.id]
            base = self._memory.offset_of.get(operand.tensor.id, 0)
            offset, nbytes = base + operand.offset, padded(operand.nbytes)
            if offset % self.limits.min_storage_buffer_offset_alignment:
                raise KeyError(f"kernel {kernel.name}: {b.name} slice at {offset} is not aligned")
            nbytes = min(nbytes, self._memory.slots[slot].nbytes - offset)
        else:
            slot = self._memory.slot_of[operand.id]
            offset = self._memory.offset_of.get(operand.id, 0)
            nbytes = padded(operand.max_spec.nbytes)
        limit = self.limits.max_storage_buffer_binding_size
        if nbytes > limit:
            raise self._call.error(
                LimitExceeded,
                f"{self._told(operand)} needs a binding of {nbytes} bytes, this device allows "
                f"{limit}; {SMALLER} or a device with a larger max_storage_buffer_binding_size",
            )
        return Bound(b.number, slot, offset, nbytes)

    def _told(self, operand: Operand) -> str:
        """A tensor's name in an error: its argument's, and a constant's own."""
        tensor = operand.tensor if isinstance(operand, Slice) else operand
        if not isinstance(tensor, TensorRef):
            return "scratch"
        graph = self._call.graph
        value = graph.values[tensor.id]
        at = value.constant if isinstance(value, Tensor) else None
        key = None if at is None else graph.constants[at].key
        return f"{tensor.name} ({key})" if key else tensor.name


def lower(
    calls: list[Call],
    env: Env,
    target: Target,
    memory: MemoryPlan,
    slots: SessionSlots,
) -> Lowered:
    """Dispatches of a whole chain at `env`'s live dims."""
    lowered = Lowered(env)
    for i in env.symints:
        lowered.symint_words[i] = len(lowered.live)
        lowered.live.append(lambda e, i=i: e.symints[i])  # type: ignore[misc]
    for call in calls:
        if call.index in memory.elided or type(call.operator).lower is Operator.lower:
            continue
        at = call.with_env(env)
        call.operator.lower(at, Lowering(at, target, memory, slots, lowered))
    return lowered
