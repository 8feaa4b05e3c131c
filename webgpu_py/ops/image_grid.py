"""Images read at places that a grid names, and the grids of detectors' anchors."""

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


@operator(
    "aten.grid_sampler_2d.default(x, grid, interpolation_mode, padding_mode, align_corners) -> out"
)
class GridSampler2d(Operator):
    """out[n, c, h, w] = x[n, c] at the place grid[n, h, w] = (across, down), -1 .. 1 an axis.

    interpolation_mode 0 bilinear, 1 nearest (half to even); padding_mode 0 zeros, 1 the border's
    value, 2 reflection. With align_corners -1 and 1 are the centres of the outer cells, else
    their outer edges.
    Shapes: x [N, C, H, W], grid [N, OH, OW, 2] -> [N, C, OH, OW]. float32; all dims may be live.
    Errors: ShapeError, DtypeError, UnsupportedOperator (other modes).
    """

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        x, grid = call.tensor("x", "float32"), call.tensor("grid", "float32")
        call.check(
            x.rank == grid.rank == 4 and grid.dims[3] == 2 and x.dims[0] == grid.dims[0],
            f"x {list(x.dims)} and grid {list(grid.dims)}, must be [N, C, H, W] and [N, OH, OW, 2]",
        )
        for name, most in (("interpolation_mode", 1), ("padding_mode", 2)):
            call.check(
                0 <= call.int(name) <= most,
                f"{name}={call.int(name)}, allowed are 0 to {most}",
                UnsupportedOperator,
            )
        call.bool("align_corners")
        return [TensorSpec("float32", (*x.dims[:2], *grid.dims[1:3]))]

    def lower(self, call: Call, out: Lowering) -> None:
        x, y = call.tensor("x"), call.out()
        width = out.width(64)
        out.dispatch(
            "grid_sampler",
            {"x": x, "grid": call.tensor("grid"), "y": y},
            {
                "numel": y.numel,
                "channels": x.dims[1],
                "in_height": x.dims[2],
                "in_width": x.dims[3],
                "out_area": y.dims[2] * y.dims[3],
                "padding": call.int("padding_mode"),
                "align_corners": int(call.bool("align_corners")),
            },
            ceil_div(y.numel, width),
            {"wg_size": width, "mode": call.int("interpolation_mode")},
        )

    def reference(self, call: Call, x: np.ndarray, grid: np.ndarray) -> Any:  # type: ignore[override]
        n, c, height, width = x.shape
        across = self._places(call, grid[..., 0].astype(np.float64), width)
        down = self._places(call, grid[..., 1].astype(np.float64), height)
        # A border of zeros stands for everything outside.
        plane = np.pad(x.astype(np.float64), [(0, 0), (0, 0), (1, 1), (1, 1)])
        images = np.arange(n)[:, None, None]

        def cells(rows: Any, cols: Any) -> Any:
            kept = (rows + 1).clip(0, height + 1), (cols + 1).clip(0, width + 1)
            return np.moveaxis(plane[images, :, kept[0], kept[1]], -1, 1)

        if call.int("interpolation_mode") == 1:
            return cells(np.rint(down).astype(int), np.rint(across).astype(int))
        total = np.zeros((n, c, *grid.shape[1:3]))
        top, left = np.floor(down).astype(int), np.floor(across).astype(int)
        for row, col in ((0, 0), (0, 1), (1, 0), (1, 1)):
            share = (1 - abs(down - top - row)) * (1 - abs(across - left - col))
            total += share[:, None] * cells(top + row, left + col)
        return total

    @staticmethod
    def _places(call: Call, values: np.ndarray, size: int) -> Any:
        """-1 .. 1 along an axis as fractional cells, padding applied."""
        aligned, padding = call.bool("align_corners"), call.int("padding_mode")
        low, span = (0.0, size - 1.0) if aligned else (-0.5, float(size))
        at = low + (values + 1) / 2 * span
        if padding == 2 and span > 0:
            at = low + span - abs((at - low) % (2 * span) - span)
        elif padding == 2:
            at = np.zeros_like(at)
        return at.clip(0, size - 1) if padding else at.clip(-2, size + 1)


@operator("et_vk.grid_priors.default(x, stride, offset) -> out")
class GridPriors(Operator):
    """out[r] = ((r % W + offset) * stride, (r // W + offset) * stride).

    Shapes: x [..., H, W] (only its sizes count) -> [H W, 2] float32; H and W may be live.
    Errors: ShapeError (rank).
    """

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        x = call.tensor("x")
        call.check(x.rank >= 2, f"x {list(x.dims)}, must be [..., H, W]")
        call.float("stride"), call.float("offset")
        return [TensorSpec("float32", (x.dims[-2] * x.dims[-1], 2))]

    def lower(self, call: Call, out: Lowering) -> None:
        y = call.out()
        width = out.width(64)
        out.dispatch(
            "grid_priors",
            {"y": y},
            {
                "numel": y.numel,
                "width": call.tensor("x").dims[-1],
                "stride": call.float("stride"),
                "offset": call.float("offset"),
            },
            ceil_div(y.numel, width),
            {"wg_size": width},
        )

    def reference(self, call: Call, x: np.ndarray) -> Any:  # type: ignore[override]
        rows, cols = np.indices(x.shape[-2:])
        places = np.stack([cols.reshape(-1), rows.reshape(-1)], 1)
        return (places + call.float("offset")) * call.float("stride")
