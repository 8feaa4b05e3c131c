"""Images resized to another height and width."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor
from typing import Any

import numpy as np

from ..graph.call import Call
from ..graph.dims import ceil_div
from ..graph.lowering import Lowering
from ..graph.operator import Operator, operator
from ..graph.values import TensorSpec


@operator(
    "aten.upsample_bilinear2d.vec(x, output_size=None, align_corners=False, scale_factors=None)"
    " -> out",
    "aten.upsample_nearest2d.vec(x, output_size=None, scale_factors=None) -> out",
)
class Upsample2d(Operator):
    """Nearest: out[h, w] = x[floor(h * H / OH), floor(w * W / OW)]; bilinear: of four neighbours.

    Bilinear places result cell d of an axis at d * (in - 1) / (out - 1) with align_corners (0 for
    one cell), else at (d + 0.5) * in / out - 0.5, kept within the input.
    Shapes: x [N, C, H, W] -> [N, C, OH, OW], which are output_size, or the floor of each size
    times its factor. float32; all dims may be live.
    Errors: ShapeError (rank, sizes), DtypeError.
    """

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        x = call.tensor("x", "float32")
        call.check(x.rank == 4, f"x {list(x.dims)}, must be [N, C, H, W]")
        self._aligned(call)
        return [TensorSpec("float32", (*x.dims[:2], *self._size(call)))]

    def _size(self, call: Call) -> tuple[int, int]:
        x, declared = call.tensor("x"), call.declared()
        size = list(x.dims[2:])
        if not call.is_null("output_size"):
            found = call.ints("output_size")
        elif declared is not None and x.dims == x.max_spec.dims:
            found = list(declared.dims[-2:])
        else:
            factors = call.floats("scale_factors")
            call.check(len(factors) == 2, f"scale_factors {factors}, must be two numbers")
            found = [floor(s * f) for s, f in zip(size, factors, strict=True)]
        call.check(
            len(found) == 2 and min(found) >= 1,
            f"output size {found} of an input of {size}, must be two positive integers",
        )
        return found[0], found[1]

    def _aligned(self, call: Call) -> bool:
        return self.name.startswith("aten.upsample_bilinear") and call.bool("align_corners")

    def lower(self, call: Call, out: Lowering) -> None:
        x, y = call.tensor("x"), call.out()
        width = out.width(64)
        out.dispatch(
            "upsample",
            {"x": x, "y": y},
            {
                "numel": y.numel,
                "in_height": x.dims[2],
                "in_width": x.dims[3],
                "out_height": y.dims[2],
                "out_width": y.dims[3],
                "align_corners": int(self._aligned(call)),
            },
            ceil_div(y.numel, width),
            {"wg_size": width, "op": int(self.name.startswith("aten.upsample_bilinear"))},
        )

    def reference(self, call: Call, x: np.ndarray) -> Any:  # type: ignore[override]
        sizes = list(zip(x.shape[2:], self._size(call), strict=True))
        if self.name.startswith("aten.upsample_nearest"):
            rows, cols = (np.arange(results) * size // results for size, results in sizes)
            return x[:, :, rows[:, None], cols]
        rows, cols = (self._weights(call, size, results) for size, results in sizes)
        return rows @ x.astype(np.float64) @ cols.T

    def _weights(self, call: Call, size: int, results: int) -> Any:
        """One axis as a matrix [results, size]."""
        at = np.arange(results)
        weights = np.zeros((results, size))
        if self._aligned(call):
            place = np.linspace(0, size - 1, results)
        else:
            place = ((at + 0.5) * size / results - 0.5).clip(0, size - 1)
        low = np.floor(place).astype(int)
        np.add.at(weights, (at, low), 1 - (place - low))
        np.add.at(weights, (at, np.minimum(low + 1, size - 1)), place - low)
        return weights
