"""A graph as plain records for drawing: boxes in order, sizes on edges, weights inside.

Results of operators on constants alone (prepacking) count as weights, so a picture shows what a
run does and not what loading did.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .operator import find_operator
from .values import (
    Bool,
    BoolList,
    Double,
    DoubleList,
    GraphIR,
    Int,
    IntList,
    Node,
    Port,
    String,
    SymInt,
    Tensor,
    ValueId,
    ValueList,
)

Record = dict[str, Any]

Origin = int
"""Where an edge begins: the index of a box, or -1 - i for the picture's input i."""

MAX_ATTRIBUTE = 60


def graph_picture(graph: GraphIR) -> Record:
    """`inputs`, `boxes`, `outputs` of a graph by itself."""
    boxes = Boxes()
    origins = {port.value: -1 - k for k, port in enumerate(graph.inputs)}
    boxes.chain(graph, origins)
    return {
        "inputs": [_port(graph, port) for port in graph.inputs],
        "boxes": boxes.records,
        "outputs": [
            _port(graph, port) | {"from": origins.get(port.value)} for port in graph.outputs
        ],
    }


class Boxes:
    """Boxes under way: `records` so far."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def chain(self, graph: GraphIR, origins: dict[ValueId, Origin]) -> None:
        """Add a graph's operators; `origins` says where values come from, and learns more."""
        stored = {
            i
            for i, v in enumerate(graph.values)
            if isinstance(v, Tensor) and v.constant is not None
        }
        for node in graph.nodes:
            self._node(node, graph, origins, stored)

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
        edges = [edge_record(origins[i], *_dims(graph, i)) for i in tensors if i in origins]
        weights = [
            shape_record(*_dims(graph, i)) for i in tensors if i in stored and i not in origins
        ]
        attributes = [
            f"{argument.name}={text}"
            for argument, i in zip(signature.arguments, given, strict=False)
            if (text := _literal(graph.values[i])) is not None
        ]
        shapes = [shape_record(*_dims(graph, i)) for i in results]
        self.add(node.op, "gpu", edges, weights, attributes, shapes)
        changed = [
            i
            for argument, i in zip(signature.arguments, given, strict=False)
            if argument.mutated and isinstance(graph.values[i], Tensor)
        ]
        for i in (*results, *changed):
            origins[i] = len(self.records) - 1

    def add(
        self,
        op: str,
        place: str,
        edges: list[Record],
        weights: list[Record],
        attributes: list[str],
        results: list[Record],
    ) -> None:
        """One box; `place` is gpu or cpu."""
        self.records.append(
            {
                "op": op,
                "on": place,
                "edges": edges,
                "weights": weights,
                "attributes": attributes,
                "results": results,
            }
        )


def edge_record(origin: Origin, dtype: str, dims: Iterable[int]) -> Record:
    """An edge: where it begins, and what flows."""
    return {"from": origin, **shape_record(dtype, dims)}


def shape_record(dtype: str, dims: Iterable[int]) -> Record:
    """Element type and dims."""
    return {"dtype": dtype, "dims": list(dims)}


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


def _port(graph: GraphIR, port: Port) -> Record:
    dims = [str(d) if isinstance(d, int) else f"{d.name} ≤ {d.max}" for d in port.dims or ()]
    return {"name": port.name, **shape_record(*_dims(graph, port.value)), "words": dims}
