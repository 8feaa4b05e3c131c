"""The graph of a decoder: ids and a position in, a token out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import DtypeError
from ..graph.builder import Graph, Var, dim
from .config import ModelConfig
from .layers import CACHE_DTYPES, CacheDtype
from .rope import Rope
from .weights import Beside, Weights

SETTINGS_WORDS = 8


@dataclass(frozen=True, slots=True)
class Decoder:
    """A decoder's graph; nodes from `head_node` on are needed only where a token is sampled."""

    graph: Graph
    config: ModelConfig
    context: int
    chunk: int
    head_node: int


def build_decoder(
    config: ModelConfig,
    weights: Weights,
    context: int,
    chunk: int,
    cache_dtype: CacheDtype = "float32",
) -> Decoder:
    """The graph of a decoder; keys and values of `context` tokens are kept as `cache_dtype`.

    Inputs: ids int32 [n <= chunk], position and last (SymInts: the first id's position, the row
    to sample from), counts int32 [V], bias float32 [V], settings int32 [8] (see ops/sampling).
    Outputs: token int32 [1], logprob float32 [1], logits float32 [V].
    """
    if cache_dtype not in CACHE_DTYPES:
        allowed = " and ".join(map(repr, CACHE_DTYPES))
        raise DtypeError(f"kv_cache_dtype={cache_dtype!r}, allowed are {allowed}")
    g, c = Graph(), config
    ids = g.input("ids", (dim("n", max=chunk),), "int32")
    position, last = g.symint("position"), g.symint("last")
    tables: dict[Rope, Var] = {}
    x = embedded(g, c, weights, ids)
    for i, window in enumerate(c.windows):
        rope = c.rope_of(i)
        if rope not in tables:
            tables[rope] = g.constant(rope.table(context))
        place = g, c, weights, f"model.layers.{i}.", tables[rope], position
        x = c.block(*place, context, window, cache_dtype).layer(x)
    head_node = len(g.ir.nodes)
    row = g.call("aten.select_copy.int", x, 0, last)
    row = g.call("aten.view_copy.default", row, [1, c.hidden_size])
    tied = "lm_head.weight" not in weights
    name = "model.embed_tokens.weight" if tied else "lm_head.weight"
    norm = weights.vector(g, "model.norm.weight", c.hidden_size, c.norm_offset)
    logits = weights.linear(g, row, [name], [c.vocab_size], Beside(norm, c.rms_norm_eps))
    logits = g.call("aten.view_copy.default", logits, [c.vocab_size])
    if c.logits_softcap:
        logits = _scaled(g, logits, 1 / c.logits_softcap)
        logits = _scaled(g, g.call("aten.tanh.default", logits), c.logits_softcap)
    counts = g.input("counts", (c.vocab_size,), "int32")
    bias = g.input("bias", (c.vocab_size,))
    settings = g.input("settings", (SETTINGS_WORDS,), "int32")
    token, logprob = g.call("webgpu_py.sample.default", logits, counts, bias, settings, position)
    for output, value in (("token", token), ("logprob", logprob), ("logits", logits)):
        g.output(output, value)
    return Decoder(g, c, context, chunk, head_node)


def embedded(g: Graph, config: ModelConfig, weights: Weights, ids: Var) -> Var:
    """What enters the first layer: [n, hidden] for ids [n]."""
    shape = config.vocab_size, config.hidden_size
    x = weights.embedding(g, ids, "model.embed_tokens.weight", shape)
    return _scaled(g, x, config.embedding_scale)


def _scaled(g: Graph, x: Var, factor: float) -> Var:
    if factor == 1:
        return x
    found: Var = g.call("aten.mul.Tensor", x, g.constant(np.array([factor], np.float32)))
    return found
