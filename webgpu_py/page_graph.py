"""A graph written in JavaScript (`web/graph.js`): its steps replayed by the builder, then runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .device import Device
from .errors import FormatError, ShapeError
from .graph.builder import Graph, dim
from .graph.session import Session
from .graph.values import Tensor

if TYPE_CHECKING:
    from .page import Call

STEPS = ("input", "symint", "constant", "call", "output")


class OpenGraph:
    """What is open when it is a graph."""

    kind = "graph"

    def __init__(self, session: Session) -> None:
        self._session = session

    def description(self) -> dict[str, Any]:
        """Ports with their largest dims, and what the session holds."""
        ir = self._session.graph
        ports = {"inputs": ir.inputs, "outputs": ir.outputs}
        return {
            "name": "graph",
            **{
                side: [self._port(port.name, ir.values[port.value]) for port in found]
                for side, found in ports.items()
            },
            "dispatches": self._session.dispatches,
            "memory": self._session.memory(),
        }

    def _port(self, name: str, value: Any) -> dict[str, Any]:
        if not isinstance(value, Tensor):
            return {"name": name, "dtype": "symint", "dims": []}
        return {"name": name, "dtype": value.spec.dtype, "dims": list(value.spec.dims)}

    async def run(self, args: dict[str, Any], call: Call) -> dict[str, np.ndarray]:
        """Outputs by name of arrays and integers by name."""
        return await self._session.run(**args["inputs"])

    async def debug(self, args: dict[str, Any], call: Call) -> dict[str, Any]:
        """What `Session.debug` finds for arrays and integers by name."""
        return (await self._session.debug(**args["inputs"])).plain()

    async def timings(self, args: dict[str, Any], call: Call) -> dict[str, Any]:
        """Milliseconds of build and last run."""
        return self._session.timings()

    async def reset(self, args: dict[str, Any], call: Call) -> None:
        """Mutable tensors as at first."""
        await self._session.reset()

    async def memory(self, args: dict[str, Any], call: Call) -> dict[str, Any]:
        """Device bytes by kind."""
        return {"gpu": self._session.memory()}

    def close(self) -> None:
        """Free the session."""
        self._session.close()


async def build_graph(steps: Sequence[Mapping[str, Any]], device: Device) -> OpenGraph:
    """The open graph of the steps that a page noted.

    Raises what the builder raises, for the first step that does not fit.
    """
    return OpenGraph(await replayed(steps).build(device))


def replayed(steps: Sequence[Mapping[str, Any]]) -> Graph:
    """The graph of the steps, checked step by step."""
    graph = Graph()
    found: list[Any] = []
    for step in steps:
        kind = next((name for name in STEPS if name in step), "")
        if kind == "input":
            shape = [_dim(d) for d in step["shape"]]
            found.append(graph.input(step["input"], shape, step["dtype"]))
        elif kind == "symint":
            found.append(graph.symint(step["symint"]))
        elif kind == "constant":
            found.append(graph.constant(step["constant"]))
        elif kind == "call":
            args = [_resolved(argument, found) for argument in step["args"]]
            found.append(graph.call(step["call"], *args))
        elif kind == "output":
            graph.output(step["output"], _resolved(step["value"], found))
            found.append(None)
        else:
            raise FormatError(f"step {len(found)}: {sorted(step)} is none of {', '.join(STEPS)}")
    return graph


def _dim(given: Any) -> Any:
    return dim(given["$dim"], max=given["max"]) if isinstance(given, dict) else given


def _resolved(argument: Any, found: Sequence[Any]) -> Any:
    if isinstance(argument, list):
        return [_resolved(part, found) for part in argument]
    if not isinstance(argument, dict):
        return argument
    value, at = found[argument["$value"]], argument["at"]
    if at is None:
        return list(value) if isinstance(value, tuple) else value
    if not isinstance(value, tuple) or not 0 <= at < len(value):
        count = len(value) if isinstance(value, tuple) else 1
        raise ShapeError(f"step {argument['$value']} has {count} results, not a result {at}")
    return value[at]
