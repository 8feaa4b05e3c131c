"""A method's instructions, ready to run: kernels found, arguments told apart and checked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from .errors import FormatError
from .formats import pte_records as pte
from .formats.flat import within
from .graph.values import GraphIR
from .portable import Kernel, Out, find_kernel

Storage: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class KernelStep:
    """A portable operator with its arguments told apart, and what its results are declared."""

    kernel: Kernel
    inputs: tuple[int, ...]
    targets: tuple[int, ...]
    outs: tuple[Out, ...]


@dataclass(frozen=True, slots=True)
class DelegateStep:
    """A delegate with its inputs and outputs told apart."""

    delegate: int
    inputs: tuple[int, ...]
    targets: tuple[int, ...]


Step: TypeAlias = KernelStep | DelegateStep | pte.MoveCall | pte.JumpFalseCall | pte.FreeCall


def bind(plan: pte.ExecutionPlan, graphs: Sequence[GraphIR]) -> list[list[Step]]:
    """The plan's instructions with kernels found and arguments told apart.

    Raises:
        FormatError: an operator or a delegate is called with another number or kind of arguments.
    """
    bound = []
    for at, chain in enumerate(plan.chains):
        steps = []
        for index, step in enumerate(chain):
            with within(f"method {plan.name!r}, chain {at}, instruction {index}"):
                steps.append(_bound(plan, graphs, step))
        bound.append(steps)
    return bound


def _bound(plan: pte.ExecutionPlan, graphs: Sequence[GraphIR], step: pte.Instruction) -> Step:
    if isinstance(step, pte.DelegateCall):
        graph = graphs[step.delegate]
        count, expected = len(graph.inputs), len(graph.inputs) + len(graph.outputs)
        if len(step.args) != expected:
            raise FormatError(
                f"{plan.name}: delegate {step.delegate} is called with {len(step.args)} values, "
                f"it has {count} inputs and {len(graph.outputs)} outputs"
            )
        targets = step.args[count:]
        _outs(plan, f"delegate {step.delegate}", targets)
        return DelegateStep(step.delegate, step.args[:count], targets)
    if not isinstance(step, pte.KernelCall):
        return step
    kernel = find_kernel(plan.operators[step.op])
    assert kernel is not None  # Missing ones were reported before.
    inputs, targets = (tuple(ids) for ids in kernel.split(step.args))
    if kernel.outs == -1:
        listed = plan.values[targets[0]]
        if not isinstance(listed, pte.TensorIds):
            raise FormatError(f"{plan.name}: {kernel.name} writes to value {targets[0]}, no list")
        targets = listed.items
    if kernel.outs == 0 and not isinstance(plan.values[targets[0]], pte.PteTensor):
        return KernelStep(kernel, inputs, targets, ())
    return KernelStep(kernel, inputs, targets, _outs(plan, kernel.name, targets))


def _outs(plan: pte.ExecutionPlan, what: str, targets: Sequence[int]) -> tuple[Out, ...]:
    """What the plan declares of the tensors that a call writes."""
    found = []
    for index in targets:
        value = plan.values[index]
        if not isinstance(value, pte.PteTensor):
            raise FormatError(f"{plan.name}: {what} writes to value {index}, which is no tensor")
        found.append(Out(value.dtype, value.sizes, value.unbounded))
    return tuple(found)


def _reads_and_writes(
    plan: pte.ExecutionPlan, chains: Sequence[Sequence[Step]]
) -> Iterator[tuple[list[int], tuple[int, ...]]]:
    """Ids that each instruction reads, and ids that it writes, in the order of the file."""
    for step in (step for chain in chains for step in chain):
        if isinstance(step, (KernelStep, DelegateStep)):
            reads = list(step.inputs)
            for index in step.inputs:
                value = plan.values[index]
                if isinstance(value, pte.TensorIds):
                    reads += [i for i in value.items if i >= 0]
            yield reads, step.targets
        elif isinstance(step, pte.MoveCall):
            yield [step.source], (step.target,)
        elif isinstance(step, pte.JumpFalseCall):
            yield [step.condition], ()


def kept_values(plan: pte.ExecutionPlan, chains: Sequence[Sequence[Step]]) -> frozenset[int]:
    """Tensors that a run leaves to the next one: written, but read before that (buffers)."""
    early: set[int] = set()
    written: set[int] = set()
    for reads, writes in _reads_and_writes(plan, chains):
        early.update(i for i in reads if i not in written)
        written.update(writes)
    mutable = {i for i, v in enumerate(plan.values) if isinstance(v, pte.PteTensor) and v.mutable}
    tensors = {i for i, v in enumerate(plan.values) if isinstance(v, pte.PteTensor)}
    return frozenset((early | mutable) & written & tensors - set(plan.inputs))


def shared_storage(
    plan: pte.ExecutionPlan, chains: Sequence[Sequence[Step]]
) -> tuple[dict[int, Storage], dict[int, Storage]]:
    """Tensors that are views of whatever lies in their storage, and tensors that can lie there.

    Exporters drop a view's instruction and plan it onto its base, so it is never written; storage
    is reused over time, so only a run can say which tensor is the base.
    """
    written = {i for _, writes in _reads_and_writes(plan, chains) for i in writes}
    views: dict[int, Storage] = {}
    places: dict[int, Storage] = {}
    for index, value in enumerate(plan.values):
        if isinstance(value, pte.PteTensor) and value.storage is not None:
            base = index in written or index in plan.inputs or value.data is not None
            (places if base else views)[index] = value.storage
    shared = set(views.values())
    return views, {index: place for index, place in places.items() if place in shared}
