"""Phi-3 and Phi-3.5: Llama's layer with q, k, v in one matrix, and gate and up in another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .llama import Llama

if TYPE_CHECKING:
    from ..graph.builder import Var


class Phi3(Llama):
    """Llama with fused projections; every layer has the sliding window, if there is one."""

    def project(self, x: Var) -> tuple[Var, Var, Var]:
        c, g = self.config, self.g
        counts = [c.num_attention_heads, c.num_key_value_heads, c.num_key_value_heads]
        fused = self.linear(x, "self_attn.qkv_proj", sum(counts) * c.head_dim)
        q, k, v = g.call(
            "aten.split_with_sizes_copy.default", self.heads(fused, sum(counts)), counts, 1
        )
        return q, k, v

    def gate_and_up(self, x: Var) -> tuple[Var, Var]:
        size = self.config.intermediate_size
        fused = self.linear(x, "mlp.gate_up_proj", 2 * size)
        gate, up = self.g.call("aten.split_with_sizes_copy.default", fused, [size, size], 1)
        return gate, up
