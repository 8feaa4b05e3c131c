"""Weights of a Hugging Face model: quantized on the device as they are loaded, or as stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from ..errors import FormatError, ShapeError, UnsupportedModel
from ..formats.safetensors import SafetensorsTensor
from ..graph.builder import Graph, Var
from ..graph.session import Session
from ..graph.values import Constant, Source, TensorSpec
from ..ops.quantize_rows import LOSSES, PARTS
from ..quant.float_rows import FLOAT_TYPES, RULES, quantize_stored
from ..quant.layouts import F32, LAYOUTS
from ..quant.repack import dequantize, unpack
from ..quant.snr import Snr
from .weights import STORED_FLOATS, Packed, StoredWeights, packed, read_rows

Tensors: TypeAlias = Mapping[str, tuple[Source, SafetensorsTensor]]
Quantize: TypeAlias = Literal["q4", "q8"]

EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"
EDGES = (EMBEDDING, HEAD)
"""What is kept in 8 bits where the rest has 4: every token passes both, and mistakes there are not
averaged out by later layers."""


class SafetensorsWeights(StoredWeights):
    """Weights under Hugging Face's own names.

    Matrices of F32, F16 and BF16 become codes of 4 or 8 bits with a float16 scale for every 32
    weights of a row (`quant.float_rows`); with `quantize=None` they run as they are stored.
    `tied` says whether the output layer is the embedding, None that the file decides; `digest` is
    the SHA-256 of what lists the tensors.
    """

    form = "safetensors"

    def __init__(
        self,
        tensors: Tensors,
        quantize: Quantize | None = "q4",
        tied: bool | None = None,
        digest: str = "",
    ) -> None:
        if quantize not in ("q4", "q8", None):
            raise UnsupportedModel(f"quantize={quantize!r}, allowed are 'q4', 'q8' and None")
        self.tensors = tensors
        self.quantize = quantize
        self.digest = digest
        self.matrices: dict[str, Packed] = {}
        self.vectors: dict[str, Var] = {}
        self._tied = HEAD not in tensors if tied is None else tied
        self._losses: Var | None = None
        self._quantized: list[str] = []

    def __contains__(self, name: str) -> bool:
        # Some files of tied models have a second copy of the embedding.
        return not self._tied if name == HEAD else name in self.tensors

    def vector(self, g: Graph, name: str, length: int, plus: float = 0.0) -> Var:
        source, tensor = self._tensor(name, (length,))
        self.vectors[name] = g.constant(
            Constant(
                TensorSpec("float32", tensor.dims),
                source=source,
                offset=tensor.offset,
                nbytes=tensor.nbytes,
                key=name,
                dtype=STORED_FLOATS[tensor.dtype],
                plus=plus,
            )
        )
        return self.vectors[name]

    def matrix(self, g: Graph, name: str, dims: tuple[int, int]) -> Packed:
        if name not in self.matrices:
            self.matrices[name] = self._matrix(g, name, dims)
        return self.matrices[name]

    def _matrix(self, g: Graph, name: str, dims: tuple[int, int]) -> Packed:
        source, tensor = self._tensor(name, dims)
        place: dict[str, Any] = {"source": source, "offset": tensor.offset, "nbytes": tensor.nbytes}
        place["key"] = name
        if self.quantize:
            bits = self._bits(name)
            spec = TensorSpec("uint8", (tensor.nbytes,))
            stored = g.constant(Constant(spec, **place))
            index = len(self._quantized)
            self._quantized.append(name)
            codes, scales = g.call(
                "webgpu_py.quantize_rows",
                *(stored, tensor.dtype, *dims, bits),
                *(self._losses_of(g), index),
            )
            return Packed(RULES[bits].layout, codes, scales, dims[1])
        words = LAYOUTS[tensor.dtype].row_words(dims[1])
        if 4 * words * dims[0] == tensor.nbytes:
            codes = g.constant(Constant(TensorSpec("uint32", (dims[0], words)), **place))
            return Packed(tensor.dtype, codes, None, dims[1])
        stored = g.constant(Constant(TensorSpec("uint8", (tensor.nbytes,)), **place))
        return packed(g, tensor.dtype, stored, *dims)

    def fresh(self) -> SafetensorsWeights:
        return SafetensorsWeights(self.tensors, self.quantize, self._tied, self.digest)

    @property
    def types(self) -> Mapping[str, int]:
        return Counter(tensor.dtype for _, tensor in self.tensors.values())

    async def values(self, name: str, rows: Sequence[int] | None = None, plus: float = 0.0) -> F32:
        source, tensor = self._named(name)
        raw = await read_rows(source, tensor.offset, tensor.nbytes, tensor.dims, rows)
        dims = tensor.dims if rows is None else (len(rows), *tensor.dims[1:])
        if self.quantize and len(dims) == 2:
            return unpack(quantize_stored(tensor.dtype, raw, *dims, self._bits(name))[0])
        return dequantize(tensor.dtype, raw, dims) + np.float32(plus)

    def _bits(self, name: str) -> int:
        return 8 if self.quantize == "q8" or name in EDGES else 4

    def _losses_of(self, g: Graph) -> Var:
        """One table for the losses of all matrices, so that one reading gathers them."""
        if self._losses is None:
            count = sum(len(t.dims) == 2 for _, t in self.tensors.values())
            self._losses = g.constant(Constant(TensorSpec("float32", (count, PARTS, LOSSES))))
        return self._losses

    def _named(self, name: str) -> tuple[Source, SafetensorsTensor]:
        if name not in self.tensors:
            raise FormatError(
                f"there is no tensor {name!r} among the {len(self.tensors)} of the safetensors "
                "files — a part of the model is missing, or config.json is another model's"
            )
        source, tensor = self.tensors[name]
        if tensor.dtype not in FLOAT_TYPES:
            raise UnsupportedModel(
                f"{source.name}: {name} is {tensor.dtype}, which does not run here — use a file "
                f"with {', '.join(FLOAT_TYPES)}"
            )
        return source, tensor

    def _tensor(self, name: str, dims: tuple[int, ...]) -> tuple[Source, SafetensorsTensor]:
        source, tensor = self._named(name)
        if tensor.dims != dims:
            raise ShapeError(
                f"{source.name}: {name} is {list(tensor.dims)}, config.json says {list(dims)}"
            )
        return source, tensor

    async def losses(self, session: Session) -> dict[str, Snr]:
        """What quantizing each matrix lost; FormatError for weights that can't be quantized."""
        if self._losses is None:
            return {}
        raw = await session.read(self._losses.id)
        parts = np.frombuffer(raw, np.float32).reshape(-1, PARTS, LOSSES).astype(np.float64)
        found = {}
        for name, (signal, noise, bad) in zip(self._quantized, parts.sum(axis=1), strict=False):
            if bad:
                raise FormatError(
                    f"{name}: {int(bad)} groups of weights hold NaN, infinity or more than float16 "
                    "scales reach — load with quantize=None, or use another file"
                )
            found[name] = Snr(float(signal), float(noise))
        return found
