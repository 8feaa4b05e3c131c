"""Linear layers on weights at the precision a file stores them in.

A weight is the two arrays of `quant.layouts`: codes uint32 [N, W] and scale records uint32. One
pair may serve an embedding (embedding_packed.py) and the output layer of a model at once.
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
from .packed import PackedMatrix
from .packed_linear import ACTIVATIONS, Activation, Extras, lower_linear

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
    """y = residual + act(u_gate) * u_up, u = bias + rms_norm(x) . w^T; each extra may be absent.

    norm float32 [K]: x is divided by sqrt(mean(x^2 over K) + eps) and multiplied by it. bias
    float32 [>= N] or None. gate `silu` or `gelu_tanh`: u is cut in two halves, N is even and y has
    N/2 columns. residual float32 of y's shape.
    """

    def _layout(self, call: Call) -> Layout:
        raise NotImplementedError

    def _weight(self, call: Call) -> PackedMatrix:
        x = call.tensor("x", "float32")
        call.check(x.rank >= 1, "x has rank 0, must be [..., K]")
        return packed_matrix(call, self._layout(call), x.dims[-1])

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        weight = self._weight(call)
        extras = self._extras(call, weight)
        dims = (*call.tensor("x").dims[:-1], weight.n // extras.halves)
        if extras.residual is not None:
            call.check(
                extras.residual.dims == dims,
                f"residual is {list(extras.residual.dims)}, must be {list(dims)} as the result",
            )
        return [TensorSpec("float32", dims)]

    def _extras(self, call: Call, weight: PackedMatrix) -> Extras:
        norm = call.optional_tensor("norm", "float32")
        if norm is not None:
            call.check(
                norm.numel == weight.k, f"norm has {norm.numel} elements, x has K={weight.k}"
            )
        gate = None if call.is_null("gate") else call.string("gate")
        if gate is not None:
            call.check(
                gate in ACTIVATIONS,
                f"gate {gate!r}, allowed are {', '.join(ACTIVATIONS)}",
                UnsupportedOperator,
            )
            call.check(weight.n % 2 == 0, f"a gated weight has {weight.n} rows, must be even")
        return Extras(
            bias=check_bias(call, weight.n),
            norm=norm,
            eps=call.float("eps"),
            gate=cast("Activation | None", gate),
            residual=call.optional_tensor("residual", "float32"),
        )

    def lower(self, call: Call, out: Lowering) -> None:
        weight = self._weight(call)
        lower_linear(out, call.tensor("x"), weight, call.out(), self._extras(call, weight))

    def reference(  # type: ignore[override]
        self,
        call: Call,
        x: np.ndarray,
        codes: np.ndarray,
        scales: np.ndarray | None = None,
        bias: np.ndarray | None = None,
        norm: np.ndarray | None = None,
        residual: np.ndarray | None = None,
    ) -> np.ndarray:
        k = x.shape[-1]
        flat = x.reshape(-1, k).astype(np.float64)
        if norm is not None:
            mean = np.mean(flat**2, axis=1, keepdims=True)
            flat = flat / np.sqrt(mean + call.float("eps")) * norm.reshape(-1)
        y = np.empty((len(flat), len(codes)), np.float64)
        layout = self._layout(call)
        for rows in row_blocks(len(codes), k, REFERENCE_ELEMENTS):
            y[:, rows] = flat @ unpacked_rows(layout, codes, scales, k, rows).T.astype(np.float64)
        y = plus_bias(y, bias)
        if not call.is_null("gate"):
            y = gated(call.string("gate"), y)
        if residual is not None:
            y = y + residual.reshape(y.shape)
        return y


def gated(activation: str, u: np.ndarray) -> np.ndarray:
    """act(u[:, :F]) * u[:, F:] in float64."""
    gate, up = np.split(u, 2, axis=1)
    found: np.ndarray
    if activation == "silu":
        with np.errstate(over="ignore"):
            found = gate / (1 + np.exp(-gate)) * up
    else:
        tanh = np.tanh(np.sqrt(2 / np.pi) * (gate + 0.044715 * gate**3))
        found = 0.5 * gate * (1 + tanh) * up
    return found


@operator(
    "webgpu_py.linear_q4(x, codes, scales, scale_kind, group_size, bias=None, norm=None, "
    "eps=1e-6, gate=None, residual=None) -> out",
    "webgpu_py.linear_q8(x, codes, scales, scale_kind, group_size, bias=None, norm=None, "
    "eps=1e-6, gate=None, residual=None) -> out",
)
class LinearQuantized(_Linear):
    """y[..., n] = sum_k x[..., k] * ((c[n, k] - zero) * scale + minimum), and `_Linear`'s extras.

    Shapes: x float32 [..., K], codes uint32 [N, W], scales uint32 [words]; y float32 [..., N].
    linear_q4 has codes `u4`, linear_q8 `i8`; scale_kind and group_size are a `quant.Layout`'s:
    f16, f16_min or f32 with any group, k with 16, k_min with 32.
    Layout: `quant.layouts`. A weight above the binding limit is split by rows.
    Errors: ShapeError, DtypeError, UnsupportedOperator (scale_kind, group_size).
    """

    CODES: ClassVar[dict[str, CodeKind]] = {
        "webgpu_py.linear_q4": "u4",
        "webgpu_py.linear_q8": "i8",
    }

    def _layout(self, call: Call) -> Layout:
        return quantized_layout(call, self.CODES[self.name])


@operator(
    "webgpu_py.linear_f16(x, codes, code_kind, bias=None, norm=None, eps=1e-6, gate=None, "
    "residual=None) -> out"
)
class LinearFloat(_Linear):
    """y[..., n] = sum_k x[..., k] * w[n, k], w as stored: f16, bf16 or f32; `_Linear`'s extras.

    Shapes: x float32 [..., K], codes uint32 [N, W]; y [..., N].
    Layout: two 16-bit elements a word, the first in the low half; or one float32. No optional
    feature is needed.
    Errors: ShapeError, DtypeError, UnsupportedOperator (code_kind).
    """

    def _layout(self, call: Call) -> Layout:
        return float_layout(call)
