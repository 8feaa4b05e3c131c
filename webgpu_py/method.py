"""One method of a `.pte`, ready to run: instructions in order, delegates on their sessions.

Values are NumPy arrays, numbers, strings and None. An instruction never writes into an array: it
binds a new one to the value, so a caller's arrays, constants and remembered state stay as they are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import FormatError, ShapeError
from .formats import pte_records as pte
from .graph.session import Session
from .graph.values import GraphIR
from .portable import Kernel, Out, find_kernel
from .portable.dtypes import store
from .program_values import from_device, method_input

MAX_JUMPS_BACK = 1 << 14
"""Iterations of all loops of a run at most; a damaged file must not hang its page."""

_NARROWED = {"float64": "float32", "bfloat16": "float32"}
"""Host dtypes of delegate tensors that a session does not convert itself."""


@dataclass(slots=True)
class Result:
    """What a method gave: its outputs, and its inputs as they are afterwards."""

    outputs: list[Any]
    inputs: list[Any]


@dataclass(frozen=True, slots=True)
class _KernelStep:
    kernel: Kernel
    inputs: tuple[int, ...]
    targets: tuple[int, ...]
    outs: tuple[Out, ...]


@dataclass(frozen=True, slots=True)
class _DelegateStep:
    delegate: int
    inputs: tuple[int, ...]
    targets: tuple[int, ...]


_Step = _KernelStep | _DelegateStep | pte.MoveCall | pte.JumpFalseCall | pte.FreeCall


def bind(plan: pte.ExecutionPlan, graphs: Sequence[GraphIR]) -> list[list[_Step]]:
    """The plan's instructions with kernels found and arguments told apart.

    Raises:
        FormatError: an operator or a delegate is called with another number or kind of arguments.
    """
    return [[_bound(plan, graphs, step) for step in chain] for chain in plan.chains]


def _bound(plan: pte.ExecutionPlan, graphs: Sequence[GraphIR], step: pte.Instruction) -> _Step:
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
        return _DelegateStep(step.delegate, step.args[:count], targets)
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
        return _KernelStep(kernel, inputs, targets, ())
    return _KernelStep(kernel, inputs, targets, _outs(plan, kernel.name, targets))


def _outs(plan: pte.ExecutionPlan, what: str, targets: Sequence[int]) -> tuple[Out, ...]:
    """What the plan declares of the tensors that a call writes."""
    found = []
    for index in targets:
        value = plan.values[index]
        if not isinstance(value, pte.PteTensor):
            raise FormatError(f"{plan.name}: {what} writes to value {index}, which is no tensor")
        found.append(Out(value.dtype, value.sizes, value.unbounded))
    return tuple(found)


class Method:
    """One method of a program with its delegates' sessions."""

    def __init__(
        self,
        plan: pte.ExecutionPlan,
        sessions: list[Session],
        values: list[Any],
        chains: list[list[_Step]],
    ) -> None:
        self.plan = plan
        self.sessions = sessions
        self._initial = values
        self._chains = chains
        self._kept = kept_values(plan, chains)
        self._state: dict[int, Any] = {}
        self._lock = asyncio.Lock()

    async def __call__(self, *inputs: Any) -> Any:
        """Run on arrays and scalars in method order: one output, or a tuple of several."""
        outputs = (await self.run(inputs)).outputs
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    async def run(self, inputs: Sequence[Any]) -> Result:
        """Run; outputs may repeat mutated inputs, as the method declares them.

        State that the method keeps itself (not in a delegate) changes only if the run succeeds.

        Raises:
            ShapeError, DtypeError, IndexOutOfRange: naming the input or the operator.
        """
        plan = self.plan
        if len(inputs) != len(plan.inputs):
            raise ShapeError(
                f"{plan.name}: {len(inputs)} inputs, this method takes {len(plan.inputs)}"
            )
        async with self._lock:
            values = list(self._initial)
            for index, content in self._state.items():
                values[index] = content
            for at, (index, given) in enumerate(zip(plan.inputs, inputs, strict=True)):
                values[index] = method_input(f"{plan.name} input {at}", plan.values[index], given)
            given_arrays = {id(v) for v in values}
            for chain in self._chains:
                await self._execute(chain, values)
            self._state = {index: values[index] for index in self._kept}
        return Result(
            [self._output(values, i, given_arrays) for i in plan.outputs],
            [values[i] for i in plan.inputs],
        )

    async def _execute(self, chain: Sequence[_Step], values: list[Any]) -> None:
        at, jumps = 0, 0
        while at < len(chain):
            step = chain[at]
            at += 1
            if isinstance(step, _KernelStep):
                self._kernel(step, values)
            elif isinstance(step, _DelegateStep):
                await self._delegate(step, values)
            elif isinstance(step, pte.MoveCall):
                values[step.target] = values[step.source]
            elif isinstance(step, pte.FreeCall):
                values[step.value] = None
            elif not np.all(self._read(step.condition, values)):
                jumps += step.destination <= at
                if jumps > MAX_JUMPS_BACK:
                    raise FormatError(
                        f"{self.plan.name}: a loop ran {MAX_JUMPS_BACK} times without an end"
                    )
                at = step.destination

    def _kernel(self, step: _KernelStep, values: list[Any]) -> None:
        result = step.kernel([self._argument(i, values) for i in step.inputs], step.outs)
        if not step.outs:
            values[step.targets[0]] = result
            return
        parts = [result] if len(step.outs) == 1 and step.kernel.outs >= 0 else result
        if len(parts) != len(step.outs):
            raise ShapeError(
                f"{step.kernel.name}: {len(parts)} results, the program takes {len(step.outs)}"
            )
        for index, out, part in zip(step.targets, step.outs, parts, strict=True):
            array = store(part, out.dtype)
            out.check(array.shape)
            values[index] = array

    async def _delegate(self, step: _DelegateStep, values: list[Any]) -> None:
        session = self.sessions[step.delegate]
        arrays = [self._to_device(i, values) for i in step.inputs]
        for index, array in zip(step.targets, await session.run_list(arrays), strict=True):
            declared = self.plan.values[index]
            assert isinstance(declared, pte.PteTensor)
            values[index] = from_device(f"{self.plan.name} value {index}", array, declared.dtype)

    def _to_device(self, index: int, values: list[Any]) -> Any:
        """A delegate's input; doubles are rounded to what the device has."""
        declared, value = self.plan.values[index], self._read(index, values)
        narrow = _NARROWED.get(declared.dtype) if isinstance(declared, pte.PteTensor) else None
        return value if narrow is None else value.astype(narrow, copy=False)

    def _argument(self, index: int, values: list[Any]) -> Any:
        """A kernel's argument; lists are filled with what their entries are now."""
        declared = self.plan.values[index]
        if isinstance(declared, pte.IntIds):
            return [values[i] for i in declared.items]
        if isinstance(declared, pte.TensorIds):
            return [None if i < 0 else self._read(i, values) for i in declared.items]
        return self._read(index, values)

    def _read(self, index: int, values: list[Any]) -> Any:
        value = values[index]
        if value is None and isinstance(self.plan.values[index], pte.PteTensor):
            raise FormatError(
                f"{self.plan.name}: tensor {index} is used before anything is in it — "
                "the file is damaged"
            )
        return value

    def _output(self, values: list[Any], index: int, given: set[int]) -> Any:
        """An output of the caller's own: what is remembered or was given is copied."""
        if isinstance(self.plan.values[index], (pte.IntIds, pte.TensorIds)):
            return self._argument(index, values)
        value = self._read(index, values)
        if not isinstance(value, np.ndarray):
            return value
        shared = value.base is not None or id(value) in given or index in self._kept
        return value.copy() if shared else value

    async def reset(self) -> None:
        """Give caches and mutable buffers their initial state again."""
        async with self._lock:
            self._state = {}
            for session in self.sessions:
                await session.reset()

    def close(self) -> None:
        """Free the sessions."""
        for session in self.sessions:
            session.close()


def _reads_and_writes(
    plan: pte.ExecutionPlan, chains: Sequence[Sequence[_Step]]
) -> Iterator[tuple[list[int], tuple[int, ...]]]:
    """Ids that each instruction reads, and ids that it writes, in the order of the file."""
    for step in (step for chain in chains for step in chain):
        if isinstance(step, (_KernelStep, _DelegateStep)):
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


def kept_values(plan: pte.ExecutionPlan, chains: Sequence[Sequence[_Step]]) -> frozenset[int]:
    """Tensors that a run leaves to the next one: written, but read before that (buffers)."""
    early: set[int] = set()
    written: set[int] = set()
    for reads, writes in _reads_and_writes(plan, chains):
        early.update(i for i in reads if i not in written)
        written.update(writes)
    mutable = {i for i, v in enumerate(plan.values) if isinstance(v, pte.PteTensor) and v.mutable}
    tensors = {i for i, v in enumerate(plan.values) if isinstance(v, pte.PteTensor)}
    return frozenset((early | mutable) & written & tensors - set(plan.inputs))
