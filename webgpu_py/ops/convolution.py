"""float32 convolutions of signals and images, plain, grouped, dilated and transposed."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np

from ..graph.call import Call
from ..graph.dims import ceil_div
from ..graph.lowering import Lowering
from ..graph.operator import Operator, operator
from ..graph.values import TensorSpec
from .matmul import Matrix, Product, multiply, tiling
from .window import Pair, Window, convolve, convolve_transposed, pair

FEW_CHANNELS = 4
"""With at most so many output channels a group, a tile's rows would be mostly empty."""


@operator(
    "aten.convolution.default(x, weight, bias=None, stride, padding, dilation, transposed, "
    "output_padding, groups) -> out",
    "et_vk.conv_with_clamp.default(x, weight, bias=None, stride, padding, dilation, transposed, "
    "output_padding, groups, output_min=None, output_max=None) -> out",
)
class Convolution(Operator):
    """out[n, oc] = bias[oc] + sum over channels and taps of weight * x, clamped where bounded.

    Shapes: x [N, IC, L] or [N, IC, H, W]; weight [OC, IC / groups, ...], transposed
    [IC, OC / groups, ...]; bias [OC] or None. float32; batch and sizes may be live.
    Errors: ShapeError (ranks, channels, groups, bias, windows, output padding), DtypeError.
    """

    @staticmethod
    def _window(call: Call) -> Window:
        """The arguments as a two-dimensional window; a signal is an image of height 1."""
        kernel = call.tensor("weight").dims[2:]
        signal = len(kernel) == 1

        def read(name: str, least: int) -> Pair:
            height, width = pair(call, name, least)
            return (least, height) if signal else (height, width)

        return Window(
            (1, kernel[0]) if signal else (kernel[0], kernel[1]),
            read("stride", 1),
            read("padding", 0),
            read("dilation", 1),
            read("output_padding", 0),
            call.bool("transposed"),
        )

    def _bounds(self, call: Call) -> tuple[float, float] | None:
        names = [a.name for a in self.signature.arguments[-2:]]
        if names[-1] != "output_max" or all(call.is_null(n) for n in names):
            return None
        low, high = (None if call.is_null(n) else call.float(n) for n in names)
        return -inf if low is None else low, inf if high is None else high

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        x, weight = call.tensor("x", "float32"), call.tensor("weight", "float32")
        call.check(
            x.rank == weight.rank and x.rank in (3, 4),
            f"x {list(x.dims)} and weight {list(weight.dims)}, must both have rank 3 or 4",
        )
        window, groups = self._window(call), call.int("groups")
        channels = x.dims[1]
        call.check(
            groups >= 1 and channels % groups == 0 and weight.dims[0] % groups == 0,
            f"groups={groups}, must divide {channels} input channels and weight {weight.dims[0]}",
        )
        wanted = weight.dims[0] if window.transposed else weight.dims[1] * groups
        call.check(
            channels == wanted,
            f"x has {channels} channels, weight {list(weight.dims)} in {groups} groups takes "
            f"{wanted}",
        )
        out_channels = weight.dims[1] * groups if window.transposed else weight.dims[0]
        bias = call.optional_tensor("bias", "float32")
        call.check(
            bias is None or bias.dims == (out_channels,),
            f"bias {list(bias.dims) if bias else []}, must be [{out_channels}]",
        )
        self._check_output_padding(call, window)
        self._bounds(call)
        results = window.results(call, self._size(x.dims))
        return [TensorSpec("float32", (x.dims[0], out_channels, *results[-(x.rank - 2) :]))]

    @staticmethod
    def _check_output_padding(call: Call, window: Window) -> None:
        extra, most = window.output_padding, (0, 0)
        if window.transposed:
            steps = zip(window.stride, window.dilation, strict=True)
            most = tuple(max(s, d) - 1 for s, d in steps)  # type: ignore[assignment]
        call.check(
            all(e <= m for e, m in zip(extra, most, strict=True)),
            f"output_padding {list(extra)}, allowed are at most {list(most)} with stride "
            f"{list(window.stride)} and transposed={window.transposed}",
        )

    @staticmethod
    def _size(dims: Sequence[int]) -> Pair:
        return (1, dims[2]) if len(dims) == 3 else (dims[2], dims[3])

    def lower(self, call: Call, out: Lowering) -> None:
        window, groups = self._window(call), call.int("groups")
        point = window.kernel == window.stride == (1, 1) and window.padding == (0, 0)
        if point and groups == 1 and not window.transposed and self._bounds(call) is None:
            self._pointwise(call, out)
            return
        x, y, bias = call.tensor("x"), call.out(), call.optional_tensor("bias")
        size, results = self._size(x.dims), self._size(y.dims)
        bounds = self._bounds(call)
        group_out = y.dims[1] // groups
        params = {
            "numel": y.numel,
            "batch": x.dims[0],
            "groups": groups,
            "group_in": x.dims[1] // groups,
            "group_out": group_out,
            "in_height": size[0],
            "in_width": size[1],
            "out_height": results[0],
            "out_width": results[1],
            **window.params(),
            "has_bias": int(bias is not None),
            "clamped": int(bounds is not None),
            "low": bounds[0] if bounds else 0.0,
            "high": bounds[1] if bounds else 0.0,
        }
        bind = {"x": x, "weight": call.tensor("weight"), "bias": bias, "y": y}
        if window.transposed or group_out <= FEW_CHANNELS:
            width = out.width(64)
            constants = {"wg_size": width, "transposed": int(window.transposed)}
            out.dispatch("conv_direct", bind, params, ceil_div(y.numel, width), constants)
            return
        cols = x.dims[0] * results[0] * results[1]
        cut = tiling(out, "conv_tile", "conv_block", group_out, cols, groups)
        out.dispatch(cut.kernel, bind, params, cut.groups, cut.constants)

    @staticmethod
    def _pointwise(call: Call, out: Lowering) -> None:
        """A kernel of one cell: the weight matrix times every image's [IC, pixels]."""
        x, weight, y = call.tensor("x"), call.tensor("weight"), call.out()
        channels, rows = x.dims[1], weight.dims[0]
        cols = x.numel // x.dims[0] // channels
        product = Product(
            Matrix(weight, channels, 1),
            Matrix(x, 1, cols, channels * cols),
            y,
            rows,
            cols,
            channels,
            x.dims[0],
            y_strides=(cols, 1),
            y_batch=rows * cols,
            c=call.optional_tensor("bias"),
            c_strides=(1, 0),
            beta=1.0,
        )
        multiply(out, product)

    def reference(  # type: ignore[override]
        self, call: Call, x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None
    ) -> Any:
        window, groups = self._window(call), call.int("groups")
        n, channels = x.shape[:2]
        size = self._size(x.shape)
        kernels = weight.astype(np.float64).reshape(groups, -1, weight.shape[1], *window.kernel)
        if window.transposed:
            kernels = kernels.swapaxes(1, 2)
        planes = x.astype(np.float64).reshape(n, groups, channels // groups, *size)
        run = convolve_transposed if window.transposed else convolve
        y = run(planes, kernels, window, window.results(call, size))
        y = y.reshape(n, -1, *y.shape[3:])
        if bias is not None:
            y += bias.reshape(-1, 1, 1)
        bounds = self._bounds(call)
        return y if bounds is None else y.clip(*bounds)
