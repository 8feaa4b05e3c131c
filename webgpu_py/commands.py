"""What the command line does on a device: the same functions on CPython and in a page's worker.

Functions named `*_entry` are called in a browser by `webgpu_py.entry`; files arrive as URLs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .bridge import heap_nbytes
from .browser_source import open_url
from .conformance import run_case
from .device import Device, request_device
from .errors import ShapeError, WrongNumbers
from .graph.values import Source
from .llm import LLM
from .model_files import is_folder
from .models.first_layer import build_first_layer, check_first_layer
from .models.stored_model import gguf_model
from .program import load

_devices: dict[str, Device] = {}


async def shared_device(kind: Any) -> Device:
    """The one device of that kind that this process uses."""
    if kind not in _devices:
        _devices[kind] = await request_device(kind)
    return _devices[kind]


async def run_program(
    device: Device,
    source: Source | bytes,
    external: Sequence[Source],
    method: str,
    inputs: Mapping[str, np.ndarray],
    debug: bool = False,
) -> dict[str, np.ndarray]:
    """`out0, out1, ...` of a method on `arg0, arg1, ...`, and inputs it changed as `argN`.

    With `debug` every node is examined before that; WrongNumbers says what `Method.debug` found.
    """
    wanted = [f"arg{i}" for i in range(len(inputs))]
    if set(wanted) != set(inputs):
        raise ShapeError(f"inputs must be named {', '.join(wanted)}; got {', '.join(inputs)}")
    given = [inputs[name] for name in wanted]
    program = await load(source, device=device, external=external)
    try:
        if debug:
            report = await program.method(method).debug(*(a.copy() for a in given))
            if report.fault is not None:
                raise WrongNumbers(str(report))
            await program.reset()
        result = await program.method(method).run([a.copy() for a in given])
    finally:
        program.close()
    found = {f"out{i}": np.asarray(a) for i, a in enumerate(result.outputs)}
    for i, (before, after) in enumerate(zip(given, result.inputs, strict=True)):
        if not np.array_equal(before, after):
            found[f"arg{i}"] = np.asarray(after)
    return found


async def run_entry(args: dict[str, Any], emit: Callable[[Any], None]) -> dict[str, np.ndarray]:
    """`run_program` in the browser: `model`, `external` (URLs), `method`, `inputs`."""
    return await run_program(
        await shared_device("browser"),
        await open_url(args["model"], keep=False),
        [await open_url(url, keep=False) for url in args["external"]],
        args["method"],
        args["inputs"],
        args["debug"],
    )


async def conformance_entry(args: dict[str, Any], emit: Callable[[Any], None]) -> dict[str, Any]:
    """`run_case` in the browser: `files` maps names to URLs."""
    files: dict[str, str] = args["files"]

    async def read(name: str) -> bytes:
        source = await open_url(files[name], keep=False)
        try:
            return await source.read(0, source.nbytes)
        finally:
            source.close()

    external = [name for name in files if name.endswith(".ptd")]
    return (await run_case(read, await shared_device("browser"), external)).as_dict()


async def generate_text(
    device: Device,
    source: Source | str,
    prompt: str,
    chat: bool,
    options: Mapping[str, Any],
    emit: Callable[[Any], None],
) -> dict[str, Any]:
    """The answer to a prompt, as `webgpu-py generate --json` prints it.

    `emit` hears {"progress": [stage, done, total]} while the model loads, {"quantized": [matrices,
    dB of the worst]} where that was done, and {"text": piece}.
    """
    llm = await LLM.load(source, device=device, progress=lambda *at: emit({"progress": list(at)}))
    try:
        if llm.quantization:
            worst = min(loss.db for loss in llm.quantization.values())
            emit({"quantized": [len(llm.quantization), worst]})
        text = llm.render([{"role": "user", "content": prompt}]) if chat else prompt
        ids = llm.tokenize(text)
        stream = llm.generate(ids, **options)
        pieces = []
        async for piece in stream:
            pieces.append(piece)
            emit({"text": piece})
        return {
            "prompt_tokens": ids,
            "tokens": stream.tokens,
            "text": "".join(pieces),
            "finish_reason": stream.finish_reason,
            "timings": {"load_ms": llm.load_ms, **stream.timings},
            "adapter": {k: device.info[k] for k in ("vendor", "architecture", "software")},
            "memory": {
                "gpu_bytes": llm.memory()["total"],
                "python_heap_bytes": heap_nbytes(),
            },
        }
    finally:
        llm.close()


async def generate_entry(args: dict[str, Any], emit: Callable[[Any], None]) -> dict[str, Any]:
    """`generate_text` in the browser: `model` (URL), `file` in it, `prompt`, `chat`, `options`."""
    model = args["model"] + args["file"]
    return await generate_text(
        await shared_device("browser"),
        model if is_folder(model) else await open_url(model, keep=False),
        args["prompt"],
        args["chat"],
        args["options"],
        emit,
    )


async def first_layer_entry(args: dict[str, Any], emit: Callable[[Any], None]) -> dict[str, Any]:
    """Layer 0 of `model` (URL) for `prompt`, checked against float64: what `make demo` prints."""
    device, source = await shared_device("browser"), await open_url(args["model"], keep=False)
    emit({"stage": "reading the header"})
    stored = await gguf_model(source)
    config, weights, tokenizer = stored.config, stored.weights, stored.tokenizer
    ids = tokenizer.encode(args["prompt"])
    emit({"stage": "building the first layer, rearranging its weights on the GPU"})
    layer = await build_first_layer(device, config, weights, len(ids))
    try:
        found = await layer.run(ids)
        timings, memory = layer.session.timings(), layer.session.memory()
        timed = "timestamp-query" in device.features
        kernels = await layer.profile(ids) if timed else []
        emit({"stage": "computing the same in float64"})
        check = await check_first_layer(device, config, weights, ids, found)
    finally:
        layer.close()
    return {
        "tokens": [tokenizer.token_text(i) for i in ids],
        "lines": check.lines(),
        "adapter": device.info,
        "build_ms": timings["build_ms"],
        "run_ms": timings["run_ms"],
        "kernels": [list(k) for k in kernels],
        "dispatches": layer.session.dispatches,
        "gpu_bytes": memory["total"],
    }
