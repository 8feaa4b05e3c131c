"""A loaded program as plain records for drawing: boxes in order, sizes on edges, weights inside.

Results of operators on constants alone (prepacking) count as weights, so a picture shows what a
run does and not what loading did.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .formats import pte_records as pte
from .graph.operator import find_operator
from .graph.values import (
    Bool,
    BoolList,
    Double,
    DoubleList,
    GraphIR,
    Int,
    IntList,
    Node,
    String,
    SymInt,
    Tensor,
    ValueId,
    ValueList,
)
from .portable import find_kernel
from .program import Method, Program

Record = dict[str, Any]

Origin = int
"""Where an edge begins: the index of a box, or -1 - i for the method's input i."""

MAX_ATTRIBUTE = 60


def program_picture(program: Program) -> list[Record]:
    """One picture a method: `name`, `inputs`, `boxes`, `outputs`."""
    return [method_picture(method) for method in program.methods.values()]


def method_picture(method: Method) -> Record:
    """Boxes of one method: its delegates' operators (GPU) and its own (CPU), in running order."""
    plan = method.plan
    drawing = _Drawing(plan)
    for chain in plan.chains:
        for step in chain:
            if isinstance(step, pte.DelegateCall):
                drawing.delegate(step, method.sessions[step.delegate].graph)
            elif isinstance(step, pte.KernelCall):
                drawing.kernel(step)
            elif isinstance(step, pte.MoveCall) and step.source in drawing.origins:
                drawing.origins[step.target] = drawing.origins[step.source]
    return {
        "name": plan.name,
        "inputs": [_port(f"arg{k}", plan.values[i]) for k, i in enumerate(plan.inputs)],
        "boxes": drawing.boxes,
        "outputs": [
            _port(f"out{k}", plan.values[i]) | {"from": drawing.origins.get(i)}
            for k, i in enumerate(plan.outputs)
        ],
    }


class _Drawing:
    def __init__(self, plan: pte.ExecutionPlan) -> None:
        self.plan = plan
        self.boxes: list[Record] = []
        self.origins: dict[int, Origin] = {i: -1 - k for k, i in enumerate(plan.inputs)}

    def kernel(self, step: pte.KernelCall) -> None:
        """A portable operator: NumPy does it."""
        name = self.plan.operators[step.op]
        edges, weights = [], []
        found = find_kernel(name)
        given, targets = found.split(step.args) if found else (step.args[:-1], step.args[-1:])
        for i in self._flat(given):
            value = self.plan.values[i]
            if i in self.origins:
                edges.append({"from": self.origins[i], **_value_shape(value)})
            elif isinstance(value, pte.PteTensor):
                weights.append(_shape(value.dtype, value.sizes))
        results = [i for i in self._flat(targets) if i >= 0]
        shapes = [_value_shape(self.plan.values[i]) for i in results]
        self._add(name, "cpu", edges, weights, [], shapes)
        for i in results:
            self.origins[i] = len(self.boxes) - 1

    def delegate(self, step: pte.DelegateCall, graph: GraphIR) -> None:
        """A delegate's operators, all in one dispatch list on the GPU."""
        ports = [p.value for p in graph.inputs] + [p.value for p in graph.outputs]
        origins = {
            ours: self.origins[theirs]
            for ours, theirs in zip(ports[: len(graph.inputs)], step.args, strict=False)
            if theirs in self.origins
        }
        stored = {
            i
            for i, v in enumerate(graph.values)
            if isinstance(v, Tensor) and v.constant is not None
        }
        for node in graph.nodes:
            self._node(node, graph, origins, stored)
        for ours, theirs in zip(ports, step.args, strict=False):
            if ours in origins:
                self.origins[theirs] = origins[ours]

    def _node(
        self, node: Node, graph: GraphIR, origins: dict[ValueId, Origin], stored: set[ValueId]
    ) -> None:
        signature = find_operator(node.op).signature
        given, results = node.args[:-1], _expanded(graph, node.args[-1:])
        tensors = [
            i for i in _expanded(graph, given) if isinstance(graph.values[i], (Tensor, SymInt))
        ]
        if tensors and all(i in stored for i in tensors):
            stored.update(results)
            return
        edges = [_edge(origins[i], *_dims(graph, i)) for i in tensors if i in origins]
        weights = [_shape(*_dims(graph, i)) for i in tensors if i in stored and i not in origins]
        attributes = [
            f"{argument.name}={text}"
            for argument, i in zip(signature.arguments, given, strict=False)
            if (text := _literal(graph.values[i])) is not None
        ]
        shapes = [_shape(*_dims(graph, i)) for i in results]
        self._add(node.op, "gpu", edges, weights, attributes, shapes)
        changed = [
            i
            for argument, i in zip(signature.arguments, given, strict=False)
            if argument.mutated and isinstance(graph.values[i], Tensor)
        ]
        for i in (*results, *changed):
            origins[i] = len(self.boxes) - 1

    def _add(
        self,
        op: str,
        place: str,
        edges: list[Record],
        weights: list[Record],
        attributes: list[str],
        results: list[Record],
    ) -> None:
        self.boxes.append(
            {
                "op": op,
                "on": place,
                "edges": edges,
                "weights": weights,
                "attributes": attributes,
                "results": results,
            }
        )

    def _flat(self, ids: Iterable[int]) -> list[int]:
        found: list[int] = []
        for i in ids:
            value = self.plan.values[i] if i >= 0 else None
            if isinstance(value, pte.TensorIds):
                found += [j for j in value.items if j >= 0]
            else:
                found.append(i)
        return found


def _expanded(graph: GraphIR, ids: Iterable[ValueId]) -> list[ValueId]:
    found: list[ValueId] = []
    for i in ids:
        value = graph.values[i]
        found += value.items if isinstance(value, ValueList) else [i]
    return found


def _dims(graph: GraphIR, i: ValueId) -> tuple[str, tuple[int, ...]]:
    value = graph.values[i]
    return (value.spec.dtype, value.spec.dims) if isinstance(value, Tensor) else ("integer", ())


def _literal(value: Any) -> str | None:
    if isinstance(value, (Int, Bool, String)):
        text = str(value.value)
    elif isinstance(value, Double):
        text = f"{value.value:g}"
    elif isinstance(value, (IntList, DoubleList, BoolList)):
        text = str(list(value.items))
    else:
        return None
    return text if len(text) <= MAX_ATTRIBUTE else text[:MAX_ATTRIBUTE] + "…"


def _shape(dtype: str, dims: Iterable[int]) -> Record:
    return {"dtype": dtype, "dims": list(dims)}


def _value_shape(value: Any) -> Record:
    """A value of a program: tensors with their sizes, numbers as scalars."""
    if isinstance(value, pte.PteTensor):
        return _shape(value.dtype, value.sizes)
    return _shape(type(value).__name__.lower(), ())


def _edge(origin: Origin, dtype: str, dims: Iterable[int]) -> Record:
    return {"from": origin, **_shape(dtype, dims)}


def _port(name: str, value: Any) -> Record:
    tensor = isinstance(value, pte.PteTensor)
    live = tensor and (value.dynamic or value.unbounded)
    return {"name": name, **_value_shape(value), "live": live, "scalar": not tensor}
