"""Choice between two tensors, element by element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import DtypeError
from ..graph.call import Call
from ..graph.dims import (
    broadcast_dims,
    broadcast_strides,
    ceil_div,
    merge_axes,
    pack_axes,
    reach,
)
from ..graph.lowering import Lowering
from ..graph.operator import Operator, operator
from ..graph.values import TensorSpec, itemsize


@operator("aten.where.self(condition, a, b) -> out")
class Where(Operator):
    """y = a where condition is not 0, else b.

    Shapes: all three broadcast right-aligned, rank 0 to 8. condition is bool or uint8; a and b
    have one dtype, any, and y has it. Errors: ShapeError (no broadcast), DtypeError.
    """

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        c, a, b = call.tensor("condition", ("bool", "uint8")), call.tensor("a"), call.tensor("b")
        call.check(a.dtype == b.dtype, f"a is {a.dtype}, b is {b.dtype}, must be equal", DtypeError)
        return [TensorSpec(a.dtype, broadcast_dims(call, c, a, b))]

    def lower(self, call: Call, out: Lowering) -> None:
        c, a, b, y = call.tensor("condition"), call.tensor("a"), call.tensor("b"), call.out()
        axes = merge_axes(y.dims, *(broadcast_strides(t, y.dims) for t in (c, a, b)))
        far, splats = reach(axes)
        width = out.width(256)
        out.dispatch(
            "where",
            {"condition": c, "a": a, "b": b, "y": y},
            {"numel": y.numel, "axes": pack_axes(call, axes)},
            ceil_div(ceil_div(y.numel, 4), width),
            {
                "bytes": itemsize(y.dtype) == 1,
                "reach": far,
                "c_splat": splats[0],
                "a_splat": splats[1],
                "b_splat": splats[2],
                "wg_size": width,
            },
        )

    def reference(self, call: Call, condition: np.ndarray, a: np.ndarray, b: np.ndarray) -> Any:  # type: ignore[override]
        return np.where(condition != 0, a, b)
