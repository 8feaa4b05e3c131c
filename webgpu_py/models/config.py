"""What a model's metadata says about its shape, in Hugging Face's terms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log, pi
from typing import Any, Literal

import numpy as np

from ..errors import FormatError, UnsupportedModel

GGUF_ARCHITECTURES = ("llama", "qwen2", "qwen3")
HF_MODEL_TYPES = {
    "llama": "llama",
    "mistral": "llama",
    "qwen2": "qwen2",
    "qwen3": "qwen3",
}


@dataclass(frozen=True, slots=True)
class RopeScaling:
    """How rotary frequencies are stretched for contexts longer than those of training."""

    kind: Literal["linear", "llama3", "yarn"]
    factor: float
    original_max_position: int = 0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    attention_factor: float | None = None


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """A decoder's shape. `rope_interleaved`: rotary pairs are neighbours, as in Llama's GGUFs."""

    architecture: str
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    vocab_size: int
    max_position_embeddings: int
    rms_norm_eps: float = 1e-5
    rope_theta: float = 10000.0
    rope_dim: int = 0
    rope_scaling: RopeScaling | None = None
    rope_interleaved: bool = False
    sliding_window: int = 0

    def __post_init__(self) -> None:
        """Refuse shapes that contradict themselves."""
        for name in (
            "hidden_size",
            "intermediate_size",
            "num_hidden_layers",
            "num_attention_heads",
            "num_key_value_heads",
            "head_dim",
            "vocab_size",
        ):
            if getattr(self, name) < 1:
                raise FormatError(f"{self.architecture}: {name}={getattr(self, name)}")
        if self.num_attention_heads % self.num_key_value_heads:
            raise FormatError(
                f"{self.architecture}: {self.num_attention_heads} query heads do not divide "
                f"among {self.num_key_value_heads} key/value heads"
            )

    @property
    def rotary_dim(self) -> int:
        """Dimensions of a head that are rotated."""
        return self.rope_dim or self.head_dim

    def rope_tables(
        self, positions: int, stretch: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Cosine and sine of position * frequency: float32 [positions, rotary_dim / 2] each.

        `stretch` divides the frequencies: what a GGUF keeps as `rope_freqs.weight`.
        """
        inverse, factor = _frequencies(self)
        if stretch is not None:
            inverse = inverse / stretch
        angles = np.arange(positions, dtype=np.float64)[:, None] * inverse
        return (
            (np.cos(angles) * factor).astype(np.float32),
            (np.sin(angles) * factor).astype(np.float32),
        )

    @classmethod
    def from_gguf(cls, metadata: Mapping[str, Any], vocab_size: int) -> ModelConfig:
        """The shape of a GGUF file; UnsupportedModel names an architecture that is not run."""
        arch = str(metadata.get("general.architecture", "?"))
        if arch not in GGUF_ARCHITECTURES:
            raise UnsupportedModel(
                f"architecture {arch!r} is not supported; supported: "
                f"{', '.join(GGUF_ARCHITECTURES)}"
            )

        def value(name: str, default: Any = None) -> Any:
            found = metadata.get(f"{arch}.{name}", default)
            if found is None:
                raise FormatError(f"GGUF metadata lacks {arch}.{name}")
            return found

        hidden, heads = int(value("embedding_length")), int(value("attention.head_count"))
        head_dim = int(value("attention.key_length", hidden // max(heads, 1)))
        return cls(
            architecture=arch,
            hidden_size=hidden,
            intermediate_size=int(value("feed_forward_length")),
            num_hidden_layers=int(value("block_count")),
            num_attention_heads=heads,
            num_key_value_heads=int(value("attention.head_count_kv", heads)),
            head_dim=head_dim,
            vocab_size=vocab_size,
            max_position_embeddings=int(value("context_length")),
            rms_norm_eps=float(value("attention.layer_norm_rms_epsilon", 1e-5)),
            rope_theta=float(value("rope.freq_base", 10000.0)),
            rope_dim=int(value("rope.dimension_count", head_dim)),
            rope_scaling=_gguf_scaling(metadata, arch),
            # llama.cpp's converter reorders the rows of Llama's q and k so that pairs lie together.
            rope_interleaved=arch == "llama",
            sliding_window=int(value("attention.sliding_window", 0)),
        )

    @classmethod
    def from_hf(cls, config: Mapping[str, Any]) -> ModelConfig:
        """The shape of a `config.json`; UnsupportedModel names a model type that is not run."""
        kind = str(config.get("model_type", "?"))
        if kind not in HF_MODEL_TYPES:
            raise UnsupportedModel(
                f"model_type {kind!r} is not supported; supported: {', '.join(HF_MODEL_TYPES)}"
            )
        hidden, heads = int(config["hidden_size"]), int(config["num_attention_heads"])
        head_dim = int(config.get("head_dim") or hidden // heads)
        windowed = config.get("sliding_window") and config.get("use_sliding_window", True)
        return cls(
            architecture=HF_MODEL_TYPES[kind],
            hidden_size=hidden,
            intermediate_size=int(config["intermediate_size"]),
            num_hidden_layers=int(config["num_hidden_layers"]),
            num_attention_heads=heads,
            num_key_value_heads=int(config.get("num_key_value_heads") or heads),
            head_dim=head_dim,
            vocab_size=int(config["vocab_size"]),
            max_position_embeddings=int(config.get("max_position_embeddings", 2048)),
            rms_norm_eps=float(config.get("rms_norm_eps", 1e-6)),
            rope_theta=float(_hf_rope(config).get("rope_theta", 10000.0)),
            rope_dim=int(head_dim * float(config.get("partial_rotary_factor", 1.0))),
            rope_scaling=_hf_scaling(config),
            sliding_window=int(config["sliding_window"]) if windowed else 0,
        )


def _hf_rope(config: Mapping[str, Any]) -> dict[str, Any]:
    """Rope settings, which newer files keep in `rope_parameters`."""
    return {
        **({"rope_theta": config["rope_theta"]} if "rope_theta" in config else {}),
        **(config.get("rope_scaling") or {}),
        **(config.get("rope_parameters") or {}),
    }


def _hf_scaling(config: Mapping[str, Any]) -> RopeScaling | None:
    found = _hf_rope(config)
    kind = found.get("rope_type", found.get("type", "default"))
    if kind == "default":
        return None
    if kind not in ("linear", "llama3", "yarn"):
        raise UnsupportedModel(f"rope scaling {kind!r} is not supported")
    limit = config.get("max_position_embeddings", 0)
    return RopeScaling(
        kind,
        float(found["factor"]),
        int(found.get("original_max_position_embeddings", limit)),
        float(found.get("low_freq_factor", 1.0)),
        float(found.get("high_freq_factor", 4.0)),
        float(found.get("beta_fast", 32.0)),
        float(found.get("beta_slow", 1.0)),
        found.get("attention_factor"),
    )


def _gguf_scaling(metadata: Mapping[str, Any], arch: str) -> RopeScaling | None:
    kind = metadata.get(f"{arch}.rope.scaling.type", "none")
    factor = float(metadata.get(f"{arch}.rope.scaling.factor", 1.0))
    if kind == "none" or factor == 1.0:
        return None
    if kind not in ("linear", "yarn"):
        raise UnsupportedModel(f"rope scaling {kind!r} is not supported")
    original = metadata.get(f"{arch}.rope.scaling.original_context_length", 0)
    return RopeScaling(kind, factor, int(original))


def _frequencies(config: ModelConfig) -> tuple[np.ndarray, float]:
    """Inverse frequencies float64 [rotary_dim / 2], and the factor on cos and sin."""
    half = config.rotary_dim // 2
    inverse = config.rope_theta ** (-np.arange(half, dtype=np.float64) / half)
    scaling = config.rope_scaling
    if scaling is None:
        return inverse, 1.0
    if scaling.kind == "linear":
        return inverse / scaling.factor, 1.0
    if scaling.kind == "llama3":
        return _llama3(inverse, scaling), 1.0
    return _yarn(inverse, config, scaling)


def _llama3(inverse: np.ndarray, s: RopeScaling) -> np.ndarray:
    """Long waves are stretched by factor, short ones kept, those between blended."""
    turns = s.original_max_position * inverse / (2 * pi)
    blend = (turns - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor)
    blend = np.clip(blend, 0.0, 1.0)
    return np.asarray((1 - blend) * inverse / s.factor + blend * inverse)


def _yarn(inverse: np.ndarray, config: ModelConfig, s: RopeScaling) -> tuple[np.ndarray, float]:
    """Frequencies that turn often are kept, those that turn rarely stretched by factor."""
    dim, base = config.rotary_dim, config.rope_theta
    original = s.original_max_position or config.max_position_embeddings

    def correction(turns: float) -> float:
        return dim * log(original / (turns * 2 * pi)) / (2 * log(base))

    low = max(np.floor(correction(s.beta_fast)), 0)
    high = min(np.ceil(correction(s.beta_slow)), dim - 1)
    ramp = np.clip((np.arange(dim // 2) - low) / max(high - low, 1e-3), 0, 1)
    factor = s.attention_factor
    if factor is None:
        factor = 0.1 * log(s.factor) + 1.0 if s.factor > 1 else 1.0
    return inverse / s.factor * ramp + inverse * (1 - ramp), factor
