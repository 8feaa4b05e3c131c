"""The chain as calls, and one pass over it that gives every tensor and SymInt its live value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ..errors import ShapeError, UnsupportedOperator
from .call import Call, Env
from .operator import find_operator, operator_names
from .values import GraphIR, SymInt, Tensor, TensorSpec, ValueId, ValueList

DimsKey = tuple[tuple[int, ...], ...]


def resolve(graph: GraphIR) -> list[Call]:
    """Every node with its operator; all unknown names are reported together."""
    unknown = sorted({n.op for n in graph.nodes} - set(operator_names()))
    if unknown:
        raise UnsupportedOperator(f"unsupported op: {', '.join(unknown)}")
    env = maximal(graph)
    calls = []
    for index, node in enumerate(graph.nodes):
        bad = [i for i in node.args if not 0 <= i < len(graph.values)]
        if bad:
            raise ShapeError(f"{node.op} (node {index}): argument ids {bad} name no value")
        op = find_operator(node.op)
        call = Call(op, node, index, graph, env)
        most = len(op.signature.arguments) + 1
        if len(node.args) > most or not node.args:
            raise call.error(
                ShapeError, f"{len(node.args)} arguments, allowed are 1 to {most} with the result"
            )
        calls.append(call)
    return calls


def maximal(graph: GraphIR) -> Env:
    """Maximal dims, and the SymInts' initial values."""
    env = Env(maximal=True)
    add_maximal(env, graph)
    return env


def add_maximal(env: Env, graph: GraphIR, first: ValueId = 0) -> None:
    """What `maximal` says of the values from `first` on."""
    for i in range(first, len(graph.values)):
        value = graph.values[i]
        if isinstance(value, Tensor):
            env.dims[i] = value.spec.dims
        elif isinstance(value, SymInt):
            env.symints[i] = value.initial


def propagate(
    graph: GraphIR,
    calls: list[Call],
    inputs: Mapping[ValueId, tuple[int, ...]],
    host: Mapping[ValueId, np.ndarray],
    symints: Mapping[ValueId, int] | None = None,
) -> Env:
    """Live dims and SymInts for one run, in chain order; checks every node on the way.

    The session's own state is untouched, so a failure leaves it usable.
    """
    env = maximal(graph)
    env.maximal = not (inputs or symints)
    env.dims.update(inputs)
    env.host.update(host)
    env.symints.update(symints or {})
    for call in calls:
        infer_into(call.with_env(env))
    return env


class Propagation:
    """`propagate` for run after run: with the dims of an earlier run, only values are looked at.

    Those are SymInts and the contents of inputs; calls that see neither gave their answer before.
    """

    def __init__(self, graph: GraphIR, calls: list[Call]) -> None:
        self._graph = graph
        self._calls = calls
        self._known: dict[DimsKey, Env] = {}
        inputs = {p.value for p in graph.inputs}
        self._by_value = [c for c in calls if _sees_values(c, inputs)]

    def run(
        self,
        inputs: Mapping[ValueId, tuple[int, ...]],
        host: Mapping[ValueId, np.ndarray],
        symints: Mapping[ValueId, int],
    ) -> Env:
        """See propagate."""
        key = tuple(inputs.values())
        known = self._known.get(key)
        if known is not None:
            env = replace(known, dims=dict(known.dims), host=dict(host))
            env.symints = {**known.symints, **symints}
            for call in self._by_value:
                infer_into(call.with_env(env))
            if env.dims == known.dims:
                return env
        env = propagate(self._graph, self._calls, inputs, host, symints)
        self._known[key] = replace(env, host={})
        return env


def _sees_values(call: Call, inputs: set[ValueId]) -> bool:
    values = call.graph.values
    seen: list[ValueId] = []
    for i in call.argument_ids:
        value = values[i]
        seen += value.items if isinstance(value, ValueList) else [i]
    return call.operator.signature.kind == "symint" or any(
        i in inputs or isinstance(values[i], SymInt) for i in seen
    )


def infer_into(call: Call) -> None:
    """Run one call's rule and store its results in the call's env."""
    op, env = call.operator, call.env
    results = call.result_ids
    if op.signature.kind == "symint":
        if isinstance(call.graph.values[results[0]], SymInt):
            env.symints[results[0]] = op.evaluate(call)
        return
    specs = op.infer(call)
    if len(specs) < len(results):
        raise call.error(ShapeError, f"{len(results)} results, this call gives {len(specs)}")
    for at, (i, spec) in enumerate(zip(results, specs, strict=False)):
        value = call.graph.values[i]
        if isinstance(value, Tensor):
            _check_result(call, call.result_name(at), value.spec, spec)
            env.dims[i] = spec.dims


def _check_result(call: Call, name: str, most: TensorSpec, got: TensorSpec) -> None:
    if got.dtype != most.dtype:
        raise call.error(ShapeError, f"{name} is declared {most.dtype}, the result is {got.dtype}")
    if len(got.dims) != len(most.dims) or any(
        not (0 < g <= m or g == m == 0) for g, m in zip(got.dims, most.dims, strict=True)
    ):
        raise call.error(
            ShapeError,
            f"{name} is declared {list(most.dims)}, the result is {list(got.dims)}; "
            "each dim must be between 1 and the declared one",
        )


def dims_key(env: Env) -> DimsKey:
    """What one lowering serves: the live dims of every tensor."""
    return tuple(env.dims.values())
