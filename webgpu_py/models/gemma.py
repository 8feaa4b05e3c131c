"""Gemma 2 and 3: norms on both sides of attention and MLP, windows on most layers, soft caps."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any

from ..errors import UnsupportedModel
from .layers import Block
from .rope import read_rope, rope_settings

if TYPE_CHECKING:
    from ..graph.builder import Var
    from .terms import Terms


class Gemma2(Block):
    """x + norm(attention(norm(x))), then x + norm(mlp(norm(x))).

    Every other layer, the first included, has the sliding window. Scores and logits are capped:
    cap * tanh(score / cap). Embeddings are multiplied by sqrt(hidden).
    """

    ACTIVATION = "gelu_pytorch_tanh"

    @classmethod
    def settings(cls, config: Terms) -> dict[str, Any]:
        if config.get("use_bidirectional_attention"):
            raise UnsupportedModel(
                "use_bidirectional_attention: a model of embeddings, which does not write text"
            )
        return {
            "attention_scale": config.count("query_pre_attn_scalar") ** -0.5,
            "attention_softcap": config.number("attn_logit_softcapping", 0.0),
            "logits_softcap": config.number("final_logit_softcapping", 0.0),
            "embedding_scale": sqrt(config.count("hidden_size")),
            # The model's weights are what is added to 1.
            "norm_offset": 1.0,
        }

    @classmethod
    def slides(cls, config: Terms, layer: int) -> bool:
        return layer % 2 == 0

    def layer(self, x: Var) -> Any:
        y = self.attention(x, "input_layernorm")
        x = self.add(x, self.norm(y, "post_attention_layernorm"))
        y = self.mlp(x, "pre_feedforward_layernorm")
        return self.add(x, self.norm(y, "post_feedforward_layernorm"))


class Gemma3(Gemma2):
    """Gemma 2 with head norms.

    Five layers with a window and a rotation of their own are followed by one without.
    """

    HEAD_NORMS = True

    @classmethod
    def settings(cls, config: Terms) -> dict[str, Any]:
        local = rope_settings(config, "sliding_attention")
        local_rope = read_rope(local, config.count("head_dim"), 0)
        return {**super().settings(config), "local_rope": local_rope}

    @classmethod
    def slides(cls, config: Terms, layer: int) -> bool:
        return (layer + 1) % config.count("sliding_window_pattern", 6) != 0
