"""One method of a `.pte`: its instructions in order, its delegates on their sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .errors import FormatError, ShapeError
from .formats import pte_records as pte
from .formats.flat import within
from .graph.debug import DebugReport
from .graph.session import Session
from .portable.dtypes import store
from .program_steps import DelegateStep, KernelStep, Step, kept_values, shared_storage
from .program_values import Frame, from_device, method_input, to_device

MAX_JUMPS_BACK = 1 << 13
"""Iterations of a loop at most; a damaged file must not hang its page."""


@dataclass(slots=True)
class Result:
    """What a method gave: its outputs, and its inputs as they are afterwards."""

    outputs: list[Any]
    inputs: list[Any]
    kernels: list[tuple[str, float]] | None = None
    """Label and microseconds of every dispatch of a profiled run."""


OnDevice = Callable[[DelegateStep, list[Any]], Awaitable[list[np.ndarray]]]


class _Stopped(Exception):
    """A debugged run has found what it looks for."""


class Method:
    """One method of a program with its delegates' sessions."""

    def __init__(
        self,
        plan: pte.ExecutionPlan,
        sessions: list[Session],
        values: list[Any],
        chains: list[list[Step]],
    ) -> None:
        self.plan = plan
        self.sessions = sessions
        self._initial = values
        self._chains = chains
        self._kept = kept_values(plan, chains)
        self._views, self._places = shared_storage(plan, chains)
        self._state: dict[int, Any] = {}
        self._lock = asyncio.Lock()

    async def __call__(self, *inputs: Any) -> Any:
        """Run on arrays and scalars in method order: one output, or a tuple of several."""
        outputs = (await self.run(inputs)).outputs
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    async def run(self, inputs: Sequence[Any], profile: bool = False) -> Result:
        """Run; outputs may repeat mutated inputs, as the method declares them.

        State that the method keeps itself (not in a delegate) changes only if the run succeeds.
        With `profile` every dispatch has a pass and timestamps of its own, which takes longer.

        Raises:
            ShapeError, DtypeError, IndexOutOfRange: naming the input or the operator.
            FeatureMissing: `profile` on a device without timestamp-query.
        """
        kernels: list[tuple[str, float]] = []

        async def on_device(step: DelegateStep, given: list[Any]) -> list[np.ndarray]:
            session = self.sessions[step.delegate]
            outputs = await session.run_list(given, profile)
            kernels.extend(session.timings()["kernels"] if profile else [])
            return outputs

        return replace(await self._run(inputs, on_device), kernels=kernels if profile else None)

    async def debug(self, *inputs: Any) -> DebugReport:
        """A run that examines every node on the device: see `Session.debug`.

        It stops at the first fault. The report's outputs are `out0`, `out1`, ...
        """
        seen: list[DebugReport] = []

        async def on_device(step: DelegateStep, given: list[Any]) -> list[np.ndarray]:
            report = await self.sessions[step.delegate].debug_list(given)
            if report.fault is not None:
                fault = replace(report.fault, place=f"{self.plan.name} delegate {step.delegate}")
                report = replace(report, fault=fault)
            seen.append(report)
            if report.fault is not None:
                raise _Stopped
            return list(report.outputs.values())

        outputs: dict[str, Any] = {}
        try:
            result = await self._run(inputs, on_device)
            outputs = {f"out{i}": a for i, a in enumerate(result.outputs)}
        except _Stopped:
            pass
        return DebugReport(
            sum(report.nodes for report in seen),
            seen[-1].fault if seen else None,
            tuple(dict.fromkeys(name for report in seen for name in report.unchecked)),
            outputs,
        )

    async def _run(self, inputs: Sequence[Any], on_device: OnDevice) -> Result:
        plan = self.plan
        if len(inputs) != len(plan.inputs):
            raise ShapeError(
                f"{plan.name}: {len(inputs)} inputs, this method takes {len(plan.inputs)}"
            )
        async with self._lock:
            frame = Frame(plan, self._initial, self._views, self._places)
            for index in self._kept:
                frame.write(index, self._state.get(index, self._initial[index]))
            for at, (index, given) in enumerate(zip(plan.inputs, inputs, strict=True)):
                frame.write(
                    index, method_input(f"{plan.name} input {at}", plan.values[index], given)
                )
            shared = {id(value) for value in frame.values}
            for chain in self._chains:
                await self._execute(chain, frame, on_device)
            self._state = {index: frame.values[index] for index in self._kept}
        return Result(
            [self._output(frame, index, shared) for index in plan.outputs],
            [frame.values[index] for index in plan.inputs],
        )

    async def _execute(self, chain: Sequence[Step], frame: Frame, on_device: OnDevice) -> None:
        at, jumps = 0, 0
        while at < len(chain):
            step = chain[at]
            at += 1
            if isinstance(step, KernelStep):
                with within(f"method {self.plan.name!r}, instruction {at - 1}"):
                    _run_kernel(step, frame)
            elif isinstance(step, DelegateStep):
                await self._run_delegate(step, frame, on_device)
            elif isinstance(step, pte.MoveCall):
                frame.write(step.target, frame.values[step.source])
            elif isinstance(step, pte.FreeCall):
                frame.values[step.value] = None
            elif not np.all(frame.read(step.condition)):
                jumps += step.destination <= at
                if jumps > MAX_JUMPS_BACK:
                    raise FormatError(
                        f"{self.plan.name}: a loop ran {MAX_JUMPS_BACK} times without an end"
                    )
                at = step.destination

    async def _run_delegate(self, step: DelegateStep, frame: Frame, on_device: OnDevice) -> None:
        values = self.plan.values
        given = [to_device(values[index], frame.read(index)) for index in step.inputs]
        results = await on_device(step, given)
        for index, array in zip(step.targets, results, strict=True):
            declared = values[index]
            assert isinstance(declared, pte.PteTensor)
            name = f"{self.plan.name} value {index}"
            frame.write(index, from_device(name, array, declared.dtype))

    def _output(self, frame: Frame, index: int, shared: set[int]) -> Any:
        """An output of the caller's own: what is remembered or was given is copied."""
        value = frame.argument(index)
        if not isinstance(value, np.ndarray):
            return value
        borrowed = value.base is not None or id(value) in shared or index in self._kept
        return value.copy() if borrowed else value

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


def _run_kernel(step: KernelStep, frame: Frame) -> None:
    result = step.kernel([frame.argument(index) for index in step.inputs], step.outs)
    if not step.outs:
        frame.write(step.targets[0], result)
        return
    parts = [result] if len(step.outs) == 1 and step.kernel.outs >= 0 else result
    if len(parts) != len(step.outs):
        raise ShapeError(
            f"{step.kernel.name}: {len(parts)} results, the program takes {len(step.outs)}"
        )
    for index, out, part in zip(step.targets, step.outs, parts, strict=True):
        array = store(part, out.dtype)
        out.check(array.shape)
        frame.write(index, array)
