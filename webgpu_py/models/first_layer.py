"""The first layer of a stored model, looked into: embedding, and rotated queries and keys.

It is the smallest graph with everything in it that a whole model needs: stored weights rearranged
on the device, quantized embedding and linears, a norm, a rotation at live positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..device import Device
from ..errors import ShapeError, WrongNumbers
from ..graph.builder import Graph, Var, dim
from ..graph.session import Session
from ..quant.q4gsw import Q4Weight, quantize_q4gsw
from ..quant.snr import Snr
from .config import ModelConfig
from .decoder import embedded
from .weights import Beside, Packed, StoredWeights, put_beside

GROUP_SIZE = 32
TOLERANCE = 1e-4
PREFIX = "model.layers.0."
ROTATED = ("q", "k")


@dataclass(frozen=True, slots=True)
class FirstLayer:
    """A session that gives embedding [n, hidden], q [n, Hq, D] and k [n, Hk, D] for ids [n]."""

    session: Session
    config: ModelConfig
    max_tokens: int

    async def run(self, ids: list[int]) -> dict[str, np.ndarray]:
        """Outputs by name; ShapeError for more ids than the graph was built for."""
        if not 1 <= len(ids) <= self.max_tokens:
            raise ShapeError(f"{len(ids)} tokens, this view takes 1 to {self.max_tokens}")
        return await self.session.run(ids=np.array(ids, np.int64))

    async def profile(self, ids: list[int]) -> list[tuple[str, float]]:
        """Microseconds of every dispatch; FeatureMissing without timestamps."""
        return await self.session.profile(ids=np.array(ids, np.int64))

    def close(self) -> None:
        """Free the session."""
        self.session.close()


class _Requantized(StoredWeights):
    """Weights with some matrices of the first layer made 4-bit groupwise-symmetric."""

    def __init__(self, stored: StoredWeights, made: dict[str, Q4Weight]) -> None:
        self._stored = stored
        self._made = made

    def __contains__(self, name: str) -> bool:
        return name in self._stored

    def vector(self, g: Graph, name: str, length: int, plus: float = 0.0) -> Var:
        return self._stored.vector(g, name, length, plus)

    def matrix(self, g: Graph, name: str, dims: tuple[int, int]) -> Packed:
        return self._stored.matrix(g, name, dims)

    def linear(
        self, g: Graph, x: Var, names: Sequence[str], rows: Sequence[int], beside: Beside
    ) -> Var:
        x = g.call("et_vk.rms_norm.default", x, beside.norm, beside.eps)
        products = []
        for name, count in zip(names, rows, strict=True):
            if name not in self._made:
                products.append(super().linear(g, x, [name], [count], Beside()))
                continue
            weight, bias_name = self._made[name], name.removesuffix("weight") + "bias"
            bias = self.vector(g, bias_name, count) if bias_name in self else None
            stored = g.constant(weight.packed), g.constant(weight.scales)
            products.append(g.call("et_vk.linear_q4gsw.default", x, *stored, GROUP_SIZE, bias))
        return put_beside(g, products, Beside())


async def build_first_layer(
    device: Device,
    config: ModelConfig,
    stored: StoredWeights,
    max_tokens: int = 64,
    requantized: bool = False,
) -> FirstLayer:
    """Layer 0 at the weights' precision or, if `requantized`, with 4-bit groupwise linears."""
    weights = stored.fresh()
    if requantized:
        names = _projections(stored)
        weights = _Requantized(
            weights,
            {
                name: quantize_q4gsw(await stored.values(name), GROUP_SIZE, rule="least_squares")
                for name in names
            },
        )
    g = Graph()
    ids = g.input("ids", (dim("n", max=max_tokens),), "int32")
    x = embedded(g, config, weights, ids)
    table = config.rope_of(0).table(max_tokens)
    block = config.block(g, config, weights, PREFIX, g.constant(table), 0, max_tokens)
    counts = [config.num_attention_heads, *[config.num_key_value_heads] * 2]
    heads = g.call(
        "aten.view_copy.default",
        block.project(x, "input_layernorm"),
        [-1, sum(counts), config.head_dim],
    )
    q, k, _ = g.call("aten.split_with_sizes_copy.default", heads, counts, 1)
    if block.HEAD_NORMS:
        q, k = block.norm(q, "self_attn.q_norm"), block.norm(k, "self_attn.k_norm")
    tables = (g.constant(np.ascontiguousarray(table[..., i])) for i in range(2))
    q, k = g.call("webgpu_py.rope.default", q, k, *tables, 0, config.rope_interleaved)
    for name, value in (("embedding", x), ("q", q), ("k", k)):
        g.output(name, value)
    return FirstLayer(await g.build(device), config, max_tokens)


def _projections(stored: StoredWeights) -> list[str]:
    """The matrices that queries and keys come from, one where they are fused."""
    names = [f"{PREFIX}self_attn.{name}_proj.weight" for name in ("qkv", *ROTATED)]
    return [name for name in names if name in stored]


async def first_layer_reference(
    config: ModelConfig, stored: StoredWeights, ids: list[int]
) -> dict[str, np.ndarray]:
    """The same three results in float64, from the file's own weights and nothing else."""

    async def norm_of(name: str) -> np.ndarray:
        return (await stored.values(PREFIX + name, plus=config.norm_offset)).astype(np.float64)

    def normed(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
        mean = (x**2).mean(axis=-1, keepdims=True)
        found: np.ndarray = x / np.sqrt(mean + config.rms_norm_eps) * weight
        return found

    x = (await stored.values("model.embed_tokens.weight", ids)).astype(np.float64)
    x *= config.embedding_scale
    h = normed(x, await norm_of("input_layernorm.weight"))
    projected = []
    for name in _projections(stored):
        y = h @ (await stored.values(name)).astype(np.float64).T
        bias = name.removesuffix("weight") + "bias"
        if bias in stored:
            y += await stored.values(bias)
        projected.append(y)
    heads = np.concatenate(projected, axis=-1).reshape(len(ids), -1, config.head_dim)
    ends = np.cumsum([config.num_attention_heads, config.num_key_value_heads])
    found = {"embedding": x}
    for name, part in zip(ROTATED, np.split(heads, ends, axis=1), strict=False):
        if config.block.HEAD_NORMS:
            part = normed(part, await norm_of(f"self_attn.{name}_norm.weight"))
        found[name] = _turned(part, config)
    return found


def _turned(x: np.ndarray, config: ModelConfig) -> np.ndarray:
    """Heads x [n, heads, D] rotated by complex multiplication."""
    rope = config.rope_of(0)
    angles, factor = rope.angles(len(x))
    turn, half = factor * np.exp(1j * angles[:, None]), rope.dim // 2
    found = x.copy()
    if config.rope_interleaved:
        a, b = slice(0, rope.dim, 2), slice(1, rope.dim, 2)
    else:
        a, b = slice(0, half), slice(half, rope.dim)
    z = (x[..., a] + 1j * x[..., b]) * turn
    found[..., a], found[..., b] = z.real, z.imag
    return found


@dataclass(frozen=True, slots=True)
class Check:
    """How far the device is from float64, and how far 4-bit requantization would be.

    `max_abs_error` and `largest` are over rotated q and k; `snr_db` is of the requantized linears.
    """

    max_abs_error: float
    largest: float
    snr_db: float

    def lines(self) -> list[str]:
        """The two results as sentences."""
        return [
            f"layer 0 rotated q, k against float64 from NumPy's own reading of the weights: "
            f"max abs error {self.max_abs_error:.3e}, {self.max_abs_error / self.largest:.2e} of "
            f"the largest value {self.largest:.3f} (allowed 1e-4)",
            f"the same linears requantized to q4gsw (4 bit, groups of {GROUP_SIZE}): "
            f"SNR {self.snr_db:.1f} dB",
        ]


async def check_first_layer(
    device: Device,
    config: ModelConfig,
    stored: StoredWeights,
    ids: list[int],
    found: dict[str, np.ndarray],
) -> Check:
    """Compare what a FirstLayer `found` with the float64 route; WrongNumbers past 1e-4."""
    exact = await first_layer_reference(config, stored, ids)
    largest = max(float(np.abs(exact[name]).max()) for name in ROTATED)
    error = max(float(np.abs(found[name] - exact[name]).max()) for name in ROTATED)
    rough = await build_first_layer(device, config, stored, len(ids), requantized=True)
    try:
        coarse = await rough.run(ids)
    finally:
        rough.close()
    snr = Snr()
    for name in ROTATED:
        snr.add(exact[name], coarse[name])
    check = Check(error, largest, snr.db)
    if not error < TOLERANCE * largest:
        raise WrongNumbers(f"{check.lines()[0]}; this GPU computes wrong results")
    return check
