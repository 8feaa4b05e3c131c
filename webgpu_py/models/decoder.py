"""The pieces decoders share, and the graph they make: ids and a position in, a token out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..graph.builder import Graph, Var, dim
from ..graph.values import Constant, TensorSpec
from .config import ModelConfig
from .weights import Weights

SETTINGS_WORDS = 8


@dataclass(frozen=True, slots=True)
class Decoder:
    """A decoder's graph; nodes from `head_node` on are needed only where a token is sampled."""

    graph: Graph
    config: ModelConfig
    context: int
    chunk: int
    head_node: int


@dataclass(frozen=True, slots=True)
class Block:
    """What a layer needs of its surroundings."""

    g: Graph
    config: ModelConfig
    weights: Weights
    prefix: str
    cos: Var
    sin: Var
    position: Var
    rows: int

    def norm(self, x: Var, name: str) -> Any:
        """RMS norm of the last dimension."""
        weight = self.weights.vector(self.g, f"{self.prefix}{name}.weight", x.shape[-1])
        return self.g.call("et_vk.rms_norm.default", x, weight, self.config.rms_norm_eps)

    def linear(self, x: Var, name: str, out_features: int) -> Any:
        """x [n, K] -> [n, out_features]."""
        return self.weights.linear(self.g, x, f"{self.prefix}{name}.weight", out_features)

    def heads(self, x: Var, count: int) -> Any:
        """[n, count * D] -> [n, count, D]."""
        return self.g.call("aten.view_copy.default", x, [-1, count, self.config.head_dim])

    def attention(self, x: Var) -> Any:
        """Grouped-query attention over the layer's cache: [n, hidden] -> [n, Hq * D]."""
        c, g = self.config, self.g
        queries, keys = c.num_attention_heads, c.num_key_value_heads
        q = self.heads(self.linear(x, "self_attn.q_proj", queries * c.head_dim), queries)
        k = self.heads(self.linear(x, "self_attn.k_proj", keys * c.head_dim), keys)
        v = self.heads(self.linear(x, "self_attn.v_proj", keys * c.head_dim), keys)
        if f"{self.prefix}self_attn.q_norm.weight" in self.weights:
            q, k = self.norm(q, "self_attn.q_norm"), self.norm(k, "self_attn.k_norm")
        q, k = g.call(
            "webgpu_py.rope.default",
            q,
            k,
            self.cos,
            self.sin,
            self.position,
            c.rope_interleaved,
        )
        cache = TensorSpec("float32", (self.rows, keys, c.head_dim))
        caches = [g.constant(Constant(cache)) for _ in range(2)]
        y = g.call("webgpu_py.attention", q, k, v, *caches, self.position, None, c.sliding_window)
        return g.call("aten.view_copy.default", y, [-1, queries * c.head_dim])

    def mlp(self, x: Var) -> Any:
        """down(silu(gate(x)) * up(x))."""
        g, size = self.g, self.config.intermediate_size
        gate = self.linear(x, "mlp.gate_proj", size)
        up = self.linear(x, "mlp.up_proj", size)
        active = g.call("aten.mul.Tensor", gate, g.call("aten.sigmoid.default", gate))
        return self.linear(
            g.call("aten.mul.Tensor", active, up), "mlp.down_proj", self.config.hidden_size
        )

    def layer(self, x: Var) -> Any:
        """x + attention(norm(x)), then x + mlp(norm(x))."""
        g, hidden = self.g, self.config.hidden_size
        attended = self.attention(self.norm(x, "input_layernorm"))
        x = g.call("aten.add.Tensor", x, self.linear(attended, "self_attn.o_proj", hidden))
        return g.call("aten.add.Tensor", x, self.mlp(self.norm(x, "post_attention_layernorm")))


def build_decoder(
    config: ModelConfig,
    weights: Weights,
    context: int,
    chunk: int,
    stretch: np.ndarray | None = None,
) -> Decoder:
    """The graph of a decoder.

    Inputs: ids int32 [n <= chunk], position and last (SymInts: the first id's position, the row
    to sample from), counts int32 [V], bias float32 [V], settings int32 [8] (see ops/sampling).
    Outputs: token int32 [1], logprob float32 [1], logits float32 [V].
    """
    g, c = Graph(), config
    ids = g.input("ids", (dim("n", max=chunk),), "int32")
    position, last = g.symint("position"), g.symint("last")
    cos, sin = (g.constant(t) for t in c.rope_tables(context, stretch))
    x = weights.embedding(g, ids, "model.embed_tokens.weight", (c.vocab_size, c.hidden_size))
    for i in range(c.num_hidden_layers):
        prefix = f"model.layers.{i}."
        x = Block(g, c, weights, prefix, cos, sin, position, context).layer(x)
    head_node = len(g.ir.nodes)
    row = g.call("aten.select_copy.int", x, 0, last)
    row = g.call("aten.view_copy.default", row, [1, c.hidden_size])
    final = Block(g, c, weights, "model.", cos, sin, position, context)
    row = final.norm(row, "norm")
    tied = "lm_head.weight" not in weights
    name = "model.embed_tokens.weight" if tied else "lm_head.weight"
    logits = weights.linear(g, row, name, c.vocab_size)
    logits = g.call("aten.view_copy.default", logits, [c.vocab_size])
    counts = g.input("counts", (c.vocab_size,), "int32")
    bias = g.input("bias", (c.vocab_size,))
    settings = g.input("settings", (SETTINGS_WORDS,), "int32")
    token, logprob = g.call("webgpu_py.sample.default", logits, counts, bias, settings, position)
    for output, value in (("token", token), ("logprob", logprob), ("logits", logits)):
        g.output(output, value)
    return Decoder(g, c, context, chunk, head_node)
