"""A lowered graph as plain data: what crosses to the executor once and is replayed there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .call import Call, Env
from .kernel import Kernel
from .limits import Limits
from .lowering import Dispatch
from .values import ValueId

PipelineKey = tuple[str, tuple[tuple[str, float], ...]]


@dataclass(frozen=True, slots=True)
class PipelineSpec:
    """A kernel with its override constants."""

    kernel: Kernel
    constants: tuple[tuple[str, float], ...]

    @property
    def key(self) -> PipelineKey:
        """Equal for equal pipelines: by text, as a name may be declared anew; -0.0 is 0.0."""
        return self.kernel.wgsl, tuple((k, v + 0.0) for k, v in self.constants)


@dataclass(frozen=True, slots=True)
class Transfer:
    """Bytes between a buffer and the run's blob: `offset` in the blob, both multiples of 4."""

    buffer: int
    offset: int
    nbytes: int


@dataclass(slots=True)
class Plan:
    """One variant of a graph for one set of live dims; buffer numbers are bridge handles.

    `blob` of a run: live words, then inputs, each padded to 4 bytes. Its result: outputs, each
    padded to 4, then 16 bytes of fault words where `fault` is a buffer.
    `entries` holds 4 integers a binding (number, buffer, offset, nbytes), `bind_groups` 3 a group
    (pipeline, first entry, entries), `commands` 4 a dispatch (bind group, x, y, z); a buffer of
    -1 is the plan's own params.
    """

    labels: list[str] = field(default_factory=list)
    pipelines: list[int] = field(default_factory=list)
    bind_groups: list[int] = field(default_factory=list)
    entries: list[int] = field(default_factory=list)
    commands: list[int] = field(default_factory=list)
    params: bytes = b""
    inputs: list[Transfer] = field(default_factory=list)
    outputs: list[Transfer] = field(default_factory=list)
    fault: int | None = None
    calls: list[Call] = field(default_factory=list)
    env: Env = field(default_factory=Env)
    buffer_of: dict[ValueId, int] = field(default_factory=dict)
    offset_of: dict[ValueId, int] = field(default_factory=dict)
    symint_words: dict[ValueId, int] = field(default_factory=dict)

    @property
    def blob_nbytes(self) -> int:
        """Bytes of a run's blob."""
        return max((t.offset + t.nbytes for t in self.inputs), default=0)

    @property
    def result_nbytes(self) -> int:
        """Bytes of a run's result."""
        end = max((t.offset + t.nbytes for t in self.outputs), default=0)
        return end + (16 if self.fault is not None else 0)


def specs_of(dispatches: Sequence[Dispatch]) -> dict[PipelineKey, PipelineSpec]:
    """The distinct pipelines of some dispatches."""
    found: dict[PipelineKey, PipelineSpec] = {}
    for d in dispatches:
        spec = PipelineSpec(d.kernel, d.constants)
        found.setdefault(spec.key, spec)
    return found


def encode(
    dispatches: Sequence[Dispatch],
    handles: dict[PipelineKey, int],
    buffers: Sequence[int],
    limits: Limits,
    fault_slot: int,
) -> Plan:
    """Flat command arrays of some dispatches; `buffers` maps slots to handles."""
    plan = Plan()
    step = limits.min_uniform_buffer_offset_alignment
    params = bytearray()
    for d in dispatches:
        if d.params:
            offset = -(-len(params) // step) * step
            params += bytes(offset - len(params)) + d.params
        else:
            offset = 0
        plan.bind_groups += [
            handles[PipelineSpec(d.kernel, d.constants).key],
            len(plan.entries) // 4,
            len(d.bound) + (1 if d.params else 0),
        ]
        for b in d.bound:
            plan.entries += [b.binding, buffers[b.slot], b.offset, b.nbytes]
            if b.slot == fault_slot:
                plan.fault = buffers[fault_slot]
        if d.params:
            number = next(b.number for b in d.kernel.bindings if b.access == "uniform")
            plan.entries += [number, -1, offset, len(d.params)]
        plan.commands += [len(plan.labels), *d.grid]
        plan.labels.append(d.label)
    plan.params = bytes(params)
    return plan


def layout_transfers(sizes: Sequence[tuple[int, int]]) -> list[Transfer]:
    """Transfers of (buffer, nbytes) pairs one after the other, each padded to 4 bytes."""
    offset = 0
    found = []
    for buffer, nbytes in sizes:
        whole = (nbytes + 3) & ~3
        found.append(Transfer(buffer, offset, whole))
        offset += whole
    return found
