"""A loaded `.pte`: its methods as callables, delegates on a device, the rest on NumPy.

program = await load("model.pte", device=device)
out = await program.forward(a, b)
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .bridge import open_url
from .device import Device
from .errors import DtypeError, FormatError, ShapeError, UnsupportedOperator
from .formats import pte_records as pte
from .formats.pte import read_pte
from .formats.vk_graph import read_vk_graph
from .graph.boundary import to_host
from .graph.operator import operator_names
from .graph.session import Session
from .graph.values import Bool, Double, GraphIR, Int, Null, Source, String
from .portable import find_kernel
from .sources import open_source

BACKEND_ID = "VulkanBackend"


@dataclass(slots=True)
class Result:
    """What a method gave: its outputs, and its inputs as they are afterwards."""

    outputs: list[Any]
    inputs: list[Any]


class Method:
    """One method of a program with its delegates' sessions; made by `load`."""

    def __init__(self, plan: pte.ExecutionPlan, sessions: list[Session], values: list[Any]) -> None:
        self.plan = plan
        self.sessions = sessions
        self._initial = values
        self._state = {
            i: values[i]
            for i, v in enumerate(plan.values)
            if isinstance(v, pte.PteTensor) and v.mutable
        }
        self._mutable = dict(self._state)

    async def __call__(self, *inputs: Any) -> Any:
        """Run on arrays and scalars in method order: one output, or a tuple of several."""
        outputs = (await self.run(inputs)).outputs
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    async def run(self, inputs: Sequence[Any]) -> Result:
        """Run; outputs may repeat mutated inputs, as the method declares them.

        Raises ShapeError, DtypeError or IndexOutOfRange that name the input.
        """
        plan = self.plan
        if len(inputs) != len(plan.inputs):
            raise ShapeError(
                f"{plan.name}: {len(inputs)} inputs, this method takes {len(plan.inputs)}"
            )
        values = list(self._initial)
        for i, content in self._mutable.items():
            values[i] = content
        for at, (i, given) in enumerate(zip(plan.inputs, inputs, strict=True)):
            values[i] = _input(f"{plan.name} input {at}", plan.values[i], given)
        await self._execute(values)
        self._mutable = {i: values[i] for i in self._mutable}
        return Result([values[i] for i in plan.outputs], [values[i] for i in plan.inputs])

    async def _execute(self, values: list[Any]) -> None:
        for chain in self.plan.chains:
            at = 0
            while at < len(chain):
                step = chain[at]
                at += 1
                if isinstance(step, pte.DelegateCall):
                    await self._delegate(step, values)
                elif isinstance(step, pte.KernelCall):
                    self._kernel(step, values)
                elif isinstance(step, pte.MoveCall):
                    values[step.target] = values[step.source]
                elif isinstance(step, pte.JumpFalseCall):
                    if not np.all(values[step.condition]):
                        at = step.destination
                elif isinstance(step, pte.FreeCall):
                    values[step.value] = None

    async def _delegate(self, step: pte.DelegateCall, values: list[Any]) -> None:
        session = self.sessions[step.delegate]
        count = len(session.graph.inputs)
        results = await session.run_list([values[i] for i in step.args[:count]])
        for i, result in zip(step.args[count:], results, strict=True):
            declared = self.plan.values[i]
            assert isinstance(declared, pte.PteTensor)
            values[i] = to_host(f"{self.plan.name} value {i}", result, declared.dtype)

    def _kernel(self, step: pte.KernelCall, values: list[Any]) -> None:
        name = self.plan.operators[step.op]
        kernel = find_kernel(name)
        assert kernel is not None
        target = step.args[-1]
        with np.errstate(all="ignore"):
            result = kernel(*(self._argument(i, values) for i in step.args[:-1]))
        declared = self.plan.values[target]
        if isinstance(declared, pte.TensorIds):
            for i, part in zip(declared.items, result, strict=True):
                values[i] = self._stored(name, i, part)
        else:
            values[target] = self._stored(name, target, result)

    def _argument(self, i: int, values: list[Any]) -> Any:
        declared = self.plan.values[i]
        if isinstance(declared, pte.IntIds):
            return [values[j] for j in declared.items]
        if isinstance(declared, pte.TensorIds):
            return [None if j < 0 else values[j] for j in declared.items]
        return values[i]

    def _stored(self, name: str, i: int, result: Any) -> Any:
        declared = self.plan.values[i]
        if not isinstance(declared, pte.PteTensor):
            return result
        array = np.asarray(result)
        if len(array.shape) != len(declared.sizes) or (
            not declared.unbounded
            and any(d > m for d, m in zip(array.shape, declared.sizes, strict=True))
        ):
            raise ShapeError(
                f"{name}: result {list(array.shape)} exceeds its bound {list(declared.sizes)}"
            )
        return array.astype(declared.dtype, copy=False)

    async def reset(self) -> None:
        """Give caches and mutable buffers their initial state again."""
        self._mutable = dict(self._state)
        for session in self.sessions:
            await session.reset()

    def close(self) -> None:
        """Free the sessions."""
        for session in self.sessions:
            session.close()


class Program:
    """A `.pte` on a device; methods are attributes: `await program.forward(x)`."""

    def __init__(self, records: pte.PteProgram, methods: Mapping[str, Method]) -> None:
        self.records = records
        self.methods = dict(methods)

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        """The method of that name."""
        if name.startswith("_") or name == "methods":
            raise AttributeError(name)
        return self.method(name)

    def method(self, name: str) -> Method:
        """The method of that name; FormatError when the program has none."""
        if name not in self.methods:
            raise FormatError(f"no method {name!r}; the program has {', '.join(self.methods)}")
        return self.methods[name]

    async def reset(self) -> None:
        """Give every method's caches their initial state again."""
        for method in self.methods.values():
            await method.reset()

    def memory(self) -> dict[str, int]:
        """Device bytes by kind, over all delegates."""
        total: dict[str, int] = {}
        for method in self.methods.values():
            for session in method.sessions:
                for kind, nbytes in session.memory().items():
                    total[kind] = total.get(kind, 0) + nbytes
        return total

    def close(self) -> None:
        """Free everything on the device."""
        for method in self.methods.values():
            method.close()


async def load(
    source: str | bytes | Source,
    *,
    device: Device,
    external: Sequence[str | bytes | Source] = (),
    limits: Mapping[str, int] | None = None,
) -> Program:
    """Load a `.pte` from a path, URL or bytes; `external` are its `.ptd` files.

    Only the program and the segments that are used are read. All operators that are missing,
    delegated or not, are reported together before anything is put on the device.
    Errors: FormatError, UnsupportedOperator, ShapeError, LimitExceeded.
    """
    opened = await _open(source)
    records = await read_pte(opened, [await _open(e) for e in external])
    graphs = await delegate_graphs(records)
    missing = missing_operators(records, graphs)
    if missing:
        raise UnsupportedOperator(f"{opened.name}: unsupported op: {', '.join(missing)}")
    methods: dict[str, Method] = {}
    try:
        for name, plan in records.plans.items():
            methods[name] = Method(plan, [], await _initial_values(plan))
            for graph in graphs[name]:
                methods[name].sessions.append(await Session.build(device, graph, limits))
    except BaseException:
        for method in methods.values():
            method.close()
        raise
    return Program(records, methods)


async def _open(given: str | bytes | Source) -> Source:
    """A source; in a browser a string is a URL, unless the file system of Pyodide has the path."""
    if sys.platform == "emscripten" and isinstance(given, str) and not os.path.exists(given):
        return await open_url(given)
    return open_source(given)


async def delegate_graphs(records: pte.PteProgram) -> dict[str, list[GraphIR]]:
    """Every method's delegates as graphs; UnsupportedOperator for another backend's delegate."""
    found: dict[str, list[GraphIR]] = {}
    for name, plan in records.plans.items():
        foreign = sorted({d.id for d in plan.delegates} - {BACKEND_ID})
        if foreign:
            raise UnsupportedOperator(
                f"{name}: delegate {', '.join(foreign)} is not supported, only {BACKEND_ID}; "
                "export with VulkanPartitioner alone"
            )
        found[name] = [
            await read_vk_graph(d.blob, records.named_data, f"{name} delegate {k}")
            for k, d in enumerate(plan.delegates)
        ]
    return found


def missing_operators(
    records: pte.PteProgram, graphs: Mapping[str, Sequence[GraphIR]]
) -> list[str]:
    """Names of delegated and portable operators that this package has not, sorted."""
    known = set(operator_names())
    used = {n.op for some in graphs.values() for g in some for n in g.nodes}
    portable = {
        plan.operators[step.op]
        for plan in records.plans.values()
        for chain in plan.chains
        for step in chain
        if isinstance(step, pte.KernelCall)
    }
    return sorted(used - known) + sorted(p for p in portable if find_kernel(p) is None)


async def _initial_values(plan: pte.ExecutionPlan) -> list[Any]:
    values: list[Any] = []
    for value in plan.values:
        if isinstance(value, pte.PteTensor):
            values.append(await _tensor(value))
        elif isinstance(value, (Int, Double, Bool, String)):
            values.append(value.value)
        elif value is None or isinstance(value, Null):
            values.append(None)
        else:
            values.append(getattr(value, "items", None))
    return values


async def _tensor(value: pte.PteTensor) -> np.ndarray | None:
    if value.data is None:
        return np.zeros(value.sizes, value.dtype) if value.planned else None
    raw = await value.data.read()
    return np.frombuffer(raw, value.dtype, value.numel).reshape(value.sizes).copy()


def _input(name: str, declared: Any, given: Any) -> Any:
    if not isinstance(declared, pte.PteTensor):
        return given.item() if isinstance(given, np.ndarray) else given
    array = np.asarray(given)
    if array.dtype != declared.dtype:
        raise DtypeError(f"{name} is {array.dtype}, the method takes {declared.dtype}")
    if array.ndim != len(declared.sizes) or (
        not declared.unbounded
        and any(d > m for d, m in zip(array.shape, declared.sizes, strict=True))
    ):
        raise ShapeError(
            f"{name} has shape {list(array.shape)}, the method takes up to {list(declared.sizes)}"
        )
    return array
