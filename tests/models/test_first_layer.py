"""The look into a first layer: every architecture against float64 from the file's own weights."""

import asyncio

import numpy as np
import pytest

import tiny_folder
from models.test_architectures import GOLDENS, NAMES, golden
from webgpu_py import LLM, request_device
from webgpu_py.errors import ShapeError, WrongNumbers
from webgpu_py.models.first_layer import (
    build_first_layer,
    check_first_layer,
    first_layer_reference,
)


async def look(path, ids, spoil=0.0, **options):
    device = await request_device("cpu")
    llm = await LLM.load(path, device=device, **options)
    try:
        model = llm.stored.config, llm.stored.weights
        layer = await build_first_layer(device, *model)
        found = await layer.run(ids)
        with pytest.raises(ShapeError, match="takes 1 to 64"):
            await layer.run(ids * (1 + 64 // len(ids)))
        layer.close()
        found["k"][-1, -1, -1] += spoil
        return await check_first_layer(device, *model, ids, found)
    finally:
        llm.close()


@pytest.mark.parametrize(
    ("form", "options"), [("gguf", {}), ("folder", {}), ("folder", {"quantize": None})]
)
@pytest.mark.parametrize("name", NAMES)
def test_agrees_with_float64(name, form, options):
    path = GOLDENS / (f"{name}.gguf" if form == "gguf" else name)
    check = asyncio.run(look(path, golden(name)["ids"], **options))
    assert check.max_abs_error < 1e-6 * check.largest
    assert 15 < check.snr_db


@pytest.mark.parametrize("quantize", ["q4", "q8", None])
def test_what_save_wrote_is_looked_into_as_what_it_came_from(quantize, tmp_path):
    """Odd numbers of groups, rows out of order and twice."""
    folder = tiny_folder.write(tmp_path / "model", tiny_folder.files("BF16", "qwen2", tied=False))
    saved, ids = tmp_path / "saved.safetensors", [7, 258, 3, 3, 101]

    async def references():
        device = await request_device("cpu")
        llm = await LLM.load(folder, device=device, quantize=quantize)
        await llm.save(saved)
        ready = await LLM.load(saved, device=device)
        models = [(one.stored.config, one.stored.weights) for one in (llm, ready)]
        found = [await first_layer_reference(*model, ids) for model in models]
        types = [dict(weights.types) for _, weights in models]
        for one in (llm, ready):
            one.close()
        return found, types

    (first, second), types = asyncio.run(references())
    for name, values in first.items():
        np.testing.assert_array_equal(values, second[name])
    wanted = tiny_folder.FolderForward("BF16", "qwen2", tied=False, quantize=quantize)
    np.testing.assert_array_equal(first["embedding"], wanted.get("token_embd.weight")[ids])
    check = asyncio.run(look(saved, ids))
    assert check.max_abs_error < 1e-6 * check.largest
    matrices, vectors = 2 + 7 * tiny_folder.LAYERS, 1 + 5 * tiny_folder.LAYERS
    assert types[0] == {"BF16": matrices + vectors}
    stored = {"q4": {"Q8_0": 2, "Q4_0": matrices - 2}, "q8": {"Q8_0": matrices}}
    assert types[1] == {**stored.get(quantize, {"BF16": matrices}), "F32": vectors}


def test_wrong_numbers_are_told():
    with pytest.raises(WrongNumbers, match=r"max abs error 1\.000e-01"):
        asyncio.run(look(GOLDENS / "llama3.gguf", golden("llama3")["ids"], spoil=0.1))
