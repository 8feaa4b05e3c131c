"""Linear layers and embeddings on weights at the precision a file stores them in.

A weight is the two arrays of `quant.layouts`: codes uint32 [N, W] and scale records uint32. One
pair may serve an embedding and the output layer of a model at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, cast

import numpy as np

from ..errors import UnsupportedOperator
from ..graph.call import Call, TensorRef
from ..graph.dims import ceil_div
from ..graph.lowering import Lowering
from ..graph.operator import Operator, operator
from ..graph.values import TensorSpec
from ..quant.layouts import RECORD_BYTES, SUPER_BLOCK, CodeKind, Layout, PackedWeight, ScaleKind
from ..quant.q4gsw import row_blocks
from ..quant.repack import unpack
from .linear_q4gsw import REFERENCE_ELEMENTS, check_bias, plus_bias
from .packed import PackedMatrix, lower_linear
from .packed_rows import check_indices, check_range, lower_embedding

FLOAT_CODES = ("f16", "bf16", "f32")
SCALES: dict[CodeKind, tuple[ScaleKind, ...]] = {
    "u4": ("f16", "f16_min", "f32", "k_min"),
    "i8": ("f16", "f16_min", "f32", "k", "k_min"),
}
GROUPS: dict[ScaleKind, int] = {"k": 16, "k_min": 32}
"""Groups of the kinds whose records cover super-blocks."""


def quantized_layout(call: Call, codes: CodeKind) -> Layout:
    """The layout that `scale_kind` and `group_size` name, checked."""
    kind, group = call.string("scale_kind"), call.int("group_size")
    allowed = SCALES[codes]
    call.check(
        kind in allowed,
        f"scale_kind {kind!r}, allowed are {', '.join(allowed)}",
        UnsupportedOperator,
    )
    scales = cast(ScaleKind, kind)
    wanted = GROUPS.get(scales)
    call.check(
        group == wanted if wanted else group > 0,
        f"group_size={group}, must be {wanted or 'positive'} for {scales} scales",
        UnsupportedOperator,
    )
    return Layout(codes, scales, group)


def float_layout(call: Call) -> Layout:
    """The layout that `code_kind` names, checked."""
    kind = call.string("code_kind")
    call.check(
        kind in FLOAT_CODES,
        f"code_kind {kind!r}, allowed are {', '.join(FLOAT_CODES)}",
        UnsupportedOperator,
    )
    return Layout(cast(CodeKind, kind))


def packed_matrix(call: Call, layout: Layout, k: int) -> PackedMatrix:
    """The weight of a call as the kernels see it; its tensors' dims are checked against K."""
    codes = call.tensor("codes", "uint32")
    call.check(codes.rank == 2, f"codes has rank {codes.rank}, must be 2: [N, W]")
    n, words = codes.dims
    call.check(
        words == layout.row_words(k),
        f"codes has rows of {words} words, {k} elements of {layout.codes} take "
        f"{layout.row_words(k)}",
    )
    scales: TensorRef | None = None
    records = 0
    if layout.scales != "none":
        scales = call.tensor("scales", "uint32")
        call.check(
            k % layout.record_elements == 0 or layout.scales not in GROUPS,
            f"rows of {k} elements are not whole super-blocks of {SUPER_BLOCK}",
        )
        needed = layout.scale_words(n, k)
        call.check(
            scales.numel >= needed,
            f"scales has {scales.numel} words, {n} rows of {k} elements take {needed}",
        )
        records = ceil_div(k, layout.record_elements)
    return PackedMatrix(
        codes=codes,
        scales=scales,
        n=n,
        k=k,
        code_kind=layout.codes,
        scale_kind=layout.scales,
        group=layout.group,
        zero=layout.zero,
        row_bytes=4 * words,
        scale_row=records,
        scale_step=1,
        scales_by_row=True,
    )


def unpacked_rows(
    layout: Layout, codes: np.ndarray, scales: np.ndarray | None, k: int, rows: slice | np.ndarray
) -> np.ndarray:
    """Some rows of a packed weight as float32 [R, K]."""
    part = np.ascontiguousarray(codes[rows])
    words = np.empty(0, np.uint32)
    if scales is not None:
        nbytes = ceil_div(k, layout.record_elements) * RECORD_BYTES[layout.scales]
        stored = scales.reshape(-1).view(np.uint8)[: len(codes) * nbytes]
        found = stored.reshape(len(codes), nbytes)[rows].reshape(-1)
        words = np.pad(found, (0, -found.size % 4)).view(np.uint32)
    return unpack(PackedWeight(layout, len(part), k, part, words))


class _Linear(Operator):
    """y[..., n] = bias[n] + sum_k x[..., k] * w[n, k]."""

    def _layout(self, call: Call) -> Layout:
        raise NotImplementedError

    def _weight(self, call: Call) -> PackedMatrix:
        x = call.tensor("x", "float32")
        call.check(x.rank >= 1, "x has rank 0, must be [..., K]")
        return packed_matrix(call, self._layout(call), x.dims[-1])

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        weight = self._weight(call)
        check_bias(call, weight.n)
        return [TensorSpec("float32", (*call.tensor("x").dims[:-1], weight.n))]

    def lower(self, call: Call, out: Lowering) -> None:
        lower_linear(
            out, call.tensor("x"), self._weight(call), call.optional_tensor("bias"), call.out()
        )

    def reference(  # type: ignore[override]
        self,
        call: Call,
        x: np.ndarray,
        codes: np.ndarray,
        scales: np.ndarray | None = None,
        bias: np.ndarray | None = None,
    ) -> np.ndarray:
        k = x.shape[-1]
        flat = x.reshape(-1, k).astype(np.float64)
        y = np.empty((len(flat), len(codes)), np.float64)
        layout = self._layout(call)
        for rows in row_blocks(len(codes), k, REFERENCE_ELEMENTS):
            y[:, rows] = flat @ unpacked_rows(layout, codes, scales, k, rows).T.astype(np.float64)
        return plus_bias(y, bias)


@operator(
    "webgpu_py.linear_q4(x, codes, scales, scale_kind, group_size, bias=None) -> out",
    "webgpu_py.linear_q8(x, codes, scales, scale_kind, group_size, bias=None) -> out",
)
class LinearQuantized(_Linear):
    """y[..., n] = bias[n] + sum_k x[..., k] * ((c[n, k] - zero) * scale + minimum).

    Shapes: x float32 [..., K], codes uint32 [N, W], scales uint32 [words], bias float32 [>= N] or
    None; y float32 [..., N]. linear_q4 has codes `u4`, linear_q8 `i8`; scale_kind and group_size
    are a `quant.Layout`'s: f16, f16_min or f32 with any group, k with 16, k_min with 32.
    Layout: `quant.layouts`. A weight above the binding limit is split by rows.
    Errors: ShapeError, DtypeError, UnsupportedOperator (scale_kind, group_size).
    """

    CODES: ClassVar[dict[str, CodeKind]] = {
        "webgpu_py.linear_q4": "u4",
        "webgpu_py.linear_q8": "i8",
    }

    def _layout(self, call: Call) -> Layout:
        return quantized_layout(call, self.CODES[self.name])


@operator("webgpu_py.linear_f16(x, codes, code_kind, bias=None) -> out")
class LinearFloat(_Linear):
    """y[..., n] = bias[n] + sum_k x[..., k] * w[n, k], w as stored: f16, bf16 or f32.

    Shapes: x float32 [..., K], codes uint32 [N, W], bias float32 [>= N] or None; y [..., N].
    Layout: two 16-bit elements a word, the first in the low half; or one float32. No optional
    feature is needed.
    Errors: ShapeError, DtypeError, UnsupportedOperator (code_kind).
    """

    def _layout(self, call: Call) -> Layout:
        return float_layout(call)


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
