"""Linear layers with 4-bit weights in the layouts of ExecuTorch's exporters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import UnsupportedOperator
from ..graph.call import Call, TensorRef
from ..graph.dims import ceil_div
from ..graph.lowering import Lowering
from ..graph.operator import Operator, operator
from ..graph.values import TensorSpec
from ..quant.nibbles import NibbleOrder, unpack_nibbles
from ..quant.q4gsw import row_blocks
from .packed import PackedMatrix
from .packed_linear import Extras, lower_linear

REFERENCE_ELEMENTS = 1 << 20
"""Weights that the reference holds in float64 at a time."""


def check_codes(call: Call, x: TensorRef, weight: TensorRef) -> tuple[int, int]:
    """N and K of x [..., K] and packed codes [N, ceil(K/2)], checked.

    Exporters pad K to a multiple of 8 before packing, so rows of that length serve as well.
    """
    call.check(x.rank >= 1, "x has rank 0, must be [..., K]")
    call.check(weight.rank == 2, f"weight has rank {weight.rank}, must be 2: [N, ceil(K/2)]")
    n, row_bytes = weight.dims
    k = x.dims[-1]
    allowed = {ceil_div(k, 2), 4 * ceil_div(k, 8)}
    call.check(
        row_bytes in allowed,
        f"weight rows have {row_bytes} bytes, x has K={k}, which packs to "
        f"{' or '.join(str(a) for a in sorted(allowed))}",
    )
    return n, k


def check_group_size(call: Call, name: str = "group_size") -> int:
    """The group size, positive."""
    group = call.int(name)
    call.check(group > 0, f"{name}={group}, must be positive", UnsupportedOperator)
    return group


def check_scales(call: Call, scales: TensorRef, n: int, k: int, group: int) -> None:
    """Transposed scales [>= ceil(K/group), >= N]."""
    groups = ceil_div(k, group)
    call.check(
        scales.rank == 2 and scales.dims[0] >= groups and scales.dims[1] >= n,
        f"{scales.name} has dims {list(scales.dims)}, must be [G, N] with G >= {groups}, N >= {n} "
        f"for K={k} in groups of {group}",
    )


def check_bias(call: Call, n: int) -> TensorRef | None:
    """The bias, if there is one: at least N elements."""
    bias = call.optional_tensor("bias", "float32")
    if bias is not None:
        call.check(bias.numel >= n, f"bias has {bias.numel} elements, must have at least N={n}")
    return bias


def transposed_matrix(
    weight: TensorRef, scales: TensorRef, n: int, k: int, group: int
) -> PackedMatrix:
    """Even-low codes with scales [G, Npad]."""
    return PackedMatrix(
        codes=weight,
        scales=scales,
        n=n,
        k=k,
        code_kind="u4",
        scale_kind="f32",
        group=group,
        zero=8,
        row_bytes=weight.dims[-1],
        scale_row=1,
        scale_step=scales.dims[1],
        scales_by_row=False,
    )


def dense_product(
    x: np.ndarray, packed: np.ndarray, scales: np.ndarray, group: int, order: NibbleOrder
) -> np.ndarray:
    """The product x [M, K] . dequant(packed)^T in float64, by row blocks; scales [N, G]."""
    n, k = len(packed), x.shape[1]
    out = np.empty((len(x), n), np.float64)
    for rows in row_blocks(n, k, REFERENCE_ELEMENTS):
        values = unpack_nibbles(packed[rows, : (k + 1) // 2], k, order).astype(np.float64) - 8
        values *= np.repeat(scales[rows].astype(np.float64), group, axis=1)[:, :k]
        out[:, rows] = x @ values.T
    return out


def plus_bias(y: np.ndarray, bias: np.ndarray | None) -> np.ndarray:
    """Y [M, N] + bias, of which there may be more than N."""
    return y if bias is None else y + bias.reshape(-1)[: y.shape[1]]


@operator("et_vk.linear_q4gsw.default(x, weight, scales, group_size, bias=None) -> out")
class LinearQ4gsw(Operator):
    """y[m, n] = bias[n] + sum_k x[m, k] * (c[n, k] - 8) * scales[k div group_size, n].

    Shapes: x float32 [..., K], weight uint8 [N, ceil(K/2)], scales float32 [G, Npad] with
    G >= ceil(K / group_size) and Npad >= N, bias float32 [>= N] or None; y float32 [..., N].
    Layout: the low nibble of byte j of a row is k = 2j, the high one k = 2j + 1; c is 0 to 15.
    Any K, N and group size; rows of K padded to a multiple of 8 are taken too. A weight above the
    binding limit is split by rows.
    Errors: ShapeError, DtypeError, UnsupportedOperator (group size).
    """

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        x = call.tensor("x", "float32")
        n, k = check_codes(call, x, call.tensor("weight", "uint8"))
        check_scales(call, call.tensor("scales", "float32"), n, k, check_group_size(call))
        check_bias(call, n)
        return [TensorSpec("float32", (*x.dims[:-1], n))]

    def lower(self, call: Call, out: Lowering) -> None:
        x, weight, scales = call.tensor("x"), call.tensor("weight"), call.tensor("scales")
        matrix = transposed_matrix(
            weight, scales, weight.dims[0], x.dims[-1], call.int("group_size")
        )
        lower_linear(out, x, matrix, call.out(), Extras(call.optional_tensor("bias")))

    def reference(  # type: ignore[override]
        self,
        call: Call,
        x: np.ndarray,
        weight: np.ndarray,
        scales: np.ndarray,
        bias: np.ndarray | None = None,
    ) -> np.ndarray:
        flat = x.reshape(-1, x.shape[-1]).astype(np.float64)
        by_row = scales.T[: len(weight)]
        y = dense_product(flat, weight, by_row, call.int("group_size"), "even_low")
        return plus_bias(y, bias)


@operator("et_vk.linear_qcs4w.default(x, weight, scales) -> out")
class LinearQcs4w(Operator):
    """y[m, n] = scales[n] * sum_k x[m, k] * (c[n, k] - 8).

    Shapes: x float32 [..., K], weight uint8 [N, ceil(K/2)], scales float32 [>= N]; y [..., N].
    Layout: the high nibble of byte j of a row is k = 2j, the low one k = 2j + 1.
    Errors: ShapeError, DtypeError.
    """

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        x = call.tensor("x", "float32")
        n, _ = check_codes(call, x, call.tensor("weight", "uint8"))
        scales = call.tensor("scales", "float32")
        call.check(
            scales.numel >= n, f"scales has {scales.numel} elements, must have at least N={n}"
        )
        return [TensorSpec("float32", (*x.dims[:-1], n))]

    def lower(self, call: Call, out: Lowering) -> None:
        x, weight = call.tensor("x"), call.tensor("weight")
        n, row_bytes = weight.dims
        k = x.dims[-1]
        matrix = PackedMatrix(
            codes=weight,
            scales=call.tensor("scales"),
            n=n,
            k=k,
            code_kind="u4_even_high",
            scale_kind="f32",
            group=k,
            zero=8,
            row_bytes=row_bytes,
            scale_row=1,
            scale_step=0,
            scales_by_row=False,
        )
        lower_linear(out, x, matrix, call.out())

    def reference(  # type: ignore[override]
        self, call: Call, x: np.ndarray, weight: np.ndarray, scales: np.ndarray
    ) -> np.ndarray:
        flat = x.reshape(-1, x.shape[-1]).astype(np.float64)
        by_row = scales.reshape(-1)[: len(weight), None]
        return dense_product(flat, weight, by_row, x.shape[-1], "even_high")
