"""Configurations of strangers: any value anywhere is taken, or refused soon and by name."""

import asyncio
import json
from pathlib import Path

import pytest

from gguf_writer import gguf_bytes
from webgpu_py.errors import WebGPUPyError
from webgpu_py.formats.gguf import read_gguf
from webgpu_py.models.config import ModelConfig
from webgpu_py.models.gguf_config import gguf_config
from webgpu_py.sources import BytesSource

GOLDENS = Path(__file__).parents[1] / "models" / "goldens"
INF, NAN = float("inf"), float("nan")
JUNK = [None, True, -1, 0, 1, 3, 10**12, 0.5, -2.5, 1e300, INF, NAN, "x", [], [1, "x"], {}]
JUNK += [{"rope_type": "yarn"}, {"full_attention": 1}, {"rope_type": ["x"]}, ["sliding_attention"]]
FOLDERS = sorted(path.parent for path in GOLDENS.glob("*/config.json"))


def places(node, path=()):
    """Every place in a tree of dicts."""
    for key, value in node.items():
        yield (*path, key)
        if isinstance(value, dict):
            yield from places(value, (*path, key))


def damaged(config, place, junk):
    copy = json.loads(json.dumps(config))
    inner = copy
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = junk
    return copy


def refused_or_taken(read):
    try:
        made = read()
    except WebGPUPyError as error:
        assert str(error)
        return
    assert len(made.windows) == made.num_hidden_layers <= 4096
    if made.max_position_embeddings > 4096:
        return
    try:
        made.rope_of(0).table(16)
    except (OverflowError, ZeroDivisionError) as error:
        raise AssertionError(made) from error


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_config_json(folder):
    config = json.loads((folder / "config.json").read_text())
    for place in places(config):
        for junk in JUNK:
            refused_or_taken(lambda: ModelConfig.from_hf(damaged(config, place, junk)))  # noqa: B023


@pytest.mark.parametrize("arch", ["llama", "gemma3", "phi3"])
def test_gguf_metadata(arch):
    good = {
        "embedding_length": 32,
        "feed_forward_length": 64,
        "block_count": 2,
        "attention.head_count": 4,
        "attention.head_count_kv": 2,
        "attention.key_length": 8,
        "attention.value_length": 8,
        "context_length": 512,
        "attention.layer_norm_rms_epsilon": 1e-5,
        "attention.sliding_window": 16,
        "attention.sliding_window_pattern": 6,
        "rope.freq_base": 10000.0,
        "rope.freq_base_swa": 10000.0,
        "rope.dimension_count": 8,
        "rope.scaling.type": "yarn",
        "rope.scaling.factor": 4.0,
        "rope.scaling.original_context_length": 128,
        "rope.scaling.attn_factor": 1.0,
        "rope.scaling.yarn_beta_fast": 32.0,
        "rope.scaling.yarn_beta_slow": 1.0,
        "attn_logit_softcapping": 50.0,
        "final_logit_softcapping": 30.0,
        "expert_count": 0,
    }
    table = {"token_embd.weight": ("F32", (10, 32), bytes(1280))}
    junk = [True, ("u32", 0), ("i32", -1), 3, ("u64", 10**12), 0.5, -2.5, INF, NAN, "x", [1, 2]]
    for key in good:
        for value in junk:
            pairs = {f"{arch}.{k}": v for k, v in (good | {key: value}).items()}
            source = BytesSource(gguf_bytes({"general.architecture": arch, **pairs}, table))
            file = asyncio.run(read_gguf(source))
            refused_or_taken(lambda: asyncio.run(gguf_config(file, source)))  # noqa: B023
