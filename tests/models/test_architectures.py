"""Every architecture against `transformers`: logits of a prompt and greedy tokens after it."""

import asyncio
import json
from pathlib import Path

import numpy as np
import pytest

from webgpu_py import request_device
from webgpu_py.llm import LLM

GOLDENS = Path(__file__).parent / "goldens"
NAMES = sorted(path.stem for path in GOLDENS.glob("*.json"))
CONTEXT = 64
"""More than prompt and answer; longrope's factors follow it, not the length of a prompt."""


def golden(name):
    return json.loads((GOLDENS / f"{name}.json").read_text())


async def prompt_logits(llm, ids, chunk=32):
    """Logits of the last of `ids`, which go in by chunks as a prompt does."""
    rows = llm.config.vocab_size
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
    return out["logits"]


def assert_logits(found, expected):
    expected = np.array(expected)
    assert np.abs(found - expected).max() < 1e-4 * np.abs(expected).max()


def test_there_is_a_golden_of_every_architecture():
    from webgpu_py.models.architectures import BY_MODEL_TYPE

    kinds = {json.loads((GOLDENS / n / "config.json").read_text())["model_type"] for n in NAMES}
    assert kinds == set(BY_MODEL_TYPE)


@pytest.mark.parametrize("name", NAMES)
def test_gguf_on_the_cpu(name):
    expected = golden(name)

    async def check():
        data = (GOLDENS / f"{name}.gguf").read_bytes()
        llm = await LLM.load(data, device=await request_device("cpu"), context=CONTEXT)
        assert llm.tokenize(expected["prompt"]) == expected["ids"]
        logits = await prompt_logits(llm, expected["ids"])
        stream = llm.generate(expected["prompt"], max_tokens=len(expected["tokens"]))
        await stream.text()
        llm.close()
        return logits, stream.tokens

    logits, tokens = asyncio.run(check())
    assert_logits(logits, expected["logits"])
    assert tokens == expected["tokens"]
