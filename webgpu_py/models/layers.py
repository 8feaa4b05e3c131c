"""What the layers of all architectures share: norms, projections, cached attention, gated MLP.

An architecture is a `Block` that says how a layer is put together of these pieces, what it reads
from a configuration beyond the common, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from ..graph.dims import ceil_div
from ..graph.values import Constant, TensorSpec
from .weights import Beside

if TYPE_CHECKING:
    from ..graph.builder import Graph, Var
    from .config import ModelConfig
    from .terms import Terms
    from .weights import Weights

CacheDtype = Literal["float32", "float16"]
CACHE_DTYPES = get_args(CacheDtype)


@dataclass(frozen=True, slots=True)
class Block:
    """One layer of a decoder, and what it needs of its surroundings.

    `prefix` begins the names of its weights, `rotation` is the table of cosines and sines
    [rows, rotated / 2, 2], `rows` the rows of its caches, `window` the tokens it looks back at
    (0: all), `cache_dtype` what keys and values are kept in.
    """

    g: Graph
    config: ModelConfig
    weights: Weights
    prefix: str
    rotation: Var
    position: Var | int
    rows: int
    window: int = 0
    cache_dtype: CacheDtype = "float32"

    PROJECTIONS: ClassVar[tuple[str, ...]] = ("q_proj", "k_proj", "v_proj")
    """The matrices of queries, keys and values, in this order."""
    GATED: ClassVar[tuple[str, ...]] = ("gate_proj", "up_proj")
    """The matrices of an MLP's gate and of what it gates, in this order."""
    ACTIVATION: ClassVar[str] = "silu"
    HEAD_NORMS: ClassVar[bool] = False
    """Whether queries and keys are normalized head by head before they are rotated."""

    @classmethod
    def settings(cls, config: Terms) -> dict[str, Any]:
        """ModelConfig's fields that only this architecture reads from a `config.json`."""
        return {}

    @classmethod
    def slides(cls, config: Terms, layer: int) -> bool:
        """Whether a layer has the sliding window, where the configuration does not say."""
        return True

    def layer(self, x: Var) -> Any:
        """x [n, hidden] -> [n, hidden]."""
        raise NotImplementedError

    # -- pieces

    def norm_weight(self, name: str, length: int) -> Var:
        """The weight of an RMS norm: [length]."""
        return self.weights.vector(
            self.g, f"{self.prefix}{name}.weight", length, self.config.norm_offset
        )

    def norm(self, x: Var, name: str) -> Any:
        """RMS norm of the last dimension."""
        weight = self.norm_weight(name, x.shape[-1])
        return self.g.call("et_vk.rms_norm.default", x, weight, self.config.rms_norm_eps)

    def linear(
        self,
        x: Var,
        names: Sequence[str],
        rows: Sequence[int],
        norm: str | None = None,
        gate: str | None = None,
        residual: Var | None = None,
    ) -> Any:
        """x [n, K] times one or more matrices, their results side by side, with their biases.

        x is normalized before, if `norm` names a weight; the results are gated and `residual` is
        added as webgpu_py.linear_q4 does it.
        """
        weight = None if norm is None else self.norm_weight(norm, x.shape[-1])
        beside = Beside(weight, self.config.rms_norm_eps, gate, residual)
        full = [f"{self.prefix}{name}.weight" for name in names]
        return self.weights.linear(self.g, x, full, rows, beside)

    def add(self, x: Var, y: Var) -> Any:
        """x + y."""
        return self.g.call("aten.add.Tensor", x, y)

    def project(self, x: Var, norm: str) -> Any:
        """Queries, keys and values of norm(x): [n, hidden] -> [n, (Hq + 2 Hk) * D]."""
        c = self.config
        heads = (c.num_attention_heads, c.num_key_value_heads, c.num_key_value_heads)
        rows = [h * c.head_dim for h in heads]
        if len(self.PROJECTIONS) == 1:
            rows = [sum(rows)]
        return self.linear(x, [f"self_attn.{p}" for p in self.PROJECTIONS], rows, norm)

    def cache(self, name: str) -> Any:
        """An empty cache [rows, Hk, D]; float16 lies in pairs in uint32 words [rows, Hk, D / 2]."""
        c = self.config
        dtype, columns = "float32", c.head_dim
        if self.cache_dtype == "float16":
            dtype, columns = "uint32", ceil_div(c.head_dim, 2)
        spec = TensorSpec(dtype, (self.rows, c.num_key_value_heads, columns))
        return self.g.constant(Constant(spec, key=f"{self.prefix}{name}"))

    def attention(self, x: Var, norm: str, residual: Var | None = None) -> Any:
        """Grouped-query attention over the layer's cache, of norm(x): [n, hidden] both."""
        c, g = self.config, self.g
        head_norms: list[Var | None] = [None, None]
        if self.HEAD_NORMS:
            names = ("self_attn.q_norm", "self_attn.k_norm")
            head_norms = [self.norm_weight(name, c.head_dim) for name in names]
        y = g.call(
            "webgpu_py.self_attention",
            self.project(x, norm),
            self.rotation,
            *(self.cache(name) for name in ("k_cache", "v_cache")),
            self.position,
            c.num_attention_heads,
            c.rope_interleaved,
            c.attention_scale,
            self.window,
            c.attention_softcap,
            *head_norms,
            c.rms_norm_eps,
        )
        return self.linear(y, ["self_attn.o_proj"], [c.hidden_size], residual=residual)

    def mlp(self, x: Var, norm: str, residual: Var | None = None) -> Any:
        """down(activation(gate(norm(x))) * up(norm(x)))."""
        c = self.config
        rows = [2 * c.intermediate_size // len(self.GATED)] * len(self.GATED)
        names = [f"mlp.{name}" for name in self.GATED]
        inner = self.linear(x, names, rows, norm, gate=GATES[self.ACTIVATION])
        return self.linear(inner, ["mlp.down_proj"], [c.hidden_size], residual=residual)


GATES = {"silu": "silu", "gelu_pytorch_tanh": "gelu_tanh"}
"""Activations by Hugging Face's name and by that of webgpu_py.linear_q4's gates."""
