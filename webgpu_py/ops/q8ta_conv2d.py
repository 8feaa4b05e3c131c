"""int8 convolutions with a weight scale an output channel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..graph.call import Call
from ..graph.dims import ceil_div
from ..graph.lowering import Lowering
from ..graph.operator import Operator, operator
from ..graph.values import TensorSpec
from .requantize import MAX_DEPTH, inverse_of, relu_of, requantize, scale_of, zero_point_of
from .window import Window, convolve, convolve_transposed, pair

FORMS = {
    "et_vk.q8ta_conv2d.default": 0,
    "et_vk.q8ta_conv2d_pw.default": 0,
    "et_vk.q8ta_conv2d_transposed.default": 1,
    "et_vk.q8ta_conv2d_dw.default": 2,
}


@operator(
    "et_vk.q8ta_conv2d.default(x, input_scale, input_zero_point, weight, weight_sums, "
    "weight_scales, output_scale, output_zero_point, bias=None, kernel_size, stride, padding, "
    "dilation, groups, activation='none') -> out",
    "et_vk.q8ta_conv2d_pw.default(x, input_scale, input_zero_point, weight, weight_sums, "
    "weight_scales, output_scale, output_zero_point, bias=None, kernel_size, stride, padding, "
    "dilation, groups, activation='none') -> out",
    "et_vk.q8ta_conv2d_dw.default(x, input_scale, input_zero_point, weight, weight_sums, "
    "weight_scales, output_scale, output_zero_point, bias=None, kernel_size, stride, padding, "
    "dilation, groups, activation='none') -> out",
    "et_vk.q8ta_conv2d_transposed.default(x, input_scale, input_zero_point, weight, weight_sums, "
    "weight_scales, output_scale, output_zero_point, bias=None, kernel_size, stride, padding, "
    "output_padding, dilation, groups, activation='none') -> out",
)
class Q8Conv2d(Operator):
    """out = requantize(sum * input_scale * weight_scales[oc] + bias[oc]), as in q8ta_linear.

    sum = sum over taps and channels of (x - input_zero_point) * weight, exact in int32; padding
    counts as the zero point. activation "relu" takes max(value, 0) before requantizing.
    Shapes: x int8 [N, IC, H, W], out int8 [N, OC, OH, OW]. weight int8 [OC, >= Kh Kw IC / groups]
    at (kh Kw + kw) IC / groups + ic, also transposed; depthwise [Kh, Kw, C], groups = C = OC.
    weight_scales and bias float32 of OC or more values. weight_sums is not read.
    Errors: ShapeError (ranks, weight, groups, windows, Kh Kw IC / groups > 65793), DtypeError,
    UnsupportedOperator (scales, zero points, activation).
    """

    @property
    def _form(self) -> int:
        return FORMS[self.name]

    def _window(self, call: Call) -> Window:
        transposed = self._form == 1
        return Window(
            pair(call, "kernel_size", 1),
            pair(call, "stride", 1),
            pair(call, "padding", 0),
            pair(call, "dilation", 1),
            pair(call, "output_padding", 0) if transposed else (0, 0),
            transposed,
        )

    def _channels(self, call: Call) -> int:
        """Output channels; a file's weights may hold more rows, so its declared shape counts."""
        declared = call.declared()
        if declared is not None and len(declared.dims) == 4:
            return declared.dims[1]
        weight = call.tensor("weight")
        return weight.dims[-1 if self._form == 2 else 0]

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        x, weight = call.tensor("x", "int8"), call.tensor("weight", "int8")
        call.check(x.rank == 4, f"x {list(x.dims)}, must be [N, C, H, W]")
        call.check(weight.rank >= 2, f"weight {list(weight.dims)}, must have rank 2 or more")
        n, channels, height, width = x.dims
        window, groups, results = self._window(call), call.int("groups"), self._channels(call)
        area = window.kernel[0] * window.kernel[1]
        call.check(
            groups >= 1 and channels % groups == 0 and results % groups == 0,
            f"groups={groups}, must divide {channels} input and {results} output channels",
        )
        depth = area * (channels // groups)
        if self._form == 2:
            call.check(
                weight.dims == (*window.kernel, channels) and groups == channels == results,
                f"weight {list(weight.dims)} and groups={groups}, must be "
                f"{[*window.kernel, channels]} and {channels}",
            )
        else:
            rows = weight.dims[0]
            call.check(
                rows >= results and weight.numel // rows >= depth,
                f"weight {list(weight.dims)}, must hold [{results}, {depth}]",
            )
        call.check(depth <= MAX_DEPTH, f"{depth} products a result, allowed are {MAX_DEPTH}")
        self._check_scales(call, results)
        return [TensorSpec("int8", (n, results, *window.results(call, (height, width))))]

    def _check_scales(self, call: Call, channels: int) -> None:
        scale_of(call, "input_scale")
        zero_point_of(call, "input_zero_point")
        inverse_of(call, "output_scale")
        zero_point_of(call, "output_zero_point")
        relu_of(call)
        for name in ("weight_scales", "bias"):
            found = call.optional_tensor(name, "float32")
            call.check(
                found is None or found.numel >= channels,
                f"{name} {list(found.dims) if found else []}, must hold {channels} values",
            )

    def lower(self, call: Call, out: Lowering) -> None:
        x, weight, y = call.tensor("x"), call.tensor("weight"), call.out()
        bias = call.optional_tensor("bias")
        groups = call.int("groups")
        width = out.width(64)
        out.dispatch(
            "q8ta_conv2d",
            {
                "x": x,
                "weight": weight,
                "weight_scales": call.tensor("weight_scales"),
                "bias": bias,
                "y": y,
            },
            {
                "numel": y.numel,
                "zero": 0,
                "in_channels": x.dims[1],
                "out_channels": y.dims[1],
                "group_in": x.dims[1] // groups,
                "group_out": y.dims[1] // groups,
                "in_height": x.dims[2],
                "in_width": x.dims[3],
                "out_height": y.dims[2],
                "out_width": y.dims[3],
                **self._window(call).params(),
                "weight_row": weight.numel // weight.dims[0],
                "has_bias": int(bias is not None),
                "relu": int(relu_of(call)),
                "input_zero_point": zero_point_of(call, "input_zero_point"),
                "output_zero_point": zero_point_of(call, "output_zero_point"),
                "input_scale": scale_of(call, "input_scale"),
                "inverse": inverse_of(call, "output_scale"),
            },
            ceil_div(ceil_div(y.numel, 4), width),
            {"wg_size": width, "form": self._form},
        )

    def reference(self, call: Call, x: np.ndarray, weight: np.ndarray, **rest: Any) -> Any:  # type: ignore[override]
        window, groups, channels = self._window(call), call.int("groups"), self._channels(call)
        n, c, *size = x.shape
        results = window.results(call, (size[0], size[1]))
        # Integer sums, exactly: every product and sum fits float64.
        shifted = x.astype(np.float64) - zero_point_of(call, "input_zero_point")
        grouped = shifted.reshape(n, groups, c // groups, *size)
        if self._form == 2:
            laid = weight.transpose(2, 0, 1).reshape(groups, 1, 1, *window.kernel)
        else:
            depth = window.kernel[0] * window.kernel[1] * (c // groups)
            rows = weight.reshape(weight.shape[0], -1)[:channels, :depth]
            laid = rows.reshape(groups, channels // groups, *window.kernel, c // groups)
            laid = np.moveaxis(laid, -1, 2)
        run = convolve_transposed if window.transposed else convolve
        sums = run(grouped, laid.astype(np.float64), window, results)
        values = sums.reshape(n, channels, *results).astype(np.float32)
        per_channel = (slice(channels), None, None)
        values = values * np.float32(call.float("input_scale"))
        values = values * rest["weight_scales"].reshape(-1)[per_channel]
        if rest.get("bias") is not None:
            values = values + rest["bias"].reshape(-1)[per_channel]
        if relu_of(call):
            values = np.maximum(values, 0)
        inverse = inverse_of(call, "output_scale")
        return requantize(values, inverse, call.int("output_zero_point"))
