"""Linear layers on activations that are quantized to int8 as they come, a scale for each row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import UnsupportedOperator
from ..graph.call import Call
from ..graph.dims import ceil_div
from ..graph.lowering import Lowering
from ..graph.operator import Operator, operator
from ..graph.values import TensorSpec
from .linear_q4gsw import (
    check_bias,
    check_codes,
    check_group_size,
    check_scales,
    dense_product,
    plus_bias,
    transposed_matrix,
)
from .packed_kernels import fitting_width
from .packed_linear import Extras, lower_linear

SMALLEST_SCALE = np.float32(6.1e-5)


@operator(
    "torchao.choose_qparams_affine.default(x, mapping_type, block_size, target_dtype=None, "
    "quant_min=-128, quant_max=127, eps=None, scale_dtype=None, zero_point_dtype=None, "
    "keepdim=False) -> [scale, zero_point]"
)
class ChooseQparamsAffine(Operator):
    """Scale and zero point of each row for asymmetric int8, 0 always representable.

    With low = min(row, 0) and high = max(row, 0): scale = (high - low) / 255, 0.1 where that is 0,
    at least 6.1e-5 (then the range is stretched to it). The zero point is -128 - low / scale or
    127 - high / scale, whichever bound's 128 or 127 exceeds its quotient by less, clamped to int8
    and rounded half to even. All in float32.
    Shapes: x float32 [..., K]; scale float32 and zero_point int8, both [...] ([..., 1] with
    keepdim).
    Errors: ShapeError (block_size), DtypeError, UnsupportedOperator (other ranges or mappings).
    """

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        x = call.tensor("x", "float32")
        call.check(x.rank >= 1, "x has rank 0, must be [..., K]")
        mapping = call.string("mapping_type")
        call.check(
            mapping.rpartition(".")[2].upper() == "ASYMMETRIC",
            f"mapping_type {mapping!r}, only ASYMMETRIC is there",
            UnsupportedOperator,
        )
        block = call.ints("block_size")
        call.check(
            block == [1] * (x.rank - 1) + [x.dims[-1]],
            f"block_size {block}, must be a row: {[1] * (x.rank - 1) + [x.dims[-1]]}",
        )
        bounds = call.int("quant_min"), call.int("quant_max")
        call.check(
            bounds == (-128, 127),
            f"quant_min and quant_max are {bounds}, must be (-128, 127)",
            UnsupportedOperator,
        )
        dims = (*x.dims[:-1], 1) if call.bool("keepdim") else x.dims[:-1]
        return [TensorSpec("float32", dims), TensorSpec("int8", dims)]

    def lower(self, call: Call, out: Lowering) -> None:
        x = call.tensor("x")
        rows = x.numel // x.dims[-1]
        width = out.width(16 if out.software else 64)
        out.dispatch(
            "choose_qparams",
            {"x": x, "scale": call.out(0), "zero_point": call.out(1)},
            {"rows": rows, "width": x.dims[-1]},
            ceil_div(rows, 4),
            {"wg_size": width},
        )

    def reference(self, call: Call, x: np.ndarray) -> list[np.ndarray]:  # type: ignore[override]
        low = np.minimum(x.min(axis=-1), np.float32(0))
        high = np.maximum(x.max(axis=-1), np.float32(0))
        scale = (high - low) / np.float32(255)
        scale = np.where(scale == 0, np.float32(0.1), scale)
        small = scale < SMALLEST_SCALE
        stretch = np.where(small, SMALLEST_SCALE / scale, np.float32(1))
        edge = SMALLEST_SCALE * np.float32(255)
        stretched_low = np.where(high == 0, -edge, low * stretch)
        stretched_high = np.where(low == 0, edge, high * stretch)
        low = np.where(small & (low != 0), stretched_low, low)
        high = np.where(small & ((high != 0) | (low == 0)), stretched_high, high)
        scale = np.where(small, SMALLEST_SCALE, scale)
        by_low, by_high = np.float32(-128) - low / scale, np.float32(127) - high / scale
        nearer = np.float32(128) - np.abs(low / scale) < np.float32(127) - np.abs(high / scale)
        zero_point = np.where(nearer, by_low, by_high)
        return [scale, np.rint(np.clip(zero_point, -128, 127)).astype(np.int8)]


@operator(
    "et_vk.linear_dq8ca_q4gsw.default(x, input_scale, input_zero_point, weight, weight_sums, "
    "weight_scales, group_size, bias=None) -> out"
)
class LinearDq8caQ4gsw(Operator):
    """y[m, n] = s[m] * sum_k (q[m, k] - z[m]) * (c[n, k] - 8) * scale[k div group_size, n] + bias.

    q = clamp(round half to even(x / s[m]) + z[m], -128, 127).
    Shapes: x float32 [..., K], input_scale float32 [M], input_zero_point int8 [M]; weight,
    weight_scales and bias as in linear_q4gsw; weight_sums is not read. Any M.
    Errors: ShapeError, DtypeError, UnsupportedOperator (group size).
    """

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        x = call.tensor("x", "float32")
        n, k = check_codes(call, x, call.tensor("weight", "uint8"))
        scales = call.tensor("weight_scales", "float32")
        check_scales(call, scales, n, k, check_group_size(call))
        check_bias(call, n)
        rows = x.numel // k
        for name, dtype in (("input_scale", "float32"), ("input_zero_point", "int8")):
            given = call.tensor(name, dtype).numel
            call.check(given == rows, f"{name} has {given} elements, x has {rows} rows")
        return [TensorSpec("float32", (*x.dims[:-1], n))]

    def lower(self, call: Call, out: Lowering) -> None:
        x, weight = call.tensor("x"), call.tensor("weight")
        k = x.dims[-1]
        quantized = out.scratch(x.spec.nbytes)
        width = fitting_width(64, x.numel, out.limits)
        out.dispatch(
            "fake_quantize",
            {
                "x": x,
                "scale": call.tensor("input_scale"),
                "zero_point": call.tensor("input_zero_point"),
                "y": quantized,
            },
            {"numel": x.numel, "width": k},
            ceil_div(x.numel, width),
            {"wg_size": width},
        )
        matrix = transposed_matrix(
            weight, call.tensor("weight_scales"), weight.dims[0], k, call.int("group_size")
        )
        lower_linear(out, quantized, matrix, call.out(), Extras(call.optional_tensor("bias")))

    def reference(  # type: ignore[override]
        self,
        call: Call,
        x: np.ndarray,
        input_scale: np.ndarray,
        input_zero_point: np.ndarray,
        weight: np.ndarray,
        weight_scales: np.ndarray,
        weight_sums: np.ndarray | None = None,
        bias: np.ndarray | None = None,
    ) -> np.ndarray:
        flat = x.reshape(-1, x.shape[-1])
        scale = input_scale.reshape(-1, 1)
        zero = input_zero_point.reshape(-1, 1).astype(np.float64)
        q = np.clip(np.rint(flat / scale).astype(np.float64) + zero, -128, 127)
        by_row = weight_scales.T[: len(weight)]
        y = dense_product(q - zero, weight, by_row, call.int("group_size"), "even_low")
        return plus_bias(scale * y, bias)
