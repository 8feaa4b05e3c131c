"""Batch normalization with the statistics of training."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ..graph.call import Call
from ..graph.dims import ceil_div
from ..graph.lowering import Lowering
from ..graph.operator import Operator, operator
from ..graph.values import TensorSpec


@operator(
    "aten._native_batch_norm_legit_no_training.default"
    "(x, weight=None, bias=None, mean, variance, momentum, eps) -> [out, save_mean, save_rstd]"
)
class BatchNorm(Operator):
    """(x - mean) / sqrt(variance + eps) * weight + bias per channel.

    Shapes: x [N, C, ..]; the others [C], weight and bias may be None. Like PyTorch's in
    evaluation, save_mean and save_rstd are empty there: here they have one element and are
    not written. float32. Errors: ShapeError, DtypeError.
    """

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        x = call.tensor("x", "float32")
        call.check(x.rank >= 2, f"x has rank {x.rank}, must be [N, C, ..]")
        for name in ("weight", "bias", "mean", "variance"):
            ref = call.optional_tensor(name, "float32")
            call.check(
                ref is None or ref.numel == x.dims[1],
                f"{name} must have {x.dims[1]} elements, one a channel",
            )
        unused = [call.declared(i) or TensorSpec("float32", (1,)) for i in (1, 2)]
        return [x.spec, *unused]

    def lower(self, call: Call, out: Lowering) -> None:
        x, y = call.tensor("x"), call.out(0)
        weight, bias = call.optional_tensor("weight"), call.optional_tensor("bias")
        width = out.width(256)
        out.dispatch(
            "batch_norm",
            {
                "x": x,
                "weight": weight,
                "bias": bias,
                "mean": call.tensor("mean"),
                "variance": call.tensor("variance"),
                "y": y,
            },
            {
                "numel": x.numel,
                "channels": x.dims[1],
                "inner": prod(x.dims[2:]),
                "eps": call.float("eps"),
            },
            ceil_div(x.numel, width),
            {
                "has_weight": weight is not None,
                "has_bias": bias is not None,
                "wg_size": width,
            },
        )

    def reference(  # type: ignore[override]
        self,
        call: Call,
        x: np.ndarray,
        mean: np.ndarray,
        variance: np.ndarray,
        weight: np.ndarray | None = None,
        bias: np.ndarray | None = None,
    ) -> Sequence[np.ndarray]:
        shape = (1, -1, *[1] * (x.ndim - 2))
        scale = (variance.astype(np.float64) + call.float("eps")) ** -0.5
        y = (x - mean.reshape(shape).astype(np.float64)) * scale.reshape(shape)
        y = y * (1 if weight is None else weight.reshape(shape))
        return [y + (0 if bias is None else bias.reshape(shape))]
