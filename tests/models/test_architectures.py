"""Every architecture against `transformers`: logits of a prompt and greedy tokens after it."""

import asyncio
import json
from pathlib import Path

import numpy as np
import pytest

from webgpu_py import request_device
from webgpu_py.llm import LLM
from webgpu_py.models.architectures import BY_MODEL_TYPE

GOLDENS = Path(__file__).parent / "goldens"
NAMES = sorted(path.stem for path in GOLDENS.glob("*.json"))
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
