"""The first layer of a stored model, looked into: embedding, and rotated queries and keys.

It is the smallest graph with everything in it that a whole model needs: stored weights rearranged
on the device, quantized embedding and linears, a norm, a rotation at live positions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..device import Device
from ..errors import ShapeError, UnsupportedModel, WrongNumbers
from ..formats.gguf import GGUFFile
from ..graph.builder import Graph, Var, dim
from ..graph.session import Session
from ..graph.values import Source
from ..quant.q4gsw import quantize_q4gsw
from ..quant.repack import dequantize
from ..quant.snr import Snr
from .config import ModelConfig
from .gguf_config import gguf_config
from .llama import Llama
from .weights import GGUFWeights, gguf_name

GROUP_SIZE = 32
TOLERANCE = 1e-4
PREFIX = "model.layers.0."
PROJECTIONS = {"q": "self_attn.q_proj", "k": "self_attn.k_proj"}


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


async def build_first_layer(
    device: Device,
    file: GGUFFile,
    source: Source,
    max_tokens: int = 64,
    requantized: bool = False,
) -> FirstLayer:
    """Layer 0 at its stored precision or, if `requantized`, with 4-bit groupwise linears.

    UnsupportedModel for architectures whose first layer is not Llama's.
    """
    config = await gguf_config(file, source)
    if config.block is not Llama:
        raise UnsupportedModel(
            f"{file.name} is {config.architecture}: the look into the first layer knows Llama's "
            "and Mistral's only"
        )
    weights = GGUFWeights(file, source)
    g = Graph()
    ids = g.input("ids", (dim("n", max=max_tokens),), "int32")
    x = weights.embedding(
        g, ids, "model.embed_tokens.weight", (config.vocab_size, config.hidden_size)
    )
    norm = weights.vector(g, f"{PREFIX}input_layernorm.weight", config.hidden_size)
    h = g.call("et_vk.rms_norm.default", x, norm, config.rms_norm_eps)
    heads = {"q": config.num_attention_heads, "k": config.num_key_value_heads}
    rows: dict[str, Var] = {}
    for short, name in PROJECTIONS.items():
        full, out = f"{PREFIX}{name}.weight", heads[short] * config.head_dim
        if requantized:
            y = await _requantized(g, h, file, source, gguf_name(full))
        else:
            y = weights.linear(g, h, full, out)
        rows[short] = g.call("aten.view_copy.default", y, [-1, heads[short], config.head_dim])
    cos, sin = (g.constant(t) for t in config.rope.tables(max_tokens))
    q, k = g.call(
        "webgpu_py.rope.default", rows["q"], rows["k"], cos, sin, 0, config.rope_interleaved
    )
    for name, value in (("embedding", x), ("q", q), ("k", k)):
        g.output(name, value)
    return FirstLayer(await g.build(device), config, max_tokens)


async def _requantized(g: Graph, x: Var, file: GGUFFile, source: Source, name: str) -> Var:
    stored = file.tensors[name]
    blocks = await source.read(stored.offset, stored.nbytes)
    rows, columns = stored.dims
    weight = quantize_q4gsw(
        dequantize(stored.type, blocks, (rows, columns)), GROUP_SIZE, rule="least_squares"
    )
    packed, scales = g.constant(weight.packed), g.constant(weight.scales)
    found: Var = g.call("et_vk.linear_q4gsw.default", x, packed, scales, GROUP_SIZE, None)
    return found


async def first_layer_reference(
    file: GGUFFile, source: Source, ids: list[int]
) -> dict[str, np.ndarray]:
    """The same three results in float64, from the file's own blocks and nothing else."""
    config = await gguf_config(file, source)

    async def matrix(name: str) -> np.ndarray:
        tensor = file.tensors[gguf_name(name)]
        raw = await source.read(tensor.offset, tensor.nbytes)
        return dequantize(tensor.type, raw, tensor.dims).astype(np.float64)

    table = file.tensors[gguf_name("model.embed_tokens.weight")]
    row_nbytes = table.nbytes // table.dims[0]
    rows = [await source.read(table.offset + i * row_nbytes, row_nbytes) for i in ids]
    x = np.stack([dequantize(table.type, r, (1, table.dims[1]))[0] for r in rows])
    x = x.astype(np.float64)
    norm = await matrix(f"{PREFIX}input_layernorm.weight")
    h = x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + config.rms_norm_eps) * norm
    angles, factor = config.rope.angles(len(ids))
    half = angles.shape[1]
    turn = factor * np.exp(1j * angles[:, None])
    found = {"embedding": x}
    for short, name in PROJECTIONS.items():
        y = h @ (await matrix(f"{PREFIX}{name}.weight")).T
        y = y.reshape(len(ids), -1, config.head_dim)
        if config.rope_interleaved:
            z = (y[..., ::2] + 1j * y[..., 1::2]) * turn
            turned = np.stack([z.real, z.imag], axis=-1).reshape(y.shape)
        else:
            z = (y[..., :half] + 1j * y[..., half:]) * turn
            turned = np.concatenate([z.real, z.imag], axis=-1)
        found[short] = turned
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
            f"layer 0 rotated q, k against float64 from the file's own blocks: max abs error "
            f"{self.max_abs_error:.3e}, {self.max_abs_error / self.largest:.2e} of the largest "
            f"value {self.largest:.3f} (allowed 1e-4)",
            f"the same linears requantized to q4gsw (4 bit, groups of {GROUP_SIZE}): "
            f"SNR {self.snr_db:.1f} dB",
        ]


async def check_first_layer(
    device: Device,
    file: GGUFFile,
    source: Source,
    ids: list[int],
    found: dict[str, np.ndarray],
) -> Check:
    """Compare what a FirstLayer `found` with the float64 route; WrongNumbers past 1e-4."""
    exact = await first_layer_reference(file, source, ids)
    largest = max(float(np.abs(exact[name]).max()) for name in PROJECTIONS)
    error = max(float(np.abs(found[name] - exact[name]).max()) for name in PROJECTIONS)
    rough = await build_first_layer(device, file, source, len(ids), requantized=True)
    try:
        coarse = await rough.run(ids)
    finally:
        rough.close()
    snr = Snr()
    for name in PROJECTIONS:
        snr.add(exact[name], coarse[name])
    check = Check(error, largest, snr.db)
    if not error < TOLERANCE * largest:
        raise WrongNumbers(f"{check.lines()[0]}; this GPU computes wrong results")
    return check
