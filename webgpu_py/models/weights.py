"""A model file's weights as graph constants, at their stored precision and under canonical names.

Canonical names are Hugging Face's (`model.layers.0.self_attn.q_proj.weight`); a file's own names
are looked up from them. A weight that is asked for twice (tied embeddings) is one constant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from ..errors import FormatError, ShapeError, UnsupportedModel
from ..formats.gguf import GGUFFile, GGUFTensor
from ..graph.builder import Graph, Var
from ..graph.values import Constant, Source, TensorSpec
from ..quant.layouts import LAYOUTS, Layout

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


class Weights(Protocol):
    """What an architecture asks of a file, whatever its format."""

    def __contains__(self, name: str) -> bool:
        """Whether the file has that weight."""
        ...

    def vector(self, g: Graph, name: str, length: int, plus: float = 0.0) -> Var:
        """A norm weight or bias, with `plus` added to each number: float32 [length]."""
        ...

    def linear(self, g: Graph, x: Var, name: str, out_features: int) -> Var:
        """x [n, K] times the weight [out_features, K] transposed, plus its bias if there is one."""
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

    def linear(self, g: Graph, x: Var, bias: Var | None) -> Var:
        """x [n, columns] times the weight transposed, plus bias."""
        found: Var
        if self.scales is None:
            found = g.call("webgpu_py.linear_f16", x, self.codes, self.layout.codes, bias)
        else:
            found = g.call(self._named("linear"), x, *self._quantized(), bias)
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


def gguf_name(name: str, names: Mapping[str, str] = GGUF_NAMES) -> str:
    """A canonical weight name in GGUF's terms."""
    stem, _, kind = name.rpartition(".")
    prefix = ""
    if stem.startswith("model.layers."):
        layer, _, stem = stem.removeprefix("model.layers.").partition(".")
        prefix = f"blk.{layer}."
    return f"{prefix}{names[stem]}.{kind}"


class StoredWeights:
    """Linear layers and embeddings for `Weights`, from a file's way to find a matrix or vector."""

    def __contains__(self, name: str) -> bool:
        raise NotImplementedError

    def vector(self, g: Graph, name: str, length: int) -> Var:
        """See Weights."""
        raise NotImplementedError

    def matrix(self, g: Graph, name: str, dims: tuple[int, int]) -> Packed:
        """A weight of those dims in a packed layout; the same one whenever it is asked for."""
        raise NotImplementedError

    def linear(self, g: Graph, x: Var, name: str, out_features: int) -> Var:
        """See Weights."""
        weight = self.matrix(g, name, (out_features, x.shape[-1]))
        bias_name = name.removesuffix("weight") + "bias"
        bias = self.vector(g, bias_name, out_features) if bias_name in self else None
        return weight.linear(g, x, bias)

    def embedding(self, g: Graph, ids: Var, name: str, shape: tuple[int, int]) -> Var:
        """See Weights."""
        return self.matrix(g, name, shape).embedding(g, ids)


class GGUFWeights(StoredWeights):
    """Weights of a GGUF file; block types are rearranged on the device, nothing is requantized."""

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

    def _tensor(self, name: str, dims: tuple[int, ...]) -> GGUFTensor:
        own = gguf_name(name, self._names)
        tensor = self.file.tensors.get(own)
        if tensor is None:
            raise FormatError(f"{self.file.name}: there is no tensor {own!r}")
        if tensor.dims != dims:
            raise ShapeError(f"{own} is {list(tensor.dims)}, the metadata says {list(dims)}")
        return tensor

    def _constant(self, tensor: GGUFTensor, spec: TensorSpec) -> Constant:
        return Constant(spec, source=self._source, offset=tensor.offset, nbytes=tensor.nbytes)


STORED_FLOATS: Mapping[str, str] = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}
