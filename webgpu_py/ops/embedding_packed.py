"""Embeddings on weights at the precision a file stores them in; layouts as in linear_packed.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ..graph.call import Call
from ..graph.lowering import Lowering
from ..graph.operator import Operator, operator
from ..graph.values import TensorSpec
from ..quant.layouts import CodeKind, Layout
from .linear_packed import float_layout, packed_matrix, quantized_layout, unpacked_rows
from .packed import PackedMatrix
from .packed_rows import check_indices, check_range, lower_embedding


class _Embedding(Operator):
    """y[..., :] = w[indices[...], :]."""

    def _layout(self, call: Call) -> Layout:
        raise NotImplementedError

    def _weight(self, call: Call) -> PackedMatrix:
        width = call.int("width")
        call.check(width > 0, f"width={width}, must be positive")
        return packed_matrix(call, self._layout(call), width)

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        weight = self._weight(call)
        indices = call.tensor("indices", "int32")
        check_indices(call, indices, weight.n)
        return [TensorSpec("float32", (*indices.dims, weight.k))]

    def lower(self, call: Call, out: Lowering) -> None:
        lower_embedding(out, self._weight(call), call.tensor("indices"), call.out())

    def reference(  # type: ignore[override]
        self,
        call: Call,
        codes: np.ndarray,
        indices: np.ndarray,
        scales: np.ndarray | None = None,
    ) -> np.ndarray:
        check_range(call, indices, len(codes))
        return unpacked_rows(
            self._layout(call), codes, scales, call.int("width"), indices.reshape(-1)
        )


@operator(
    "webgpu_py.embedding_q4(codes, scales, scale_kind, group_size, width, indices) -> out",
    "webgpu_py.embedding_q8(codes, scales, scale_kind, group_size, width, indices) -> out",
)
class EmbeddingQuantized(_Embedding):
    """y[..., d] = (c[t, d] - zero) * scale + minimum, t = indices[...].

    Shapes: codes uint32 [V, W], scales uint32 [words], indices int32 of any rank from 1;
    y float32 [..., width]. Kinds and layout as in linear_q4 and linear_q8.
    Errors: ShapeError, DtypeError, UnsupportedOperator (scale_kind, group_size), IndexOutOfRange
    with id and position: before the run where the indices are an input of it, else after.
    """

    CODES: ClassVar[dict[str, CodeKind]] = {
        "webgpu_py.embedding_q4": "u4",
        "webgpu_py.embedding_q8": "i8",
    }

    def _layout(self, call: Call) -> Layout:
        return quantized_layout(call, self.CODES[self.name])


@operator("webgpu_py.embedding_f16(codes, code_kind, width, indices) -> out")
class EmbeddingFloat(_Embedding):
    """y[..., :] = w[indices[...], :], w as stored: f16, bf16 or f32.

    Shapes: codes uint32 [V, W], indices int32 of any rank from 1; y float32 [..., width].
    Layout and errors as in linear_f16 and embedding_q4.
    """

    def _layout(self, call: Call) -> Layout:
        return float_layout(call)
