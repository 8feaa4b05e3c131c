"""Which buffer every tensor lives in: one buffer a slot, shared by liveness.

A slot is its own GPUBuffer, because WebGPU refuses one buffer bound both read and read_write.
Constants, prepacked and mutated tensors have slots of their own that persist between runs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Literal

from .call import Call
from .limits import padded
from .values import GraphIR, Tensor, ValueId, ValueList

ARENA_NBYTES = 64 << 20
"""Stored weights that are on the device at once while they are prepacked."""

ARENA_ALIGN = 256
"""WebGPU's largest minStorageBufferOffsetAlignment."""

SlotKind = Literal["weights", "state", "activations", "transient"]


@dataclass(slots=True)
class Slot:
    """One buffer: `nbytes` is a whole number of vec4; `label` names its first tensor."""

    nbytes: int
    kind: SlotKind
    label: str


@dataclass(slots=True)
class Upload:
    """Constant `constant` goes into slot `slot` at build, and again at reset where it is state."""

    constant: int
    slot: int
    offset: int = 0


@dataclass(slots=True)
class Batch:
    """Nodes that run once at build, one after the other, after their constants were uploaded."""

    nodes: set[int] = field(default_factory=set)
    uploads: list[Upload] = field(default_factory=list)


@dataclass(slots=True)
class MemoryPlan:
    """Slots, the slot of every tensor value, uploads, and nodes that need no dispatch.

    Constants that only feed work done once lie at `offset_of` in one transient arena; the batches
    fill it in turn, so that prepacking never holds a second copy of the model. Parts of a joined
    weight lie at `offset_of` in its slot.
    """

    slots: list[Slot] = field(default_factory=list)
    slot_of: dict[ValueId, int] = field(default_factory=dict)
    offset_of: dict[ValueId, int] = field(default_factory=dict)
    uploads: list[Upload] = field(default_factory=list)
    batches: list[Batch] = field(default_factory=list)
    elided: set[int] = field(default_factory=set)
    once: set[int] = field(default_factory=set)

    def add(self, nbytes: int, kind: SlotKind, label: str) -> int:
        """A new slot for at least `nbytes` bytes."""
        self.slots.append(Slot(padded(nbytes), kind, label))
        return len(self.slots) - 1


class _Groups:
    """Union-find over values that share one buffer because their bytes are the same."""

    def __init__(self) -> None:
        self.parent: dict[ValueId, ValueId] = {}

    def find(self, i: ValueId) -> ValueId:
        while (up := self.parent.get(i, i)) != i:
            i = up
        return i

    def join(self, a: ValueId, b: ValueId) -> None:
        self.parent[self.find(b)] = self.find(a)


def tensors_read(call: Call) -> list[ValueId]:
    """Tensors among a call's arguments, also those inside of lists."""
    values = call.graph.values
    ids: list[ValueId] = []
    for i in call.argument_ids:
        value = values[i]
        ids += value.items if isinstance(value, ValueList) else [i]
    return [i for i in ids if isinstance(values[i], Tensor)]


def _mutated(calls: list[Call]) -> set[ValueId]:
    found: set[ValueId] = set()
    for call in calls:
        for argument, i in zip(call.operator.signature.arguments, call.argument_ids, strict=False):
            if argument.mutated:
                value = call.graph.values[i]
                found.update(value.items if isinstance(value, ValueList) else (i,))
    return found


def plan_memory(graph: GraphIR, calls: list[Call]) -> MemoryPlan:
    """Slots for a graph at its maximal dims."""
    plan = MemoryPlan()
    mutated = _mutated(calls)
    groups = _Groups()
    constant_of: dict[ValueId, int] = {
        i: v.constant
        for i, v in enumerate(graph.values)
        if isinstance(v, Tensor) and v.constant is not None
    }
    inputs = {p.value for p in graph.inputs}
    state: dict[ValueId, int] = {i: c for i, c in constant_of.items() if i in mutated}
    known = set(constant_of)
    for call in calls:
        op, reads = call.operator, tensors_read(call)
        results = [i for i in call.result_ids if isinstance(graph.values[i], Tensor)]
        if op.once:
            bad = [i for i in reads if i not in known]
            call.check(not bad, f"values {bad} are no constants, they can't be prepacked")
            known.update(results)
        if op.alias and len(reads) >= 1 and len(results) == 1:
            source, result = reads[0], results[0]
            if source in inputs and result in inputs:
                continue
            if op.once and source in constant_of and (result in mutated or source in mutated):
                # A prepacked cache: bytes of the constant, a buffer of its own.
                state[result] = constant_of[source]
                plan.elided.add(call.index)
            elif source not in mutated and result not in mutated and _same_bytes(graph, call):
                groups.join(source, result)
                plan.elided.add(call.index)
        if op.joins:
            call.check(not mutated & {*reads, *results}, "a part is written to, it can't be joined")
            plan.elided.add(call.index)
        if op.once and call.index not in plan.elided:
            plan.once.add(call.index)
    _assign(graph, calls, plan, groups, constant_of, state, mutated, known)
    return plan


def _same_bytes(graph: GraphIR, call: Call) -> bool:
    a, b = tensors_read(call)[0], call.result_ids[0]
    left, right = graph.values[a], graph.values[b]
    assert isinstance(left, Tensor) and isinstance(right, Tensor)
    return left.spec.nbytes == right.spec.nbytes and left.spec.dtype == right.spec.dtype


def _assign(
    graph: GraphIR,
    calls: list[Call],
    plan: MemoryPlan,
    groups: _Groups,
    constant_of: dict[ValueId, int],
    state: dict[ValueId, int],
    mutated: set[ValueId],
    prepacked: set[ValueId],
) -> None:
    end = len(calls)
    first: dict[ValueId, int] = {}
    last: dict[ValueId, int] = {}
    nbytes: dict[ValueId, int] = defaultdict(int)
    once_only: set[ValueId] = {groups.find(i) for i in constant_of if i not in state}

    def touch(i: ValueId, when: int) -> None:
        value = graph.values[i]
        assert isinstance(value, Tensor)
        root = groups.find(i)
        first[root] = min(first.get(root, when), when)
        last[root] = max(last.get(root, when), when)
        nbytes[root] = max(nbytes[root], value.spec.nbytes)

    for port in graph.inputs:
        if isinstance(graph.values[port.value], Tensor):
            touch(port.value, -1)
    for call in calls:
        if call.index in plan.elided and call.operator.once:
            used = [i for i in call.result_ids if isinstance(graph.values[i], Tensor)]
            if call.result_ids[0] not in state:
                used += tensors_read(call)
        else:
            used = tensors_read(call) + [
                i for i in call.result_ids if isinstance(graph.values[i], Tensor)
            ]
        for i in used:
            touch(i, call.index)
        if call.index not in plan.once and call.index not in plan.elided:
            once_only -= {groups.find(i) for i in used}
    for port in graph.outputs:
        touch(port.value, end)
        once_only.discard(groups.find(port.value))

    names = _names(graph, calls, constant_of)
    by_key: dict[str, int] = {}
    slots: dict[ValueId, int] = {}
    roots = {groups.find(i): c for i, c in constant_of.items() if i not in state}
    uses = Counter(
        root
        for c in calls
        if c.index in plan.once
        for root in {groups.find(i) for i in tensors_read(c)}
    )
    shared = {root for root, n in uses.items() if n > 1}
    for i, c in state.items():
        if i in first or i in last:
            slots[i] = plan.add(nbytes[i], "state", names.get(i, f"state {i}"))
            plan.uploads.append(Upload(c, slots[i]))
    for call in calls:
        if call.operator.joins:
            _join(call, plan, groups, roots, nbytes, slots, names)
    for root, c in roots.items():
        if root not in first or root in slots:
            continue
        if root in once_only and root not in shared:
            continue
        key = graph.constants[c].key
        if key is not None and key in by_key:
            slots[root] = by_key[key]
            if plan.slots[by_key[key]].nbytes >= nbytes[root]:
                continue
        slots[root] = plan.add(nbytes[root], "weights", names.get(root, f"constant {c}"))
        plan.uploads.append(Upload(c, slots[root]))
        if key is not None:
            by_key[key] = slots[root]
    for i in sorted(prepacked | mutated):
        root = groups.find(i)
        if root in first and root not in slots and root not in roots:
            kept: SlotKind = "weights" if i in prepacked else "state"
            slots[root] = plan.add(nbytes[root], kept, names.get(i, f"value {i}"))
    transient = {r: c for r, c in roots.items() if r in first and r not in slots}
    _batch(calls, plan, groups, transient, nbytes, slots)
    _share(plan, first, last, nbytes, slots)
    for i, value in enumerate(graph.values):
        root = groups.find(i)
        if isinstance(value, Tensor) and root in slots:
            plan.slot_of[i] = slots[root]
            if root in plan.offset_of:
                plan.offset_of[i] = plan.offset_of[root]


def _names(
    graph: GraphIR, calls: list[Call], constant_of: dict[ValueId, int]
) -> dict[ValueId, str]:
    """What errors call the constants with a key, and what is made of them once."""
    keys = {i: graph.constants[c].key for i, c in constant_of.items()}
    names = {i: key for i, key in keys.items() if key}
    for call in calls:
        found = [names[i] for i in tensors_read(call) if i in names]
        if call.operator.once and found:
            names |= {i: found[0] for i in call.result_ids if i not in names}
    return names


def _join(
    call: Call,
    plan: MemoryPlan,
    groups: _Groups,
    roots: dict[ValueId, int],
    nbytes: dict[ValueId, int],
    slots: dict[ValueId, int],
    names: dict[ValueId, str],
) -> None:
    """One slot for a joined weight, in which its parts lie one after the other."""
    result = groups.find(call.result_ids[0])
    slots[result] = slot = plan.add(nbytes[result], "weights", names.get(result, f"value {result}"))
    used = 0
    for part in tensors_read(call):
        root = groups.find(part)
        call.check(root not in slots, f"{part} is joined twice, or lies elsewhere already")
        slots[root], plan.offset_of[root] = slot, used
        if root in roots:
            plan.uploads.append(Upload(roots[root], slot, used))
        used += nbytes[root]


def _batch(
    calls: list[Call],
    plan: MemoryPlan,
    groups: _Groups,
    transient: dict[ValueId, int],
    nbytes: dict[ValueId, int],
    slots: dict[ValueId, int],
) -> None:
    """Fill the arena: each once-node's own constants, until the next would not fit."""
    need = {root: -(-padded(nbytes[root]) // ARENA_ALIGN) * ARENA_ALIGN for root in transient}
    largest = max(
        (sum(need.get(groups.find(i), 0) for i in tensors_read(c)) for c in calls), default=0
    )
    room = min(sum(need.values()), max(ARENA_NBYTES, largest))
    arena = plan.add(room, "transient", "stored weights on their way") if need else -1
    used = 0
    for call in calls:
        if call.index not in plan.once:
            continue
        own = [r for r in dict.fromkeys(map(groups.find, tensors_read(call))) if r in transient]
        if not plan.batches or used + sum(need[r] for r in own) > room:
            plan.batches.append(Batch())
            used = 0
        batch = plan.batches[-1]
        batch.nodes.add(call.index)
        for root in own:
            slots[root] = arena
            plan.offset_of[root] = used
            batch.uploads.append(Upload(transient[root], arena, used))
            used += need[root]


def _share(
    plan: MemoryPlan,
    first: dict[ValueId, int],
    last: dict[ValueId, int],
    nbytes: dict[ValueId, int],
    slots: dict[ValueId, int],
) -> None:
    """Greedy best fit in order of first use; a slot is free after its tensor's last use."""
    free: list[int] = []
    ending: dict[int, list[int]] = defaultdict(list)
    now = -1
    for root in sorted((r for r in first if r not in slots), key=lambda r: (first[r], r)):
        while now < first[root]:
            free += ending.pop(now, [])
            now += 1
        need = padded(nbytes[root])
        fits = [s for s in free if plan.slots[s].nbytes >= need]
        if fits:
            slot = min(fits, key=lambda s: plan.slots[s].nbytes)
        elif free:
            slot = max(free, key=lambda s: plan.slots[s].nbytes)
            plan.slots[slot].nbytes = need
        else:
            slot = plan.add(need, "activations", f"value {root}")
        if slot in free:
            free.remove(slot)
        slots[root] = slot
        ending[last[root]].append(slot)
