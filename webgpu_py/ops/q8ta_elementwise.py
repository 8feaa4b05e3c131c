"""int8 tensors in and out: dequantize, operate in float32, requantize."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..graph.call import Call, TensorRef
from ..graph.dims import broadcast_dims, ceil_div, dims8, strides8
from ..graph.lowering import Lowering, Operand
from ..graph.operator import Operator, operator
from ..graph.values import TensorSpec
from .requantize import dequantize, inverse_of, requantize, scale_of, zero_point_of


def _dispatch(
    out: Lowering, y: TensorRef, op: int, bind: Mapping[str, Operand], **given: Any
) -> None:
    """One dispatch of the family's kernel; absent parameters are those of one plain operand."""
    params: dict[str, Any] = {
        "numel": y.numel,
        "zero": 0,
        "same": 1,
        "upscale": 1,
        "b_scale": 0.0,
        "alpha": 0.0,
        "b_zero_point": 0,
        "dims": dims8(y.dims),
        "a_strides": [],
        "b_strides": [],
    }
    width = out.width(256)
    out.dispatch(
        "q8ta_elementwise",
        {"b": None, "y": y, **bind},
        params | given,
        ceil_div(ceil_div(y.numel, 4), width),
        {"op": op, "wg_size": width},
    )


@operator(
    "et_vk.q8ta_add.default(a, b, a_scale, a_zero_point, b_scale, b_zero_point, "
    "output_scale, output_zero_point, alpha=1) -> out"
)
class Q8Add(Operator):
    """out = requantize(a_scale * (a - a_zero_point) + alpha * (b_scale * (b - b_zero_point))).

    requantize(v) = clamp(round to even(v * float32(1 / output_scale)) + output_zero_point,
    -128, 127), every step rounded to float32.
    Shapes: a and b broadcast right-aligned, rank 0 to 8. int8.
    Errors: ShapeError (no broadcast), DtypeError, UnsupportedOperator (scales, zero points).
    """

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        a, b = call.tensor("a", "int8"), call.tensor("b", "int8")
        for side in "ab":
            scale_of(call, f"{side}_scale")
            zero_point_of(call, f"{side}_zero_point")
        inverse_of(call, "output_scale")
        zero_point_of(call, "output_zero_point")
        call.float("alpha")
        return [TensorSpec("int8", broadcast_dims(call, a, b))]

    def lower(self, call: Call, out: Lowering) -> None:
        a, b, y = call.tensor("a"), call.tensor("b"), call.out()
        _dispatch(
            out,
            y,
            0,
            {"a": a, "b": b},
            same=int(a.dims == b.dims),
            a_scale=scale_of(call, "a_scale"),
            b_scale=scale_of(call, "b_scale"),
            alpha=call.float("alpha"),
            inverse=inverse_of(call, "output_scale"),
            a_zero_point=zero_point_of(call, "a_zero_point"),
            b_zero_point=zero_point_of(call, "b_zero_point"),
            zero_point=zero_point_of(call, "output_zero_point"),
            a_strides=strides8(a.dims),
            b_strides=strides8(b.dims),
        )

    def reference(self, call: Call, a: np.ndarray, b: np.ndarray) -> Any:  # type: ignore[override]
        left = dequantize(a, scale_of(call, "a_scale"), zero_point_of(call, "a_zero_point"))
        right = dequantize(b, scale_of(call, "b_scale"), zero_point_of(call, "b_zero_point"))
        total = left + np.float32(call.float("alpha")) * right
        zero_point = zero_point_of(call, "output_zero_point")
        return requantize(total, inverse_of(call, "output_scale"), zero_point)


@operator(
    "et_vk.q8ta_relu.default"
    "(x, input_scale, input_zero_point, output_scale, output_zero_point) -> out"
)
class Q8Relu(Operator):
    """out = requantize(max(input_scale * (x - input_zero_point), 0)), as in q8ta_add.

    Shapes: any. int8.
    Errors: DtypeError, UnsupportedOperator (scales, zero points).
    """

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        x = call.tensor("x", "int8")
        scale_of(call, "input_scale")
        zero_point_of(call, "input_zero_point")
        inverse_of(call, "output_scale")
        zero_point_of(call, "output_zero_point")
        return [TensorSpec("int8", x.dims)]

    def lower(self, call: Call, out: Lowering) -> None:
        _dispatch(
            out,
            call.out(),
            1,
            {"a": call.tensor("x")},
            a_scale=scale_of(call, "input_scale"),
            inverse=inverse_of(call, "output_scale"),
            a_zero_point=zero_point_of(call, "input_zero_point"),
            zero_point=zero_point_of(call, "output_zero_point"),
        )

    def reference(self, call: Call, x: np.ndarray) -> Any:  # type: ignore[override]
        values = dequantize(x, scale_of(call, "input_scale"), call.int("input_zero_point"))
        inverse = inverse_of(call, "output_scale")
        return requantize(np.maximum(values, 0), inverse, call.int("output_zero_point"))


@operator(
    "et_vk.q8ta_pixel_shuffle.default(x, input_scale, input_zero_point, "
    "output_inv_scale, output_zero_point, upscale_factor) -> out"
)
class Q8PixelShuffle(Operator):
    """out[.., c, h, w] = requantized x[.., c r r + (h % r) r + w % r, h // r, w // r].

    requantize(v) = clamp(round to even(v * output_inv_scale) + output_zero_point, -128, 127)
    of v = input_scale * (x - input_zero_point); output_inv_scale comes already inverted.
    Shapes: x [..., C r r, H, W] -> [..., C, H r, W r]. int8.
    Errors: ShapeError (rank, channels, r), DtypeError, UnsupportedOperator (scales, zero points).
    """

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        x = call.tensor("x", "int8")
        r = call.int("upscale_factor")
        scale_of(call, "input_scale")
        scale_of(call, "output_inv_scale")
        zero_point_of(call, "input_zero_point")
        zero_point_of(call, "output_zero_point")
        call.check(r >= 1, f"upscale_factor={r}, must be at least 1")
        call.check(3 <= x.rank <= 8, f"x {list(x.dims)}, must be [..., C, H, W] of rank 3 to 8")
        *batch, c, h, w = x.dims
        call.check(c % (r * r) == 0, f"{c} channels, must be a multiple of {r * r}")
        return [TensorSpec("int8", (*batch, c // (r * r), h * r, w * r))]

    def lower(self, call: Call, out: Lowering) -> None:
        _dispatch(
            out,
            call.out(),
            2,
            {"a": call.tensor("x")},
            upscale=call.int("upscale_factor"),
            a_scale=scale_of(call, "input_scale"),
            inverse=scale_of(call, "output_inv_scale"),
            a_zero_point=zero_point_of(call, "input_zero_point"),
            zero_point=zero_point_of(call, "output_zero_point"),
        )

    def reference(self, call: Call, x: np.ndarray) -> Any:  # type: ignore[override]
        r = call.int("upscale_factor")
        *batch, c, h, w = x.shape
        parts = x.reshape(-1, c // (r * r), r, r, h, w).transpose(0, 1, 4, 2, 5, 3)
        codes = parts.reshape(*batch, c // (r * r), h * r, w * r)
        values = dequantize(codes, scale_of(call, "input_scale"), call.int("input_zero_point"))
        return requantize(values, call.float("output_inv_scale"), call.int("output_zero_point"))
