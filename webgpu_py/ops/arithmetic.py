"""Binary arithmetic with broadcasting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ..graph.call import Call
from ..graph.dims import broadcast_dims, ceil_div, dims8, strides8
from ..graph.lowering import Lowering
from ..graph.operator import Operator, operator
from ..graph.values import TensorSpec


@operator(
    "aten.add.Tensor(a, b, alpha=1) -> out",
    "aten.sub.Tensor(a, b, alpha=1) -> out",
    "aten.mul.Tensor(a, b) -> out",
)
class Binary(Operator):
    """add: a + alpha * b; sub: a - alpha * b; mul: a * b.

    Shapes: a and b broadcast right-aligned, size-1 dims repeat, rank 0 to 8. float32.
    Errors: ShapeError (no broadcast), DtypeError.
    """

    CODES: ClassVar[dict[str, int]] = {
        "aten.add.Tensor": 0,
        "aten.sub.Tensor": 1,
        "aten.mul.Tensor": 2,
    }

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        a, b = call.tensor("a", "float32"), call.tensor("b", "float32")
        self._alpha(call)
        return [TensorSpec("float32", broadcast_dims(call, a, b))]

    def _alpha(self, call: Call) -> float:
        return 1.0 if self.name == "aten.mul.Tensor" else call.float("alpha")

    def lower(self, call: Call, out: Lowering) -> None:
        a, b, y = call.tensor("a"), call.tensor("b"), call.out()
        width = out.width(256)
        same = a.dims == b.dims == y.dims
        out.dispatch(
            "binary",
            {"a": a, "b": b, "y": y},
            {
                "numel": y.numel,
                "same": int(same),
                "alpha": self._alpha(call),
                "dims": dims8(y.dims),
                "a_strides": strides8(a.dims),
                "b_strides": strides8(b.dims),
            },
            ceil_div(y.numel, width),
            {"op": self.CODES[self.name], "wg_size": width},
        )

    def reference(self, call: Call, a: np.ndarray, b: np.ndarray) -> np.ndarray:  # type: ignore[override]
        a, b = a.astype(np.float64), b.astype(np.float64)
        if self.name == "aten.mul.Tensor":
            return a * b
        alpha = self._alpha(call)
        return a + alpha * b if self.name == "aten.add.Tensor" else a - alpha * b
