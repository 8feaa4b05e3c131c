"""A model file's weights as graph constants, at their stored precision and under canonical names.

Canonical names are Hugging Face's (`model.layers.0.self_attn.q_proj.weight`); a file's own names
are looked up from them. A weight that is asked for twice (tied embeddings) is one constant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar, Protocol

import numpy as np

from ..errors import FormatError, ShapeError, UnsupportedModel
from ..formats.gguf import GGUFFile, GGUFTensor
from ..graph.builder import Graph, Var
from ..graph.memory import ARENA_ALIGN
from ..graph.values import Constant, Source, TensorSpec
from ..quant.layouts import F32, LAYOUTS, Layout
from ..quant.repack import dequantize

GGUF_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.qkv_proj": "attn_qkv",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.gate_up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
"""Canonical stem -> GGUF stem; a layer's are prefixed `model.layers.N.` and `blk.N.`."""

GEMMA_NAMES = {
    **GGUF_NAMES,
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}
"""Gemma has norms on both sides, and calls by the usual name the one after attention."""


@dataclass(frozen=True, slots=True)
class Beside:
    """What a linear layer does beside the product; see the extras of webgpu_py.linear_q4."""

    norm: Var | None = None
    eps: float = 0.0
    gate: str | None = None
    residual: Var | None = None


class Weights(Protocol):
    """What an architecture asks of a file, whatever its format."""

    def __contains__(self, name: str) -> bool:
        """Whether the file has that weight."""
        ...

    def vector(self, g: Graph, name: str, length: int, plus: float = 0.0) -> Var:
        """A norm weight or bias, with `plus` added to each number: float32 [length]."""
        ...

    def linear(
        self, g: Graph, x: Var, names: Sequence[str], rows: Sequence[int], beside: Beside
    ) -> Var:
        """x [n, K] times weights [rows, K] transposed, side by side, plus biases that there are."""
        ...

    def embedding(self, g: Graph, ids: Var, name: str, shape: tuple[int, int]) -> Var:
        """Rows of the weight [vocabulary, hidden] for ids int32 [n]."""
        ...


@dataclass(frozen=True, slots=True)
class Packed:
    """A weight [rows, columns] of a stored type as codes and scales on the device."""

    kind: str
    codes: Var
    scales: Var | None
    columns: int

    @property
    def layout(self) -> Layout:
        """How codes and scales lie."""
        return LAYOUTS[self.kind]

    def linear(self, g: Graph, x: Var, bias: Var | None, beside: Beside) -> Var:
        """x [n, columns] times the weight transposed, plus bias, and what is done beside it."""
        b = beside
        extras = bias, b.norm, b.eps, b.gate, b.residual
        found: Var
        if self.scales is None:
            found = g.call("webgpu_py.linear_f16", x, self.codes, self.layout.codes, *extras)
        else:
            found = g.call(self._named("linear"), x, *self._quantized(), *extras)
        return found

    def embedding(self, g: Graph, ids: Var) -> Var:
        """Rows of the weight for ids [n]."""
        found: Var
        if self.scales is None:
            found = g.call(
                "webgpu_py.embedding_f16", self.codes, self.layout.codes, self.columns, ids
            )
        else:
            found = g.call(self._named("embedding"), *self._quantized(), self.columns, ids)
        return found

    def _named(self, what: str) -> str:
        return f"webgpu_py.{what}_{'q4' if self.layout.codes == 'u4' else 'q8'}"

    def _quantized(self) -> tuple[Var, Var | None, str, int]:
        return self.codes, self.scales, self.layout.scales, self.layout.group


def packed(g: Graph, kind: str, blocks: Var, rows: int, columns: int) -> Packed:
    """Stored blocks rearranged on the device, bit for bit."""
    found = g.call("webgpu_py.repack", blocks, kind, rows, columns)
    return Packed(kind, found[0], found[1] if len(found) > 1 else None, columns)


def joined(
    g: Graph, parts: Sequence[Packed], biases: Sequence[Var]
) -> tuple[Packed, Var | None] | None:
    """Weights one below the other as one, with their biases; None where they differ too much."""
    if len({(p.kind, p.columns) for p in parts}) > 1 or len(biases) not in (0, len(parts)):
        return None
    lists = [[p.codes for p in parts], [p.scales for p in parts if p.scales is not None], biases]
    if any(4 * prod(v.shape) % ARENA_ALIGN for vs in lists for v in vs[:-1]):
        return None
    codes: Var = g.call("webgpu_py.join_rows", lists[0])
    scales, bias = (g.call("webgpu_py.join_rows", vs) if vs else None for vs in lists[1:])
    return Packed(parts[0].kind, codes, scales, parts[0].columns), bias


def gguf_name(name: str, names: Mapping[str, str] = GGUF_NAMES) -> str:
    """A canonical weight name in GGUF's terms."""
    stem, _, kind = name.rpartition(".")
    prefix = ""
    if stem.startswith("model.layers."):
        layer, _, stem = stem.removeprefix("model.layers.").partition(".")
        prefix = f"blk.{layer}."
    return f"{prefix}{names[stem]}.{kind}"


def put_beside(g: Graph, products: Sequence[Var], beside: Beside) -> Var:
    """Products [n, ..] side by side, gated, with the residual added, by operators of their own."""
    found: Var
    if beside.gate is None:
        found = g.call("aten.cat.default", list(products), -1)
    else:
        gate, up = products
        if beside.gate == "silu":
            active = g.call("aten.mul.Tensor", gate, g.call("aten.sigmoid.default", gate))
        else:
            active = g.call("aten.gelu.default", gate, "tanh")
        found = g.call("aten.mul.Tensor", active, up)
    if beside.residual is not None:
        found = g.call("aten.add.Tensor", found, beside.residual)
    return found


async def read_rows(
    source: Source, offset: int, nbytes: int, dims: Sequence[int], rows: Sequence[int] | None
) -> bytes:
    """A stored tensor's bytes, or those of some of its rows in their order."""
    if rows is None:
        return await source.read(offset, nbytes)
    each = nbytes // dims[0]
    return b"".join([await source.read(offset + row * each, each) for row in rows])


class StoredWeights:
    """Linear layers and embeddings for `Weights`, from a file's way to find a matrix or vector."""

    def __contains__(self, name: str) -> bool:
        raise NotImplementedError

    def vector(self, g: Graph, name: str, length: int, plus: float = 0.0) -> Var:
        """See Weights."""
        raise NotImplementedError

    def matrix(self, g: Graph, name: str, dims: tuple[int, int]) -> Packed:
        """A weight of those dims in a packed layout; the same one whenever it is asked for."""
        raise NotImplementedError

    form: ClassVar[str]
    """What the weights came as: "gguf", "safetensors", or "packed" for what `save` wrote."""

    def fresh(self) -> StoredWeights:
        """The same weights for another graph."""
        raise NotImplementedError

    @property
    def types(self) -> Mapping[str, int]:
        """How many tensors there are of each stored type."""
        raise NotImplementedError

    async def values(self, name: str, rows: Sequence[int] | None = None, plus: float = 0.0) -> F32:
        """A weight's numbers, or some rows of them, as the device should have them: by NumPy."""
        raise NotImplementedError

    def linear(
        self, g: Graph, x: Var, names: Sequence[str], rows: Sequence[int], beside: Beside
    ) -> Var:
        """See Weights."""
        parts = [self.matrix(g, n, (r, x.shape[-1])) for n, r in zip(names, rows, strict=True)]
        biases = {
            n: self.vector(g, bias, r)
            for n, r in zip(names, rows, strict=True)
            if (bias := n.removesuffix("weight") + "bias") in self
        }
        if len(parts) == 1:
            return parts[0].linear(g, x, biases.get(names[0]), beside)
        one = joined(g, parts, list(biases.values()))
        if one is not None:
            return one[0].linear(g, x, one[1], beside)
        products = [
            p.linear(g, x, biases.get(n), Beside(beside.norm, beside.eps))
            for n, p in zip(names, parts, strict=True)
        ]
        return put_beside(g, products, beside)

    def embedding(self, g: Graph, ids: Var, name: str, shape: tuple[int, int]) -> Var:
        """See Weights."""
        return self.matrix(g, name, shape).embedding(g, ids)


class GGUFWeights(StoredWeights):
    """Weights of a GGUF file; block types are rearranged on the device, nothing is requantized."""

    form = "gguf"

    def __init__(self, file: GGUFFile, source: Source) -> None:
        file.require_supported()
        self.file = file
        self._source = source
        gemma = str(file.metadata.get("general.architecture")).startswith("gemma")
        self._names = GEMMA_NAMES if gemma else GGUF_NAMES
        self._packed: dict[str, Packed] = {}

    def __contains__(self, name: str) -> bool:
        return gguf_name(name, self._names) in self.file.tensors

    def vector(self, g: Graph, name: str, length: int, plus: float = 0.0) -> Var:
        tensor = self._tensor(name, (length,))
        if tensor.type not in STORED_FLOATS:
            raise UnsupportedModel(f"{tensor.name} is {tensor.type}, must be F32, F16 or BF16")
        constant = self._constant(tensor, TensorSpec("float32", tensor.dims))
        constant.dtype = STORED_FLOATS[tensor.type]
        constant.plus = plus
        return g.constant(constant)

    def matrix(self, g: Graph, name: str, dims: tuple[int, int]) -> Packed:
        if name not in self._packed:
            tensor = self._tensor(name, dims)
            spec = TensorSpec("uint8", (tensor.nbytes,))
            blocks = g.constant(self._constant(tensor, spec))
            self._packed[name] = packed(g, tensor.type, blocks, *dims)
        return self._packed[name]

    def fresh(self) -> GGUFWeights:
        return GGUFWeights(self.file, self._source)

    @property
    def types(self) -> Mapping[str, int]:
        return Counter(tensor.type for tensor in self.file.tensors.values())

    async def values(self, name: str, rows: Sequence[int] | None = None, plus: float = 0.0) -> F32:
        tensor = self._named(name)
        raw = await read_rows(self._source, tensor.offset, tensor.nbytes, tensor.dims, rows)
        dims = tensor.dims if rows is None else (len(rows), *tensor.dims[1:])
        return dequantize(tensor.type, raw, dims) + np.float32(plus)

    def _named(self, name: str) -> GGUFTensor:
        own = gguf_name(name, self._names)
        tensor = self.file.tensors.get(own)
        if tensor is None:
            raise FormatError(f"{self.file.name}: there is no tensor {own!r}")
        return tensor

    def _tensor(self, name: str, dims: tuple[int, ...]) -> GGUFTensor:
        tensor = self._named(name)
        if tensor.dims != dims:
            raise ShapeError(
                f"{tensor.name} is {list(tensor.dims)}, the metadata says {list(dims)}"
            )
        return tensor

    def _constant(self, tensor: GGUFTensor, spec: TensorSpec) -> Constant:
        return Constant(
            spec,
            source=self._source,
            offset=tensor.offset,
            nbytes=tensor.nbytes,
            key=tensor.name,
        )


STORED_FLOATS: Mapping[str, str] = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}
