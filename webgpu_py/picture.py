"""A loaded program as plain records for drawing: `graph/picture.py`'s, over whole methods."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .formats import pte_records as pte
from .graph.picture import Boxes, Origin, Record, edge_record, shape_record
from .graph.values import GraphIR
from .portable import find_kernel
from .program import Method, Program


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
        "boxes": drawing.boxes.records,
        "outputs": [
            _port(f"out{k}", plan.values[i]) | {"from": drawing.origins.get(i)}
            for k, i in enumerate(plan.outputs)
        ],
    }


class _Drawing:
    def __init__(self, plan: pte.ExecutionPlan) -> None:
        self.plan = plan
        self.boxes = Boxes()
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
                edges.append(edge_record(self.origins[i], **_value_shape(value)))
            elif isinstance(value, pte.PteTensor):
                weights.append(shape_record(value.dtype, value.sizes))
        results = [i for i in self._flat(targets) if i >= 0]
        shapes = [_value_shape(self.plan.values[i]) for i in results]
        self.boxes.add(name, "cpu", edges, weights, [], shapes)
        for i in results:
            self.origins[i] = len(self.boxes.records) - 1

    def delegate(self, step: pte.DelegateCall, graph: GraphIR) -> None:
        """A delegate's operators, all in one dispatch list on the GPU."""
        ports = [p.value for p in graph.inputs] + [p.value for p in graph.outputs]
        origins = {
            ours: self.origins[theirs]
            for ours, theirs in zip(ports[: len(graph.inputs)], step.args, strict=False)
            if theirs in self.origins
        }
        self.boxes.chain(graph, origins)
        for ours, theirs in zip(ports, step.args, strict=False):
            if ours in origins:
                self.origins[theirs] = origins[ours]

    def _flat(self, ids: Iterable[int]) -> list[int]:
        found: list[int] = []
        for i in ids:
            value = self.plan.values[i] if i >= 0 else None
            if isinstance(value, pte.TensorIds):
                found += [j for j in value.items if j >= 0]
            else:
                found.append(i)
        return found


def _value_shape(value: Any) -> Record:
    """A value of a program: tensors with their sizes, numbers as scalars."""
    if isinstance(value, pte.PteTensor):
        return shape_record(value.dtype, value.sizes)
    return shape_record(type(value).__name__.lower(), ())


def _port(name: str, value: Any) -> Record:
    tensor = isinstance(value, pte.PteTensor)
    live = tensor and (value.dynamic or value.unbounded)
    return {"name": name, **_value_shape(value), "live": live, "scalar": not tensor}
