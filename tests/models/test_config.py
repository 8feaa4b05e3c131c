"""Configurations as they are published, in old and new spelling, and GGUF's omissions."""

import asyncio

import numpy as np
import pytest

from gguf_writer import gguf_bytes
from webgpu_py.errors import FormatError, UnsupportedModel
from webgpu_py.formats.gguf import read_gguf
from webgpu_py.models.config import ModelConfig
from webgpu_py.models.gguf_config import gguf_config
from webgpu_py.models.rope import Rope, RopeScaling
from webgpu_py.sources import BytesSource

SMALL = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 512,
    "vocab_size": 100,
    "rms_norm_eps": 1e-5,
}
LLAMA32 = {
    "factor": 32.0,
    "high_freq_factor": 4.0,
    "low_freq_factor": 1.0,
    "original_max_position_embeddings": 128,
}


def config(**settings):
    return ModelConfig.from_hf({**SMALL, **settings})


def without(name):
    return ModelConfig.from_hf({k: v for k, v in SMALL.items() if k != name})


def from_gguf(metadata, arch="llama", tensors=None, rows=100):
    keys = {
        "general.architecture": arch,
        f"{arch}.embedding_length": 64,
        f"{arch}.feed_forward_length": 96,
        f"{arch}.block_count": 2,
        f"{arch}.attention.head_count": 4,
        f"{arch}.context_length": 512,
        f"{arch}.attention.layer_norm_rms_epsilon": 1e-5,
        **{f"{arch}.{key}": value for key, value in metadata.items()},
    }
    keys = {key: value for key, value in keys.items() if value is not None}
    table = {"token_embd.weight": ("F32", (rows, 64), bytes(rows * 64 * 4))} if rows else {}
    source = BytesSource(gguf_bytes(keys, {**table, **(tensors or {})}))

    async def read():
        return await gguf_config(await read_gguf(source), source)

    return asyncio.run(read())


def test_llama_in_old_and_new_spelling():
    old = config(rope_theta=5e5, rope_scaling={"rope_type": "llama3", **LLAMA32})
    new = config(rope_parameters={"rope_type": "llama3", "rope_theta": 5e5, **LLAMA32})
    assert old == new
    assert (old.rope.dim, old.rope.theta, old.num_key_value_heads) == (16, 5e5, 4)
    assert old.rope.scaling == RopeScaling("llama3", 32.0, 128)
    assert old.windows == (0, 0)


def test_rope_freqs_of_a_gguf_equal_the_formula_they_come_from():
    scaled = Rope(16, 5e5, RopeScaling("llama3", 32.0, 128))
    plain = Rope(16, 5e5)
    factors = (plain.angles(2)[0][1] / scaled.angles(2)[0][1]).astype("<f4")
    assert 1 in factors and 32 in factors
    tensors = {"rope_freqs.weight": ("F32", (8,), factors.tobytes())}
    found = from_gguf({"rope.freq_base": 5e5}, tensors=tensors)
    np.testing.assert_allclose(found.rope.table(512), scaled.table(512), atol=2e-5)
    assert found.rope_interleaved


@pytest.mark.parametrize(
    ("settings", "windows"),
    [
        ({"model_type": "mistral", "sliding_window": 4096}, (4096, 4096)),
        ({"model_type": "mistral", "sliding_window": None}, (0, 0)),
        ({"model_type": "qwen2", "sliding_window": 64, "use_sliding_window": False}, (0, 0)),
        (
            {
                "model_type": "qwen2",
                "sliding_window": 64,
                "use_sliding_window": True,
                "max_window_layers": 1,
            },
            (0, 64),
        ),
        (
            {
                "model_type": "qwen3",
                "sliding_window": 64,
                "layer_types": ["sliding_attention", "full_attention"],
            },
            (64, 0),
        ),
        ({"model_type": "phi3", "sliding_window": 2047}, (2047, 2047)),
    ],
)
def test_windows(settings, windows):
    assert config(**settings).windows == windows


def test_gemma_2():
    found = config(
        model_type="gemma2",
        hidden_act="gelu_pytorch_tanh",
        head_dim=32,
        query_pre_attn_scalar=144,
        attn_logit_softcapping=50.0,
        final_logit_softcapping=30.0,
        sliding_window=4096,
    )
    assert found.attention_scale == pytest.approx(1 / 12)
    assert (found.attention_softcap, found.logits_softcap) == (50.0, 30.0)
    assert (found.embedding_scale, found.norm_offset) == (8.0, 1.0)
    assert found.windows == (4096, 0)


def test_gemma_3_in_old_and_new_spelling():
    common = {
        "model_type": "gemma3_text",
        "hidden_activation": "gelu_pytorch_tanh",
        "num_hidden_layers": 8,
        "head_dim": 32,
        "query_pre_attn_scalar": 256,
        "sliding_window": 512,
    }
    old = config(
        **common,
        rope_theta=1e6,
        rope_local_base_freq=1e4,
        rope_scaling={"rope_type": "linear", "factor": 8.0},
        sliding_window_pattern=6,
    )
    new = config(
        **common,
        rope_parameters={
            "full_attention": {"rope_type": "linear", "rope_theta": 1e6, "factor": 8.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
        },
        layer_types=["sliding_attention"] * 5 + ["full_attention"] + ["sliding_attention"] * 2,
    )
    assert old == new
    assert old.windows == (512,) * 5 + (0, 512, 512)
    assert old.local_rope == Rope(32, 1e4)
    assert old.rope.scaling.factor == 8.0
    assert old.attention_scale == 1 / 16


def test_longrope_chooses_its_factors_by_the_context():
    factors = {"short_factor": [1.0] * 6, "long_factor": [2.0, 3.0, 4.0, 5.0, 6.0, 7.0]}
    found = config(
        model_type="phi3",
        original_max_position_embeddings=128,
        partial_rotary_factor=0.75,
        rope_scaling={"type": "su", **factors},
    )
    assert found.rope.dim == 12
    factor = np.sqrt(1 + np.log(4) / np.log(128))
    short, long = found.rope.angles(128), found.rope.angles(129)
    assert short[1] == long[1] == pytest.approx(factor)
    np.testing.assert_allclose(short[0][1] / long[0][1], factors["long_factor"])


@pytest.mark.parametrize(("arch", "layers", "scale"), [("gemma2", 46, 144), ("gemma3", 62, 168)])
def test_gguf_does_not_say_how_the_27_billion_models_divide_scores(arch, layers, scale):
    big = {
        "embedding_length": scale * 32,
        "attention.head_count": 32,
        "block_count": layers,
        "attention.key_length": 128,
    }
    table = {"token_embd.weight": ("F32", (1, scale * 32), bytes(4 * scale * 32))}
    found = from_gguf(big, arch, table, rows=0)
    assert found.attention_scale == pytest.approx(scale**-0.5)
    small = from_gguf({**big, "block_count": 26}, arch, table, rows=0)
    assert small.attention_scale == pytest.approx(128**-0.5)


def test_what_ggufs_of_gemma_leave_out():
    found = from_gguf({}, "gemma2")
    assert (found.windows, found.norm_offset, found.rope) == ((4096, 0), 0.0, Rope(16))
    assert (found.attention_softcap, found.logits_softcap) == (50.0, 30.0)
    found = from_gguf({"block_count": 6, "attention.sliding_window": 512}, "gemma3")
    assert found.windows == (512,) * 5 + (0,)
    assert found.local_rope == Rope(16, 1e4)
    assert not found.rope_interleaved


def test_yarn_of_a_gguf():
    scaling = {"type": "yarn", "factor": 4.0, "original_context_length": 128}
    found = from_gguf({f"rope.scaling.{k}": v for k, v in scaling.items()}, "qwen2")
    assert found.rope.scaling == RopeScaling("yarn", 4.0, 128)
    factor = 0.1 * np.log(4.0) + 1
    assert found.rope.angles(8)[1] == pytest.approx(factor)
    scaling["attn_factor"] = 0.5
    found = from_gguf({f"rope.scaling.{k}": v for k, v in scaling.items()}, "qwen2")
    assert found.rope.angles(8)[1] == pytest.approx(0.5 * factor)


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (lambda: config(model_type="mamba"), UnsupportedModel, "'mamba'.*llama, mistral.*phi3"),
        (lambda: from_gguf({}, "mamba"), UnsupportedModel, "'mamba'.*llama, qwen2.*gemma3, phi3"),
        (lambda: from_gguf({"expert_count": 8}), UnsupportedModel, "mixture of 8 experts"),
        (
            lambda: from_gguf({"attention.key_length": 16, "attention.value_length": 8}),
            UnsupportedModel,
            "keys of 16 and values of 8",
        ),
        (
            lambda: config(
                model_type="gemma3_text",
                hidden_act="gelu_pytorch_tanh",
                use_bidirectional_attention=True,
            ),
            UnsupportedModel,
            "use_bidirectional_attention",
        ),
        (
            lambda: config(rope_scaling={"type": "yarn", "factor": 2.0, "mscale": 0.7}),
            UnsupportedModel,
            "'yarn' with mscale",
        ),
        (lambda: config(hidden_act="relu"), UnsupportedModel, "'relu', must be 'silu'"),
        (
            lambda: config(rope_scaling={"type": "dynamic", "factor": 2.0}),
            UnsupportedModel,
            "'dynamic'.*linear, llama3, yarn, longrope",
        ),
        (lambda: config(rope_scaling={"type": "linear"}), FormatError, "lacks 'factor'"),
        (
            lambda: config(rope_scaling={"type": "linear", "factor": -1}),
            FormatError,
            "positive factor.*-1",
        ),
        (
            lambda: config(
                rope_scaling={"type": "yarn", "factor": 2, "original_max_position_embeddings": 1}
            ),
            FormatError,
            "from 2 to",
        ),
        (lambda: config(rope_theta="big"), FormatError, "rope_theta='big', must be a number"),
        (lambda: config(rope_theta=1), FormatError, "base above 1"),
        (
            lambda: config(rope_scaling={"type": "longrope", "short_factor": [1.0]}),
            FormatError,
            "1 short and 0 long factors.*need 8",
        ),
        (lambda: config(layer_types=["chunked_attention"]), UnsupportedModel, "chunked_attention"),
        (lambda: config(layer_types=["full_attention"]), FormatError, "one for each of 2 layers"),
        (lambda: config(num_key_value_heads=3), FormatError, "do not divide"),
        (lambda: config(num_key_value_heads=[1, 2]), FormatError, r"num_key_value_heads=\[1, 2\]"),
        (lambda: config(partial_rotary_factor=2.0), FormatError, "32 rotated dimensions"),
        (lambda: config(partial_rotary_factor=0.2), FormatError, "3 dimensions"),
        (lambda: config(hidden_size=0), FormatError, "hidden_size=0"),
        (lambda: without("intermediate_size"), FormatError, "lacks 'intermediate_size'"),
        (lambda: without("rms_norm_eps"), FormatError, "lacks 'rms_norm_eps'"),
        (lambda: from_gguf({"block_count": None}), FormatError, "lack llama.block_count"),
        (lambda: from_gguf({"feed_forward_length": [1, 2]}), FormatError, "must be an integer"),
        (lambda: from_gguf({}, rows=0), FormatError, "'token_embd.weight'"),
        (
            lambda: from_gguf({}, tensors={"rope_freqs.weight": ("F16", (8,), bytes(16))}),
            FormatError,
            "rope_freqs.weight is F16",
        ),
        (
            lambda: from_gguf({}, tensors={"rope_freqs.weight": ("F32", (4,), bytes(16))}),
            FormatError,
            "4 short and 4 long factors",
        ),
    ],
)
def test_refused(make, kind, text):
    with pytest.raises(kind, match=text):
        make()
