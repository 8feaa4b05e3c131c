"""int8 activations times int8 weights with a scale an output channel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..graph.call import Call
from ..graph.dims import ceil_div
from ..graph.lowering import Lowering
from ..graph.operator import Operator, operator
from ..graph.values import TensorSpec
from .requantize import (
    MAX_DEPTH,
    inverse_of,
    relu_of,
    requantize,
    scale_of,
    zero_point_of,
)

FEW_ROWS = 4
"""With at most so many rows lanes share the depth, but on adapters that run on the CPU."""


class _Int8Linear(Operator):
    """What both operators share: shapes, checks, the sum and the dispatch."""

    result = "int8"

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        x, weight = call.tensor("x", "int8"), call.tensor("weight", "int8")
        call.check(
            x.rank >= 1 and weight.rank == 2 and x.dims[-1] == weight.dims[1],
            f"x {list(x.dims)} and weight {list(weight.dims)}, must be [..., K] and [N, K]",
        )
        n, depth = weight.dims
        call.check(depth <= MAX_DEPTH, f"K={depth}, allowed are {MAX_DEPTH}: sums are int32")
        scale_of(call, "input_scale")
        zero_point_of(call, "input_zero_point")
        for name in ("weight_scales", "bias"):
            found = None if name == "bias" and call.is_null(name) else call.tensor(name, "float32")
            call.check(
                found is None or found.numel >= n,
                f"{name} {list(found.dims) if found else []}, must hold {n} values",
            )
        return [TensorSpec(self.result, (*x.dims[:-1], n))]

    def _requantization(self, call: Call) -> dict[str, int | float]:
        return {"inverse": 1.0, "output_zero_point": 0, "relu": 0}

    def lower(self, call: Call, out: Lowering) -> None:
        x, weight, y = call.tensor("x"), call.tensor("weight"), call.out()
        bias = call.optional_tensor("bias")
        n, depth = weight.dims
        rows = x.numel // depth
        blocks = (rows > FEW_ROWS or out.software) and n % 4 == 0
        width = out.width(64 if blocks else 256 if depth >= 4096 else 64)
        out.dispatch(
            "q8ta_linear" if blocks else "q8ta_gemv",
            {
                "x": x,
                "weight": weight,
                "weight_scales": call.tensor("weight_scales"),
                "bias": bias,
                "y": y,
            },
            {
                "rows": rows,
                "cols": n,
                "depth": depth,
                "zero": 0,
                "input_scale": scale_of(call, "input_scale"),
                "input_zero_point": zero_point_of(call, "input_zero_point"),
                "has_bias": int(bias is not None),
                **self._requantization(call),
            },
            ceil_div(ceil_div(rows, 4) * (n // 4), width) if blocks else ceil_div(rows * n, 4),
            {"wg_size": width, "int8_result": int(self.result == "int8")},
        )

    @staticmethod
    def _sums(call: Call, x: np.ndarray, weight: np.ndarray) -> Any:
        """Integer sums, exactly: every product and sum fits float64."""
        shifted = x.astype(np.float64) - zero_point_of(call, "input_zero_point")
        return shifted @ weight.astype(np.float64).T


@operator(
    "et_vk.linear_q8ta_q8csw.default(x, input_scale, input_zero_point, weight, weight_sums, "
    "weight_scales, bias=None) -> out"
)
class LinearQ8(_Int8Linear):
    """out[..., n] = input_scale * scales[n] * sum_k (x[..., k] - zero) weight[n, k] + bias[n].

    Shapes: x int8 [..., K], weight int8 [N, K], weight_scales and bias float32 of N or more
    values; out float32 [..., N]. weight_sums is not read.
    Errors: ShapeError (ranks, K, K > 65793, scales, bias), DtypeError, UnsupportedOperator.
    """

    result = "float32"

    def reference(self, call: Call, x: np.ndarray, weight: np.ndarray, **rest: Any) -> Any:  # type: ignore[override]
        n = weight.shape[0]
        scales = rest["weight_scales"].reshape(-1)[:n].astype(np.float64)
        y = self._sums(call, x, weight) * (call.float("input_scale") * scales)
        bias = rest.get("bias")
        return y if bias is None else y + bias.reshape(-1)[:n]


@operator(
    "et_vk.q8ta_linear.default(x, input_scale, input_zero_point, weight, weight_sums, "
    "weight_scales, output_scale, output_zero_point, bias=None, activation='none') -> out",
    "et_vk.q8ta_linear_gemv.default(x, input_scale, input_zero_point, weight, weight_sums, "
    "weight_scales, output_scale, output_zero_point, bias=None, activation='none') -> out",
)
class Q8Linear(_Int8Linear):
    """out[..., n] = clamp(round to even(v * float32(1 / output_scale)) + output_zero_point).

    v = sum_k (x[..., k] - zero_point) * weight[n, k] * input_scale * scales[n] + bias[n], each
    step after the integer sum rounded to float32; activation "relu" takes max(v, 0) first.
    Shapes: x int8 [..., K], weight int8 [N, K], weight_scales and bias float32 of N or more
    values; out int8 [..., N]. weight_sums is not read.
    Errors: ShapeError (ranks, K, K > 65793, scales, bias), DtypeError, UnsupportedOperator.
    """

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        self._requantization(call)
        return super().infer(call)

    def _requantization(self, call: Call) -> dict[str, int | float]:
        return {
            "inverse": inverse_of(call, "output_scale"),
            "output_zero_point": zero_point_of(call, "output_zero_point"),
            "relu": int(relu_of(call)),
        }

    def reference(self, call: Call, x: np.ndarray, weight: np.ndarray, **rest: Any) -> Any:  # type: ignore[override]
        n = weight.shape[0]
        values = self._sums(call, x, weight).astype(np.float32)
        values = values * np.float32(call.float("input_scale"))
        values = values * rest["weight_scales"].reshape(-1)[:n]
        if rest.get("bias") is not None:
            values = values + rest["bias"].reshape(-1)[:n]
        if relu_of(call):
            values = np.maximum(values, 0)
        zero_point = call.int("output_zero_point")
        return requantize(values, inverse_of(call, "output_scale"), zero_point)
