"""What a model's metadata says about its shape, in Hugging Face's terms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import FormatError, UnsupportedModel
from .architectures import find_architecture
from .layers import Block
from .rope import Rope, read_rope, rope_settings
from .terms import Terms

MOST = 4096
"""Layers, and numbers of a head: tables of both are made before any weight is looked at."""


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """A decoder's shape.

    `rope_interleaved`: rotary pairs are neighbours, as in Llama's GGUFs. `windows`: the tokens
    each layer looks back at, 0 for all. `local_rope`: the rotation of layers with a window, where
    it is another. `attention_scale` None is 1 / sqrt(head_dim). A softcap of 0 is none.
    `norm_offset` is added to stored norm weights.
    """

    architecture: str
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    vocab_size: int
    max_position_embeddings: int
    rms_norm_eps: float
    rope: Rope
    windows: tuple[int, ...]
    rope_interleaved: bool = False
    local_rope: Rope | None = None
    attention_scale: float | None = None
    attention_softcap: float = 0.0
    logits_softcap: float = 0.0
    embedding_scale: float = 1.0
    norm_offset: float = 0.0

    def __post_init__(self) -> None:
        """Refuse shapes that contradict themselves."""
        if self.num_attention_heads % self.num_key_value_heads:
            raise FormatError(
                f"{self.architecture}: {self.num_attention_heads} query heads do not divide "
                f"among {self.num_key_value_heads} key/value heads"
            )
        if self.rope.dim > self.head_dim:
            raise FormatError(
                f"{self.architecture}: {self.rope.dim} rotated dimensions, a head has "
                f"{self.head_dim}"
            )
        if len(self.windows) != self.num_hidden_layers or min(self.windows) < 0:
            raise FormatError(
                f"{self.architecture}: windows {list(self.windows)}, there must be one for each "
                f"of {self.num_hidden_layers} layers, 0 or more"
            )

    @property
    def block(self) -> type[Block]:
        """What a layer of this architecture computes."""
        return find_architecture(self.architecture)

    @property
    def layer_weights(self) -> int:
        """Elements of the layers' matrices, each of which a token is multiplied with once."""
        heads = 2 * (self.num_attention_heads + self.num_key_value_heads)
        wide = heads * self.head_dim + 3 * self.intermediate_size
        return self.num_hidden_layers * self.hidden_size * wide

    def rope_of(self, layer: int) -> Rope:
        """The rotation of a layer."""
        return (self.windows[layer] and self.local_rope) or self.rope

    @classmethod
    def from_hf(cls, config: Mapping[str, Any]) -> ModelConfig:
        """The shape of a `config.json`.

        Raises:
            UnsupportedModel: a model type, rope scaling, activation or kind of layer that is not
                run, by name.
            FormatError: a setting that is missing or contradicts another.
        """
        c = Terms(config)
        kind = str(c.get("model_type", "?"))
        block = find_architecture(kind)
        seen = c.get("hidden_activation") or c.get("hidden_act") or block.ACTIVATION
        if seen != block.ACTIVATION:
            raise UnsupportedModel(f"{kind}: activation {seen!r}, must be {block.ACTIVATION!r}")
        hidden, heads = c.count("hidden_size"), c.count("num_attention_heads")
        layers = c.count("num_hidden_layers", most=MOST)
        c["head_dim"] = head_dim = c.count("head_dim", hidden // heads, most=MOST)
        positions = c.count("max_position_embeddings")
        return cls(
            architecture=kind,
            hidden_size=hidden,
            intermediate_size=c.count("intermediate_size"),
            num_hidden_layers=layers,
            num_attention_heads=heads,
            num_key_value_heads=c.count("num_key_value_heads", heads),
            head_dim=head_dim,
            vocab_size=c.count("vocab_size"),
            max_position_embeddings=positions,
            rms_norm_eps=c.number("rms_norm_eps"),
            rope=read_rope(rope_settings(c), head_dim, positions),
            windows=_windows(c, block, layers),
            **block.settings(c),
        )


def _windows(config: Terms, block: type[Block], layers: int) -> tuple[int, ...]:
    window = config.count("sliding_window", 0, least=0)
    kinds = config.items_of("layer_types")
    if not kinds:
        return tuple(window if block.slides(config, i) else 0 for i in range(layers))
    for kind in kinds:
        if kind not in ("full_attention", "sliding_attention"):
            raise UnsupportedModel(f"layers of {kind!r} are not supported")
    return tuple(window if kind == "sliding_attention" else 0 for kind in kinds)
