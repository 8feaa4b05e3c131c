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
    return _Planner(graph, calls).planned()


class _Planner:
    """One planning. A *root* stands for all values that share its bytes, and so its slot."""

    def __init__(self, graph: GraphIR, calls: list[Call]) -> None:
        self.graph, self.calls = graph, calls
        self.plan = MemoryPlan()
        self.groups = _Groups()
        self.inputs = {p.value for p in graph.inputs}
        self.mutated = _mutated(calls)
        self.constant_of: dict[ValueId, int] = {
            i: v.constant
            for i, v in enumerate(graph.values)
            if isinstance(v, Tensor) and v.constant is not None
        }
        self.state = {i: c for i, c in self.constant_of.items() if i in self.mutated}
        self.prepacked = set(self.constant_of)
        """Constants, and what is made of them alone."""
        self.roots: dict[ValueId, int] = {}
        """Constants that are no state, by root."""
        self.names: dict[ValueId, str] = {}
        self.nbytes: dict[ValueId, int] = defaultdict(int)
        self.first: dict[ValueId, int] = {}
        self.last: dict[ValueId, int] = {}
        self.slots: dict[ValueId, int] = {}

    def planned(self) -> MemoryPlan:
        for call in self.calls:
            self._classify(call)
        self.roots = {
            self.groups.find(i): c for i, c in self.constant_of.items() if i not in self.state
        }
        self.names = _names(self.graph, self.calls, self.constant_of)
        self._find_lifetimes()
        self._place_state()
        for call in self.calls:
            if call.operator.joins:
                self._join(call)
        self._place_weights()
        self._place_kept()
        self._batch()
        self._share()
        for i, value in enumerate(self.graph.values):
            root = self.groups.find(i)
            if isinstance(value, Tensor) and root in self.slots:
                self.plan.slot_of[i] = self.slots[root]
                if root in self.plan.offset_of:
                    self.plan.offset_of[i] = self.plan.offset_of[root]
        return self.plan

    def _results(self, call: Call) -> list[ValueId]:
        return [i for i in call.result_ids if isinstance(self.graph.values[i], Tensor)]

    def _classify(self, call: Call) -> None:
        """Whether a call is done once, or not at all because its result is its input's bytes."""
        op, plan, mutated = call.operator, self.plan, self.mutated
        reads, results = tensors_read(call), self._results(call)
        if op.once:
            bad = [i for i in reads if i not in self.prepacked]
            call.check(not bad, f"values {bad} are no constants, they can't be prepacked")
            self.prepacked.update(results)
        if op.alias and len(reads) >= 1 and len(results) == 1:
            source, result = reads[0], results[0]
            if source in self.inputs and result in self.inputs:
                return
            if op.once and source in self.constant_of and {source, result} & mutated:
                # A prepacked cache: bytes of the constant, a buffer of its own.
                self.state[result] = self.constant_of[source]
                plan.elided.add(call.index)
            elif not {source, result} & mutated and _same_bytes(self.graph, call):
                self.groups.join(source, result)
                plan.elided.add(call.index)
        if op.joins:
            call.check(not mutated & {*reads, *results}, "a part is written to, it can't be joined")
            plan.elided.add(call.index)
        if op.once and call.index not in plan.elided:
            plan.once.add(call.index)

    def _find_lifetimes(self) -> None:
        """First and last use and size of every root; inputs are there before the first call."""
        for port in self.graph.inputs:
            if isinstance(self.graph.values[port.value], Tensor):
                self._touch(port.value, -1)
        for call in self.calls:
            for i in self._used(call):
                self._touch(i, call.index)
        for port in self.graph.outputs:
            self._touch(port.value, len(self.calls))

    def _touch(self, i: ValueId, when: int) -> None:
        value = self.graph.values[i]
        assert isinstance(value, Tensor)
        root = self.groups.find(i)
        self.first[root] = min(self.first.get(root, when), when)
        self.last[root] = max(self.last.get(root, when), when)
        self.nbytes[root] = max(self.nbytes[root], value.spec.nbytes)

    def _used(self, call: Call) -> list[ValueId]:
        """Tensors that have to be there for a call; a prepacked cache needs no source."""
        results = self._results(call)
        prepacked = call.index in self.plan.elided and call.operator.once
        if prepacked and call.result_ids[0] in self.state:
            return results
        return results + tensors_read(call)

    def _place_state(self) -> None:
        for i, c in self.state.items():
            if i in self.first:
                label = self.names.get(i, f"state {i}")
                self.slots[i] = self.plan.add(self.nbytes[i], "state", label)
                self.plan.uploads.append(Upload(c, self.slots[i]))

    def _join(self, call: Call) -> None:
        """One slot for a joined weight, in which its parts lie one after the other."""
        result = self.groups.find(call.result_ids[0])
        label = self.names.get(result, f"value {result}")
        self.slots[result] = slot = self.plan.add(self.nbytes[result], "weights", label)
        used = 0
        for part in tensors_read(call):
            root = self.groups.find(part)
            call.check(root not in self.slots, f"{part} is joined twice, or lies elsewhere already")
            self.slots[root], self.plan.offset_of[root] = slot, used
            if root in self.roots:
                self.plan.uploads.append(Upload(self.roots[root], slot, used))
            used += self.nbytes[root]

    def _place_weights(self) -> None:
        """Constants that runs read, or that several once-nodes do; equal keys have one slot."""
        passing = self._passing()
        by_key: dict[str, int] = {}
        for root, c in self.roots.items():
            if root not in self.first or root in self.slots or root in passing:
                continue
            key = self.graph.constants[c].key
            if key is not None and key in by_key:
                self.slots[root] = by_key[key]
                if self.plan.slots[by_key[key]].nbytes >= self.nbytes[root]:
                    continue
            label = self.names.get(root, f"constant {c}")
            self.slots[root] = self.plan.add(self.nbytes[root], "weights", label)
            self.plan.uploads.append(Upload(c, self.slots[root]))
            if key is not None:
                by_key[key] = self.slots[root]

    def _passing(self) -> set[ValueId]:
        """Constants that one once-node reads and no run does: they need no slot of their own."""
        plan, find = self.plan, self.groups.find
        uses: Counter[ValueId] = Counter()
        found = set(self.roots)
        for call in self.calls:
            if call.index in plan.once:
                uses.update({find(i) for i in tensors_read(call)})
            elif call.index not in plan.elided:
                found -= {find(i) for i in self._used(call)}
        found -= {find(port.value) for port in self.graph.outputs}
        return {root for root in found if uses[root] <= 1}

    def _place_kept(self) -> None:
        """What was made once, and what runs write to without a constant to begin with."""
        for i in sorted(self.prepacked | self.mutated):
            root = self.groups.find(i)
            if root in self.first and root not in self.slots and root not in self.roots:
                kind: SlotKind = "weights" if i in self.prepacked else "state"
                label = self.names.get(i, f"value {i}")
                self.slots[root] = self.plan.add(self.nbytes[root], kind, label)

    def _batch(self) -> None:
        """Fill the arena: each once-node's own constants, until the next would not fit."""
        plan, find = self.plan, self.groups.find
        transient = {r: c for r, c in self.roots.items() if r in self.first and r not in self.slots}
        need = {r: -(-padded(self.nbytes[r]) // ARENA_ALIGN) * ARENA_ALIGN for r in transient}
        largest = max(
            (sum(need.get(find(i), 0) for i in tensors_read(c)) for c in self.calls), default=0
        )
        room = min(sum(need.values()), max(ARENA_NBYTES, largest))
        arena = plan.add(room, "transient", "stored weights on their way") if need else -1
        used = 0
        for call in self.calls:
            if call.index not in plan.once:
                continue
            own = [r for r in dict.fromkeys(map(find, tensors_read(call))) if r in transient]
            if not plan.batches or used + sum(need[r] for r in own) > room:
                plan.batches.append(Batch())
                used = 0
            batch = plan.batches[-1]
            batch.nodes.add(call.index)
            for root in own:
                self.slots[root] = arena
                plan.offset_of[root] = used
                batch.uploads.append(Upload(transient[root], arena, used))
                used += need[root]

    def _share(self) -> None:
        """Greedy best fit in order of first use; a slot is free after its tensor's last use."""
        plan, first = self.plan, self.first
        free: list[int] = []
        ending: dict[int, list[int]] = defaultdict(list)
        now = -1
        for root in sorted((r for r in first if r not in self.slots), key=lambda r: (first[r], r)):
            while now < first[root]:
                free += ending.pop(now, [])
                now += 1
            need = padded(self.nbytes[root])
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
            self.slots[root] = slot
            ending[self.last[root]].append(slot)


def _same_bytes(graph: GraphIR, call: Call) -> bool:
    a, b = tensors_read(call)[0], call.result_ids[0]
    left, right = graph.values[a], graph.values[b]
    assert isinstance(left, Tensor) and isinstance(right, Tensor)
    return left.spec.nbytes == right.spec.nbytes and left.spec.dtype == right.spec.dtype


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
