"""Every architecture against `transformers`: logits of a prompt and greedy tokens after it."""

import asyncio
import json
from pathlib import Path

import numpy as np
import pytest

from webgpu_py import DtypeError, request_device
from webgpu_py.llm import LLM
from webgpu_py.models.architectures import BY_MODEL_TYPE

GOLDENS = Path(__file__).parent / "goldens"
NAMES = sorted(path.stem for path in GOLDENS.glob("*.json"))
FLOAT16_CACHE = 3e-3
"""Of the largest logit: keys and values are rounded to 11 bits, in every layer."""
CONTEXT = 64
"""More than prompt and answer; longrope's factors follow it, not the length of a prompt."""


def golden(name):
    return json.loads((GOLDENS / f"{name}.json").read_text())


async def follow(llm, expected, chunk=32):
    """Logits of the prompt's last token, which goes in by chunks, and the greedy tokens.

    It also runs in the browser.
    """
    import numpy as np

    ids, rows = llm.tokenize(expected["prompt"]), llm.config.vocab_size
    assert ids == expected["ids"], ids
    for start in range(0, len(ids), chunk):
        part = ids[start : start + chunk]
        out = await llm.session.run(
            ids=np.array(part, np.int32),
            position=start,
            last=len(part) - 1,
            counts=np.zeros(rows, np.int32),
            bias=np.zeros(rows, np.float32),
            settings=np.zeros(8, np.int32),
        )
    stream = llm.generate(ids, max_tokens=len(expected["tokens"]))
    await stream.text()
    return out["logits"], stream.tokens


def assert_follows(found, expected, tolerance):
    logits, tokens = found
    wanted = np.array(expected["logits"])
    assert np.abs(logits - wanted).max() < tolerance * np.abs(wanted).max()
    assert tokens == expected["tokens"]


def test_there_is_a_golden_of_every_architecture():
    kinds = {json.loads((GOLDENS / n / "config.json").read_text())["model_type"] for n in NAMES}
    assert kinds == set(BY_MODEL_TYPE)


@pytest.mark.parametrize("form", ["gguf", "folder", "saved"])
@pytest.mark.parametrize("name", NAMES)
def test_on_the_cpu(name, form, tmp_path):
    path = GOLDENS / (f"{name}.gguf" if form == "gguf" else name)

    async def load(path):
        device = await request_device("cpu")
        return await LLM.load(path, device=device, context=CONTEXT, quantize=None)

    async def check():
        llm = await load(path)
        if form == "saved":
            await llm.save(tmp_path / "saved.safetensors")
            llm.close()
            llm = await load(tmp_path / "saved.safetensors")
        found = await follow(llm, golden(name))
        llm.close()
        return found

    assert_follows(asyncio.run(check()), golden(name), 1e-5)


def cache_nbytes(config, itemsize):
    """Keys and values of all layers."""
    rows = CONTEXT * config.num_key_value_heads * config.head_dim
    return 2 * config.num_hidden_layers * rows * itemsize


@pytest.mark.parametrize("name", NAMES)
def test_a_float16_cache_halves_its_memory_and_keeps_the_tokens(name):
    async def check(dtype):
        device = await request_device("cpu")
        llm = await LLM.load(
            GOLDENS / f"{name}.gguf", device=device, context=CONTEXT, kv_cache_dtype=dtype
        )
        found = await follow(llm, golden(name)), llm.memory()["state"], llm.config
        llm.close()
        return found

    exact, whole, config = asyncio.run(check("float32"))
    rounded, half, _ = asyncio.run(check("float16"))
    assert_follows(rounded, golden(name), FLOAT16_CACHE)
    assert not np.array_equal(rounded[0], exact[0])
    assert whole - half == cache_nbytes(config, 4) - cache_nbytes(config, 2)


def test_a_cache_of_another_type_is_refused():
    load = LLM.load(GOLDENS / "llama3.gguf", kv_cache_dtype="float8")
    with pytest.raises(DtypeError, match="'float8', allowed are 'float32' and 'float16'"):
        asyncio.run(load)
