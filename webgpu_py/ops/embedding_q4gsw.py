"""Embedding tables with 4-bit weights, as ExecuTorch's exporters write them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..graph.call import Call
from ..graph.lowering import Lowering
from ..graph.operator import Operator, operator
from ..graph.values import TensorSpec
from ..quant.nibbles import NibbleOrder, unpack_nibbles
from .linear_q4gsw import check_group_size
from .packed import PackedMatrix
from .packed_rows import check_indices, lower_embedding, take_rows


@operator(
    "et_vk.embedding_q4gsw.default(weight, scales, group_size, indices, is_linear_weight=False)"
    " -> out"
)
class EmbeddingQ4gsw(Operator):
    """y[..., d] = (c[t, d] - 8) * scales[t, d div group_size], t = indices[...].

    Shapes: weight uint8 [V, E/2], scales float32 [V, G] with G * group_size = E, indices int32 of
    any rank from 1; y float32 [..., E]. Any even E.
    Layout: with is_linear_weight even d is the low nibble of its byte, as in linear_q4gsw;
    without it even d is the high nibble.
    Errors: ShapeError, DtypeError, UnsupportedOperator (group size), IndexOutOfRange with id and
    position: before the run where the indices are an input of it, else after.
    """

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        weight, scales = call.tensor("weight", "uint8"), call.tensor("scales", "float32")
        indices = call.tensor("indices", "int32")
        call.bool("is_linear_weight")
        group = check_group_size(call)
        call.check(weight.rank == 2, f"weight has rank {weight.rank}, must be 2: [V, E/2]")
        call.check(scales.rank == 2, f"scales has rank {scales.rank}, must be 2: [V, G]")
        rows, width = weight.dims[0], 2 * weight.dims[1]
        call.check(
            scales.dims[0] >= rows and scales.dims[1] * group == width,
            f"scales {list(scales.dims)} in groups of {group} do not cover {rows} rows of {width}",
        )
        check_indices(call, indices, rows)
        return [TensorSpec("float32", (*indices.dims, width))]

    def lower(self, call: Call, out: Lowering) -> None:
        weight, scales = call.tensor("weight"), call.tensor("scales")
        linear = call.bool("is_linear_weight")
        matrix = PackedMatrix(
            codes=weight,
            scales=scales,
            n=weight.dims[0],
            k=2 * weight.dims[1],
            code_kind="u4" if linear else "u4_even_high",
            scale_kind="f32",
            group=call.int("group_size"),
            zero=8,
            row_bytes=weight.dims[1],
            scale_row=scales.dims[1],
            scale_step=1,
            scales_by_row=True,
        )
        lower_embedding(out, matrix, call.tensor("indices"), call.out())

    def reference(  # type: ignore[override]
        self, call: Call, weight: np.ndarray, scales: np.ndarray, indices: np.ndarray
    ) -> np.ndarray:
        order: NibbleOrder = "even_low" if call.bool("is_linear_weight") else "even_high"
        width = 2 * weight.shape[1]
        codes = unpack_nibbles(take_rows(call, weight, indices), width, order)
        by_group = scales[indices].astype(np.float64)
        values: np.ndarray = codes.astype(np.float64) - 8
        values *= np.repeat(by_group, call.int("group_size"), axis=-1)
        return values
