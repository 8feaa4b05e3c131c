"""What the layers of all architectures share: norms, projections, cached attention, gated MLP.

An architecture is a `Block` that says how a layer is put together of these pieces, what it reads
from a configuration beyond the common, and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ..graph.values import Constant, TensorSpec

if TYPE_CHECKING:
    from ..graph.builder import Graph, Var
    from .config import ModelConfig
    from .terms import Terms
    from .weights import Weights


@dataclass(frozen=True, slots=True)
class Block:
    """One layer of a decoder, and what it needs of its surroundings.

    `prefix` begins the names of its weights, `cos` and `sin` are the rotation's tables
    [rows, rotated / 2], `rows` the rows of its caches, `window` the tokens it looks back at
    (0: all).
    """

    g: Graph
    config: ModelConfig
    weights: Weights
    prefix: str
    cos: Var
    sin: Var
    position: Var | int
    rows: int
    window: int = 0

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

    def norm(self, x: Var, name: str) -> Any:
        """RMS norm of the last dimension."""
        c = self.config
        weight = self.weights.vector(
            self.g, f"{self.prefix}{name}.weight", x.shape[-1], c.norm_offset
        )
        return self.g.call("et_vk.rms_norm.default", x, weight, c.rms_norm_eps)

    def linear(self, x: Var, name: str, out_features: int) -> Any:
        """x [n, K] -> [n, out_features], with the bias that the file has for it."""
        return self.weights.linear(self.g, x, f"{self.prefix}{name}.weight", out_features)

    def add(self, x: Var, y: Var) -> Any:
        """x + y."""
        return self.g.call("aten.add.Tensor", x, y)

    def heads(self, x: Var, count: int) -> Any:
        """[n, count * D] -> [n, count, D]."""
        return self.g.call("aten.view_copy.default", x, [-1, count, self.config.head_dim])

    def project(self, x: Var) -> tuple[Var, Var, Var]:
        """x [n, hidden] -> q [n, Hq, D], k and v [n, Hk, D]."""
        c = self.config
        counts = {"q": c.num_attention_heads, "k": c.num_key_value_heads}
        q, k, v = (
            self.heads(self.linear(x, f"self_attn.{name}_proj", count * c.head_dim), count)
            for name, count in (*counts.items(), ("v", c.num_key_value_heads))
        )
        return q, k, v

    def rotated(self, x: Var) -> tuple[Var, Var, Var]:
        """Queries and keys as attention compares them, and values: as `project`."""
        q, k, v = self.project(x)
        if self.HEAD_NORMS:
            q, k = self.norm(q, "self_attn.q_norm"), self.norm(k, "self_attn.k_norm")
        interleaved = self.config.rope_interleaved
        q, k = self.g.call(
            "webgpu_py.rope.default", q, k, self.cos, self.sin, self.position, interleaved
        )
        return q, k, v

    def attention(self, x: Var) -> Any:
        """Grouped-query attention over the layer's cache: [n, hidden] -> [n, hidden]."""
        c, g = self.config, self.g
        q, k, v = self.rotated(x)
        cache = TensorSpec("float32", (self.rows, c.num_key_value_heads, c.head_dim))
        caches = [g.constant(Constant(cache)) for _ in range(2)]
        y = g.call(
            "webgpu_py.attention",
            q,
            k,
            v,
            *caches,
            self.position,
            c.attention_scale,
            self.window,
            c.attention_softcap,
        )
        y = g.call("aten.view_copy.default", y, [-1, c.num_attention_heads * c.head_dim])
        return self.linear(y, "self_attn.o_proj", c.hidden_size)

    def gate_and_up(self, x: Var) -> tuple[Var, Var]:
        """The two halves of a gated MLP: x [n, hidden] -> [n, intermediate] each."""
        size = self.config.intermediate_size
        return self.linear(x, "mlp.gate_proj", size), self.linear(x, "mlp.up_proj", size)

    def activated(self, gate: Var) -> Any:
        """silu(x) = x * sigmoid(x)."""
        g = self.g
        return g.call("aten.mul.Tensor", gate, g.call("aten.sigmoid.default", gate))

    def mlp(self, x: Var) -> Any:
        """down(activation(gate(x)) * up(x))."""
        gate, up = self.gate_and_up(x)
        inner = self.g.call("aten.mul.Tensor", self.activated(gate), up)
        return self.linear(inner, "mlp.down_proj", self.config.hidden_size)
