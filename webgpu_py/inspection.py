"""What a model file holds and whether it can run here, from its header and graphs alone."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from .errors import WebGPUPyError
from .formats.gguf import read_gguf
from .formats.pte import read_pte
from .formats.pte_records import ExecutionPlan, KernelCall, PteTensor
from .formats.safetensors import SafetensorsTensor, read_safetensors
from .graph.memory import plan_memory
from .graph.operator import operator_names
from .graph.shapes import propagate, resolve
from .graph.values import GraphIR, Source
from .llm import DEFAULT_CONTEXT, largest_chunk
from .model_files import Folder, open_model
from .models.checkpoint import read_config, read_tensors
from .models.decoder import build_decoder
from .portable import find_kernel
from .program import delegate_graphs
from .sources import FileSource, close_sources


async def inspect(
    given: str | os.PathLike[str] | Source, external: Sequence[Source] = ()
) -> dict[str, Any]:
    """Facts about a `.pte`, a GGUF, safetensors or a Hugging Face folder.

    Files are told apart by their first bytes; FormatError for others, and for damaged ones. What
    keeps a model from running is told under "unsupported".
    """
    if isinstance(given, (str, os.PathLike)):
        if os.path.isdir(given):
            return await _inspect_folder(Path(given))
        source: Source = FileSource(given)
    else:
        source = given
    start = await source.read(0, min(9, source.nbytes))
    if start[:4] == b"GGUF":
        return await _inspect_gguf(source)
    if start[8:] == b"{":
        return await _inspect_safetensors(source, given)
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
    return {
        "file": source.name,
        "format": "gguf",
        "nbytes": source.nbytes,
        "metadata": _plain(file.metadata),
        "tensors": len(file.tensors),
        "types": dict(Counter(t.type for t in file.tensors.values()).most_common()),
        "weights_nbytes": sum(t.nbytes for t in file.tensors.values()),
        **await _model(source),
    }


async def _inspect_safetensors(source: Source, given: Any) -> dict[str, Any]:
    """One file; with the files beside it, if it was given by a path, it may be a model."""
    file = await read_safetensors(source)
    return {
        "file": source.name,
        "format": "safetensors",
        "nbytes": source.nbytes,
        "metadata": _plain(file.metadata),
        **_tensors(file.tensors.values()),
        **await _model(given),
    }


async def _inspect_folder(path: Path) -> dict[str, Any]:
    files = Folder(path)
    raw, config = await read_config(files)
    tensors, _ = await read_tensors(files)
    close_sources([source for source, _ in tensors.values()])
    return {
        "file": str(path),
        "format": "folder",
        "nbytes": len(raw) + sum({s.name: s.nbytes for s, _ in tensors.values()}.values()),
        "metadata": _plain(config),
        **_tensors([tensor for _, tensor in tensors.values()]),
        **await _model(path),
    }


def _tensors(tensors: Collection[SafetensorsTensor]) -> dict[str, Any]:
    return {
        "tensors": len(tensors),
        "types": dict(Counter(t.dtype for t in tensors).most_common()),
        "weights_nbytes": sum(t.nbytes for t in tensors),
    }


def _plain(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: value if isinstance(value, (int, float, str)) else f"[{len(value)} values]"
        for key, value in metadata.items()
        if value is not None
    }


async def _model(given: Any) -> dict[str, Any]:
    """A language model's device bytes as `LLM.load` would plan them, or why it would not."""
    opened: list[Source] = []
    try:
        stored = await open_model(given, "q4", opened)
        context = min(stored.config.max_position_embeddings, DEFAULT_CONTEXT)
        chunk = largest_chunk(stored.config, context)
        decoder = build_decoder(stored.config, stored.weights, context, chunk)
    except WebGPUPyError as error:
        return {"memory": [], "unsupported": [f"{error.code}: {error}"]}
    finally:
        close_sources(opened)
    plan = {"context": context, **_memory(decoder.graph.ir)}
    return {"memory": [plan], "unsupported": []}


def describe(facts: dict[str, Any]) -> str:
    """The facts as text for a terminal."""
    lines = [f"{facts['file']}: {facts['format']}, {facts['nbytes']:,} bytes"]
    if facts["format"] != "pte":
        lines += [f"  {k}: {_short(v)}" for k, v in facts["metadata"].items()]
        types = ", ".join(f"{k} x {n}" for k, n in facts["types"].items())
        lines.append(f"  {facts['tensors']} tensors ({types}), {facts['weights_nbytes']:,} bytes")
        lines += [f"  memory plan: {_plan(m)}" for m in facts["memory"]]
        lines.append(f"  unsupported: {', '.join(facts['unsupported']) or 'none'}")
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
    """`buffers` is a count; what else is a number is bytes."""
    told = [f"{k} {v:,}" if isinstance(v, int) else f"{k} {v}" for k, v in memory.items()]
    return f"{', '.join(told)} bytes"
