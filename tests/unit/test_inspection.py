"""`webgpu-py inspect` of language models: what they hold, what they take, why one does not run."""

import asyncio
import json

import numpy as np
import pytest

import tiny_folder
from tiny_model import tiny_gguf
from webgpu_py import LLM, FormatError, request_device
from webgpu_py.host import cli
from webgpu_py.inspection import inspect
from webgpu_py.sources import BytesSource

MATRICES, VECTORS = 1 + 7 * tiny_folder.LAYERS, 1 + 2 * tiny_folder.LAYERS


@pytest.fixture
def folder(tmp_path):
    return tiny_folder.write(tmp_path / "model", tiny_folder.files("BF16", shards=2))


def told(words, capsys):
    assert cli.main(["inspect", *map(str, words)]) == 0
    return capsys.readouterr().out


def test_a_folder_as_load_would_plan_it(folder, capsys):
    facts = json.loads(told([folder, "--json"], capsys))
    assert (facts["format"], facts["tensors"]) == ("folder", MATRICES + VECTORS)
    assert facts["types"] == {"BF16": MATRICES + VECTORS}
    numbers = sum(weights.size for weights in tiny_folder.arrays().values())
    assert facts["weights_nbytes"] == 2 * numbers
    assert facts["metadata"]["model_type"] == "llama"
    assert facts["unsupported"] == []

    async def allocated():
        llm = await LLM.load(folder, device=await request_device("cpu"))
        memory = llm.memory()
        llm.close()
        return memory

    (plan,) = facts["memory"]
    assert plan["context"] == tiny_folder.CONTEXT
    assert plan["weights"] == asyncio.run(allocated())["weights"]
    text = told([folder], capsys)
    assert "  unsupported: none" in text and f"BF16 x {MATRICES + VECTORS}" in text


def test_a_file_is_a_model_by_what_lies_beside_it(folder, tmp_path):
    alone = tmp_path / "alone" / "model.safetensors"
    alone.parent.mkdir()
    alone.write_bytes(tiny_folder.files("F16")["model.safetensors"])
    facts = asyncio.run(inspect(alone))
    assert facts["types"] == {"F16": MATRICES + VECTORS}
    assert facts["nbytes"] == alone.stat().st_size
    assert facts["memory"] == []
    assert "FormatError" in facts["unsupported"][0] and "no config.json" in facts["unsupported"][0]
    tiny_folder.write(alone.parent, tiny_folder.files("F16"))
    facts = asyncio.run(inspect(alone))
    assert facts["unsupported"] == [] and facts["memory"][0]["weights"] > 0


def test_what_save_wrote(folder, tmp_path):
    saved = tmp_path / "saved.safetensors"

    async def found():
        llm = await LLM.load(folder, device=await request_device("cpu"))
        await llm.save(saved)
        llm.close()
        return await inspect(folder), await inspect(saved)

    before, after = asyncio.run(found())
    assert after["metadata"]["webgpu_py.packed"] == "1" and after["unsupported"] == []
    assert after["memory"][0]["weights"] <= before["memory"][0]["weights"]
    assert after["types"] == {"U32": 2 * MATRICES, "F32": VECTORS, "U8": 4}


def test_why_a_model_does_not_run(folder):
    facts = asyncio.run(inspect(BytesSource(tiny_gguf(arch="strange"))))
    (reason,) = facts["unsupported"]
    assert reason.startswith("UnsupportedModel") and "strange" in reason
    facts = asyncio.run(inspect(BytesSource(tiny_gguf())))
    assert facts["unsupported"] == [] and facts["memory"][0]["total"] > 0
    config = tiny_folder.config() | {"model_type": "mamba"}
    (folder / "config.json").write_text(json.dumps(config))
    (reason,) = asyncio.run(inspect(folder))["unsupported"]
    assert reason.startswith("UnsupportedModel") and "mamba" in reason


def test_other_files_are_refused(tmp_path):
    np.save(tmp_path / "array.npy", np.arange(3))
    with pytest.raises(FormatError):
        asyncio.run(inspect(tmp_path / "array.npy"))
