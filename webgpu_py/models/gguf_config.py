"""A GGUF's metadata in the terms of a `config.json`: llama.cpp's names, defaults and omissions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import log
from typing import Any

import numpy as np

from ..errors import FormatError, UnsupportedModel
from ..formats.gguf import GGUFFile
from ..graph.values import Source
from .architectures import GGUF_MODEL_TYPES
from .config import ModelConfig
from .terms import Terms

KEYS = {
    "hidden_size": "embedding_length",
    "intermediate_size": "feed_forward_length",
    "num_hidden_layers": "block_count",
    "num_attention_heads": "attention.head_count",
    "num_key_value_heads": "attention.head_count_kv",
    "head_dim": "attention.key_length",
    "max_position_embeddings": "context_length",
    "rms_norm_eps": "attention.layer_norm_rms_epsilon",
    "sliding_window": "attention.sliding_window",
    "sliding_window_pattern": "attention.sliding_window_pattern",
    "rope_theta": "rope.freq_base",
    "rope_local_base_freq": "rope.freq_base_swa",
    "attn_logit_softcapping": "attn_logit_softcapping",
    "final_logit_softcapping": "final_logit_softcapping",
}
"""Setting -> GGUF key, after the architecture's name."""

REQUIRED = (
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "max_position_embeddings",
    "rms_norm_eps",
)

DEFAULTS: dict[str, dict[str, Any]] = {
    "gemma2": {
        "sliding_window": 4096,
        "attn_logit_softcapping": 50.0,
        "final_logit_softcapping": 30.0,
    },
    "gemma3": {"rope_local_base_freq": 10000.0},
}
"""What llama.cpp takes where a file is silent."""

SCALED_BY_HIDDEN = {("gemma2", 46), ("gemma3", 62)}
"""Models of 27 billion parameters, known by their layers: scores are divided by
sqrt(hidden / heads) and not by sqrt(head_dim); no key says so."""


async def gguf_config(file: GGUFFile, source: Source) -> ModelConfig:
    """The shape of a GGUF model; reads the header and the few numbers that stretch the rotation.

    Raises:
        UnsupportedModel: an architecture or rope scaling that is not run, by name.
        FormatError: metadata that are missing or contradict each other.
    """
    architecture = str(file.metadata.get("general.architecture", "?"))
    if architecture not in GGUF_MODEL_TYPES:
        raise UnsupportedModel(
            f"architecture {architecture!r} is not supported; supported: "
            f"{', '.join(GGUF_MODEL_TYPES)}"
        )
    _check_kind(file, architecture)
    terms = {**DEFAULTS.get(architecture, {}), **_terms(file, architecture)}
    factors = {
        name: await _numbers(file, source, f"{name}.weight")
        for name in ("rope_freqs", "rope_factors_short", "rope_factors_long")
        if f"{name}.weight" in file.tensors
    }
    terms["rope_scaling"] = _scaling(file.metadata, architecture, factors)
    config = ModelConfig.from_hf(terms)
    # llama.cpp's converter adds Gemma's offset to the weights it stores, and reorders the rows of
    # Llama's q and k so that the two numbers of a rotated pair lie together.
    return replace(config, norm_offset=0.0, rope_interleaved=architecture == "llama")


def _check_kind(file: GGUFFile, architecture: str) -> None:
    """Refuse what shares an architecture's name and is another."""
    metadata = Terms(file.metadata)
    experts = metadata.count(f"{architecture}.expert_count", 0, least=0)
    if experts:
        raise UnsupportedModel(
            f"{file.name}: a mixture of {experts} experts ({architecture}.expert_count) does not "
            "run here — use a dense model"
        )
    names = [f"{architecture}.attention.{which}_length" for which in ("key", "value")]
    lengths = [metadata.count(name, 0, least=0) for name in names]
    if lengths[1] and lengths[0] != lengths[1]:
        raise UnsupportedModel(
            f"{file.name}: keys of {lengths[0]} and values of {lengths[1]} numbers a head; only "
            "equal ones run here"
        )


def _terms(file: GGUFFile, architecture: str) -> dict[str, Any]:
    metadata = file.metadata
    terms: dict[str, Any] = {
        name: metadata[f"{architecture}.{key}"]
        for name, key in KEYS.items()
        if f"{architecture}.{key}" in metadata
    }
    for name in REQUIRED:
        if name not in terms:
            raise FormatError(f"{file.name}: the metadata lack {architecture}.{KEYS[name]}")
        if name != "rms_norm_eps" and not isinstance(terms[name], int):
            raise FormatError(f"{architecture}.{KEYS[name]} is {terms[name]!r}, must be an integer")
    # The embedding may have more rows than there are tokens.
    table = file.tensors.get("token_embd.weight")
    if table is None or len(table.dims) != 2:
        raise FormatError(f"{file.name}: there is no tensor 'token_embd.weight' of two dimensions")
    heads = max(terms["num_attention_heads"], 1)
    head_dim = terms.setdefault("head_dim", terms["hidden_size"] // heads)
    rotated = metadata.get(f"{architecture}.rope.dimension_count")
    if isinstance(rotated, int) and head_dim:
        terms["partial_rotary_factor"] = rotated / head_dim
    by_hidden = (architecture, terms.get("num_hidden_layers")) in SCALED_BY_HIDDEN
    return {
        **terms,
        "model_type": GGUF_MODEL_TYPES[architecture],
        "vocab_size": table.dims[0],
        "query_pre_attn_scalar": terms["hidden_size"] // heads if by_hidden else head_dim,
    }


def _scaling(
    metadata: Mapping[str, Any], architecture: str, factors: Mapping[str, list[float]]
) -> dict[str, Any] | None:
    prefix = f"{architecture}.rope.scaling."
    own = Terms({k.removeprefix(prefix): v for k, v in metadata.items() if k.startswith(prefix)})
    kind, factor = str(own.get("type", "none")), own.number("factor", 1.0)
    found: dict[str, Any] = {
        "original_max_position_embeddings": own.get("original_context_length"),
        "attention_factor": own.get("attn_factor"),
    }
    if factors:
        always = factors.get("rope_freqs")
        return found | {
            "rope_type": "longrope",
            "factor": 1.0,
            "short_factor": always or factors.get("rope_factors_short", []),
            "long_factor": always or factors.get("rope_factors_long", []),
        }
    if kind == "none" or factor == 1.0:
        return None
    if kind == "yarn" and "attn_factor" in own and factor > 0:
        # llama.cpp multiplies with it what YaRN defines, transformers takes it instead.
        found["attention_factor"] = own.number("attn_factor") * (0.1 * log(factor) + 1.0)
    return found | {
        "rope_type": kind,
        "factor": factor,
        "beta_fast": own.get("yarn_beta_fast"),
        "beta_slow": own.get("yarn_beta_slow"),
    }


async def _numbers(file: GGUFFile, source: Source, name: str) -> list[float]:
    tensor = file.tensors[name]
    if tensor.type != "F32" or len(tensor.dims) != 1:
        raise FormatError(f"{name} is {tensor.type} {list(tensor.dims)}, must be a row of F32")
    raw = await source.read(tensor.offset, tensor.nbytes)
    return [float(f) for f in np.frombuffer(raw, "<f4")]
