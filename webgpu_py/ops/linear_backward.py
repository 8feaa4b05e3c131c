"""Gradients of linear layers, and 4-bit codes made anew from trained values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..graph.call import Call
from ..graph.dims import ceil_div
from ..graph.lowering import Lowering
from ..graph.operator import Operator, operator
from ..graph.values import TensorSpec
from ..quant.nibbles import pack_nibbles, unpack_nibbles
from .linear_q4gsw import check_group_size, check_scales
from .matmul import FEW_ROWS, Matrix, Product, multiply, tiling


@operator("et_vk.linear_q4gsw_backward.default(d_out, weight, scales, group_size) -> d_x")
class LinearQ4gswBackward(Operator):
    """d_x[m, k] = sum_n d_out[m, n] * (c[n, k] - 8) * scales[k div group_size, n].

    Shapes: d_out float32 [..., N], weight uint8 [N, ceil(K/2)], scales float32 [G, Npad] with
    G >= ceil(K / group_size) and Npad >= N; d_x float32 [..., K]. K is even, unless a program
    from a file declares d_x. Layout of the codes as in linear_q4gsw.
    Errors: ShapeError, DtypeError, UnsupportedOperator (group size).
    """

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        d_out, weight = call.tensor("d_out", "float32"), call.tensor("weight", "uint8")
        call.check(
            d_out.rank >= 1 and weight.rank == 2 and d_out.dims[-1] == weight.dims[0],
            f"d_out {list(d_out.dims)} and weight {list(weight.dims)}, must be [..., N] and "
            "[N, ceil(K/2)]",
        )
        k, row_bytes = self._columns(call), weight.dims[1]
        call.check(
            row_bytes in (ceil_div(k, 2), 4 * ceil_div(k, 8)),
            f"weight rows have {row_bytes} bytes, d_x has K={k}, which packs to {ceil_div(k, 2)}",
        )
        scales = call.tensor("scales", "float32")
        check_scales(call, scales, weight.dims[0], k, check_group_size(call))
        return [TensorSpec("float32", (*d_out.dims[:-1], k))]

    @staticmethod
    def _columns(call: Call) -> int:
        declared = call.declared()
        return declared.dims[-1] if declared else 2 * call.tensor("weight").dims[1]

    def lower(self, call: Call, out: Lowering) -> None:
        d_out, weight, scales = call.tensor("d_out"), call.tensor("weight"), call.tensor("scales")
        cols, depth = self._columns(call), weight.dims[0]
        rows = d_out.numel // depth
        bind = {"d_out": d_out, "weight": weight, "scales": scales, "d_x": call.out()}
        params = {
            "rows": rows,
            "cols": cols,
            "depth": depth,
            "row_bytes": weight.dims[1],
            "group_size": call.int("group_size"),
            "scale_step": scales.dims[1],
        }
        if rows <= FEW_ROWS and not out.software:
            width = out.width(256)
            columns = min(width, 32)
            groups = rows * ceil_div(cols, columns)
            params["columns"] = columns
            out.dispatch("q4gsw_backward_rows", bind, params, groups, {"wg_size": width})
            return
        cut = tiling(out, "q4gsw_backward", "q4gsw_backward_block", rows, cols)
        out.dispatch(cut.kernel, bind, params, cut.groups, cut.constants)

    def reference(  # type: ignore[override]
        self, call: Call, d_out: np.ndarray, weight: np.ndarray, scales: np.ndarray
    ) -> Any:
        k, n, group = self._columns(call), weight.shape[0], call.int("group_size")
        codes = unpack_nibbles(weight[:, : ceil_div(k, 2)], k).astype(np.float64) - 8
        by_row = np.repeat(scales[:, :n].T.astype(np.float64), group, axis=1)[:, :k]
        return d_out.astype(np.float64) @ (codes * by_row)


@operator("et_vk.linear_dW.default(d_out, x) -> d_weight")
class LinearDW(Operator):
    """d_weight[n, k] = sum_m d_out[m, n] * x[m, k].

    Shapes: d_out [..., N], x [..., K], their other dims equal -> [N, K]. float32; all may be live.
    Errors: ShapeError, DtypeError.
    """

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        d_out, x = call.tensor("d_out", "float32"), call.tensor("x", "float32")
        call.check(
            d_out.rank >= 1 and x.rank >= 1 and d_out.dims[:-1] == x.dims[:-1],
            f"d_out {list(d_out.dims)} and x {list(x.dims)}, must be [..., N] and [..., K]",
        )
        return [TensorSpec("float32", (d_out.dims[-1], x.dims[-1]))]

    def lower(self, call: Call, out: Lowering) -> None:
        d_out, x = call.tensor("d_out"), call.tensor("x")
        rows, cols = d_out.dims[-1], x.dims[-1]
        product = Product(
            Matrix(d_out, 1, rows),
            Matrix(x, 1, cols),
            call.out(),
            rows,
            cols,
            x.numel // cols,
            y_strides=(cols, 1),
        )
        multiply(out, product)

    def reference(self, call: Call, d_out: np.ndarray, x: np.ndarray) -> Any:  # type: ignore[override]
        left = d_out.reshape(-1, d_out.shape[-1]).astype(np.float64)
        return left.T @ x.reshape(-1, x.shape[-1]).astype(np.float64)


@operator("et_vk.q4gsw_requant.default(latent, scales, group_size) -> packed")
class Q4gswRequant(Operator):
    """c[n, k] = clamp(round to even(latent[n, k] / scale), -8, 7) + 8, packed; 8 where scale is 0.

    scale = scales[k div group_size, n]; the float32 quotient is rounded, exact to the byte.
    Shapes: latent float32 [N, K], scales float32 [G, Npad] with G >= ceil(K / group_size) and
    Npad >= N; packed uint8 [N, ceil(K/2)], the low nibble of byte j is k = 2j. With an odd K the
    last high nibble of a row is 0.
    Errors: ShapeError, DtypeError, UnsupportedOperator (group size).
    """

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        latent, scales = call.tensor("latent", "float32"), call.tensor("scales", "float32")
        call.check(latent.rank == 2, f"latent {list(latent.dims)}, must be [N, K]")
        n, k = latent.dims
        check_scales(call, scales, n, k, check_group_size(call))
        return [TensorSpec("uint8", (n, ceil_div(k, 2)))]

    def lower(self, call: Call, out: Lowering) -> None:
        latent, scales, packed = call.tensor("latent"), call.tensor("scales"), call.out()
        width = out.width(64)
        out.dispatch(
            "q4gsw_requant",
            {"latent": latent, "scales": scales, "packed": packed},
            {
                "nbytes": packed.numel,
                "cols": latent.dims[1],
                "row_bytes": packed.dims[1],
                "group_size": call.int("group_size"),
                "scale_step": scales.dims[1],
            },
            ceil_div(ceil_div(packed.numel, 4), width),
            {"wg_size": width},
        )

    def reference(self, call: Call, latent: np.ndarray, scales: np.ndarray) -> Any:  # type: ignore[override]
        n, k = latent.shape
        by_row = np.repeat(scales[:, :n].T, call.int("group_size"), axis=1)[:, :k]
        steps = np.rint(np.divide(latent, by_row, out=np.zeros_like(latent), where=by_row != 0))
        packed = pack_nibbles((np.clip(steps, -8, 7) + 8).astype(np.uint8))
        if k % 2:
            packed[:, -1] &= 15
        return packed
