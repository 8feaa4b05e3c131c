"""Llama 2 and 3, SmolLM2, TinyLlama, Mistral: a norm before attention and before the MLP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .layers import Block

if TYPE_CHECKING:
    from ..graph.builder import Var


class Llama(Block):
    """x + attention(norm(x)), then x + mlp(norm(x)).

    Mistral is the same with a sliding window, where its configuration has one.
    """

    def layer(self, x: Var) -> Any:
        x = self.attention(x, "input_layernorm", residual=x)
        return self.mlp(x, "post_attention_layernorm", residual=x)
