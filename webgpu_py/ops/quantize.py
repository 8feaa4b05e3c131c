"""float32 to int8 and back, one scale a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import UnsupportedOperator
from ..graph.call import Call
from ..graph.dims import ceil_div
from ..graph.lowering import Lowering
from ..graph.operator import Operator, operator
from ..graph.values import TensorSpec
from .requantize import dequantize, inverse_of, requantize, scale_of, zero_point_of


@operator(
    "quantized_decomposed.quantize_per_tensor.default"
    "(x, scale, zero_point, quant_min=-128, quant_max=127, dtype=None) -> out"
)
class Quantize(Operator):
    """out = clamp(round to even(x * float32(1 / scale)) + zero_point, quant_min, quant_max).

    Shapes: x of any shape, float32; out the same shape, int8. The bounds are cut to int8's;
    `dtype` is read from out.
    Errors: DtypeError, UnsupportedOperator (scale, zero point or bounds out of range).
    """

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        x = call.tensor("x", "float32")
        inverse_of(call, "scale")
        zero_point_of(call, "zero_point")
        self._bounds(call)
        return [TensorSpec("int8", x.dims)]

    def _bounds(self, call: Call) -> tuple[int, int]:
        low, high = max(call.int("quant_min"), -128), min(call.int("quant_max"), 127)
        call.check(
            low <= high,
            f"quant_min and quant_max allow {low} to {high}, which holds no int8",
            UnsupportedOperator,
        )
        return low, high

    def lower(self, call: Call, out: Lowering) -> None:
        x = call.tensor("x")
        low, high = self._bounds(call)
        width = out.width(256)
        out.dispatch(
            "quantize",
            {"x": x, "y": call.out()},
            {
                "numel": x.numel,
                "zero": 0,
                "inverse": inverse_of(call, "scale"),
                "zero_point": zero_point_of(call, "zero_point"),
                "low": low,
                "high": high,
            },
            ceil_div(ceil_div(x.numel, 4), width),
            {"wg_size": width},
        )

    def reference(self, call: Call, x: np.ndarray) -> Any:  # type: ignore[override]
        codes = requantize(x, inverse_of(call, "scale"), zero_point_of(call, "zero_point"))
        return codes.clip(*self._bounds(call))


@operator(
    "quantized_decomposed.dequantize_per_tensor.default"
    "(x, scale, zero_point, quant_min=-128, quant_max=127, dtype=None, out_dtype=None) -> out"
)
class Dequantize(Operator):
    """out = (x - zero_point) * scale.

    Shapes: x of any shape, int8; out the same shape, float32.
    Errors: DtypeError, UnsupportedOperator (scale or zero point out of range).
    """

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        x = call.tensor("x", "int8")
        scale_of(call, "scale")
        zero_point_of(call, "zero_point")
        return [TensorSpec("float32", x.dims)]

    def lower(self, call: Call, out: Lowering) -> None:
        x = call.tensor("x")
        width = out.width(256)
        out.dispatch(
            "dequantize",
            {"x": x, "y": call.out()},
            {
                "numel": x.numel,
                "scale": scale_of(call, "scale"),
                "zero_point": zero_point_of(call, "zero_point"),
            },
            ceil_div(ceil_div(x.numel, 4), width),
            {"wg_size": width},
        )

    def reference(self, call: Call, x: np.ndarray) -> Any:  # type: ignore[override]
        return dequantize(x, scale_of(call, "scale"), zero_point_of(call, "zero_point"))
