"""What a model file holds and whether it can run here, from its header and graphs alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from .errors import WebGPUPyError
from .formats.gguf import read_gguf
from .formats.pte import read_pte
from .formats.pte_records import ExecutionPlan, KernelCall, PteTensor
from .graph.memory import plan_memory
from .graph.operator import operator_names
from .graph.shapes import propagate, resolve
from .graph.values import GraphIR, Source
from .portable import find_kernel
from .program import delegate_graphs


async def inspect(source: Source, external: Sequence[Source] = ()) -> dict[str, Any]:
    """Facts about a `.pte` or a GGUF, told apart by their first bytes. FormatError for others."""
    if await source.read(0, min(4, source.nbytes)) == b"GGUF":
        return await _inspect_gguf(source)
    records = await read_pte(source, external)
    graphs = await delegate_graphs(records)
    return {
        "file": source.name,
        "format": "pte",
        "nbytes": source.nbytes,
        "methods": [_method(plan, graphs[name]) for name, plan in records.plans.items()],
    }


def _method(plan: ExecutionPlan, graphs: list[GraphIR]) -> dict[str, Any]:
    delegated = Counter(n.op for g in graphs for n in g.nodes)
    portable = Counter(
        plan.operators[step.op]
        for chain in plan.chains
        for step in chain
        if isinstance(step, KernelCall)
    )
    missing = sorted(set(delegated) - set(operator_names()))
    missing += sorted(name for name in portable if find_kernel(name) is None)
    return {
        "name": plan.name,
        "inputs": [_value(plan, i) for i in plan.inputs],
        "outputs": [_value(plan, i) for i in plan.outputs],
        "delegates": len(graphs),
        "operators": dict(delegated.most_common()),
        "portable": dict(portable.most_common()),
        "constants": {
            "count": sum(len(g.constants) for g in graphs),
            "nbytes": sum(c.spec.nbytes for g in graphs for c in g.constants),
        },
        "memory": [_memory(g) for g in graphs] if not missing else [],
        "unsupported": missing,
    }


def _value(plan: ExecutionPlan, index: int) -> dict[str, Any]:
    value = plan.values[index]
    if not isinstance(value, PteTensor):
        return {"kind": type(value).__name__, "value": getattr(value, "value", None)}
    return {"dtype": value.dtype, "shape": list(value.sizes), "dynamic": value.dynamic}


def _memory(graph: GraphIR) -> dict[str, Any]:
    """Device bytes by kind at the maximal shapes, or why the graph can't be planned."""
    try:
        calls = resolve(graph)
        propagate(graph, calls, {}, {})
        slots = plan_memory(graph, calls).slots
    except WebGPUPyError as error:
        return {"error": f"{error.code}: {error}"}
    kinds = Counter[str]()
    for slot in slots:
        kinds[slot.kind] += slot.nbytes
    return {"buffers": len(slots), **kinds, "total": kinds.total()}


async def _inspect_gguf(source: Source) -> dict[str, Any]:
    file = await read_gguf(source)
    plain = {
        key: value if isinstance(value, (int, float, str)) else f"[{len(value)} values]"
        for key, value in file.metadata.items()
    }
    return {
        "file": source.name,
        "format": "gguf",
        "nbytes": source.nbytes,
        "metadata": plain,
        "tensors": len(file.tensors),
        "types": dict(Counter(t.type for t in file.tensors.values()).most_common()),
        "weights_nbytes": sum(t.nbytes for t in file.tensors.values()),
    }


def describe(facts: dict[str, Any]) -> str:
    """The facts as text for a terminal."""
    lines = [f"{facts['file']}: {facts['format']}, {facts['nbytes']:,} bytes"]
    if facts["format"] == "gguf":
        lines += [f"  {k}: {_short(v)}" for k, v in facts["metadata"].items()]
        types = ", ".join(f"{k} x {n}" for k, n in facts["types"].items())
        lines.append(f"  {facts['tensors']} tensors ({types}), {facts['weights_nbytes']:,} bytes")
        return "\n".join(lines)
    for method in facts["methods"]:
        lines.append(f"method {method['name']}")
        for port in ("inputs", "outputs"):
            lines += [f"  {port[:-1]} {i}: {_port(v)}" for i, v in enumerate(method[port])]
        for title, key in (("delegated", "operators"), ("portable", "portable")):
            lines += [f"  {title} {name} x {n}" for name, n in method[key].items()]
        constants = method["constants"]
        lines.append(f"  constants: {constants['count']}, {constants['nbytes']:,} bytes")
        lines += [f"  memory plan: {_plan(m)}" for m in method["memory"]]
        unsupported = ", ".join(method["unsupported"]) or "none"
        lines.append(f"  unsupported: {unsupported}")
    return "\n".join(lines)


def _short(value: Any) -> str:
    text = str(value).replace("\n", " ")
    return text if len(text) <= 80 else text[:77] + "..."


def _port(value: dict[str, Any]) -> str:
    if "dtype" not in value:
        return f"{value['kind']} {value['value']}"
    return f"{value['dtype']} {value['shape']}{' (up to)' if value['dynamic'] else ''}"


def _plan(memory: dict[str, Any]) -> str:
    return ", ".join(f"{k} {v:,}" if isinstance(v, int) else f"{k} {v}" for k, v in memory.items())
