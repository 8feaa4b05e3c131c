"""Root-mean-square normalization."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..graph.call import Call, TensorRef
from ..graph.dims import ceil_div
from ..graph.lowering import Lowering, Operand
from ..graph.operator import Operator, operator
from ..graph.values import TensorSpec


def lower_rms_norm(
    out: Lowering, x: Operand, weight: TensorRef, y: Operand, rows: int, width: int, eps: float
) -> None:
    """Dispatch y = rms_norm(x) for x of rows of `width` elements."""
    # On the CPU rows are enough to occupy every core, and a barrier costs more than it saves.
    lanes = 4 if out.software else min(max(1 << (ceil_div(width, 4) - 1).bit_length(), 64), 512)
    out.dispatch(
        "rms_norm",
        {"x": x, "weight": weight, "y": y},
        {"rows": rows, "width": width, "eps": eps},
        rows,
        {"whole": width % 4 == 0, "wg_size": out.width(lanes)},
        out.bakes(rows, weight.fixed()),
    )


@operator("et_vk.rms_norm.default(x, weight, eps=1.1920928955078125e-07) -> out")
class RmsNorm(Operator):
    """out = x / sqrt(mean(x^2 over the last dim) + eps) * weight.

    Shapes: x [.., K], any rank but 0, any K; weight of K elements. float32, float32 sums.
    Errors: ShapeError, DtypeError.
    """

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        x, weight = call.tensor("x", "float32"), call.tensor("weight", "float32")
        call.check(x.rank > 0, "x is a scalar, must have a last dimension")
        call.check(
            weight.numel == x.dims[-1],
            f"weight has {weight.numel} elements, x {list(x.dims)} needs {x.dims[-1]}",
        )
        call.float("eps")
        return [x.spec]

    def lower(self, call: Call, out: Lowering) -> None:
        x = call.tensor("x")
        width = x.dims[-1]
        rows = x.numel // width
        lower_rms_norm(out, x, call.tensor("weight"), call.out(), rows, width, call.float("eps"))

    def reference(  # type: ignore[override]
        self, call: Call, x: np.ndarray, weight: np.ndarray
    ) -> np.ndarray:
        wide = x.astype(np.float64)
        length = np.linalg.norm(wide, axis=-1, keepdims=True) / np.sqrt(x.shape[-1])
        scale = 1 / np.hypot(length, np.sqrt(call.float("eps")))
        found: np.ndarray = wide * scale * weight.reshape(-1)
        return found
