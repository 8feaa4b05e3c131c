"""Softmax and its logarithm along any dimension."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ..graph.call import Call
from ..graph.dims import ceil_div, normal_dim
from ..graph.lowering import Lowering
from ..graph.operator import Operator, operator
from ..graph.values import TensorSpec
from .reduce import lanes_of


@operator(
    "aten._softmax.default(x, dim, half_to_float=False) -> out",
    "aten._log_softmax.default(x, dim, half_to_float=False) -> out",
)
class Softmax(Operator):
    """exp(x - m) / sum(exp(x - m)) along dim with m the largest there, or its logarithm.

    Shapes: x of any rank; out like x. float32.
    Errors: ShapeError (dim outside the rank), DtypeError.
    """

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        x = call.tensor("x", "float32")
        normal_dim(call, call.int("dim"), x.rank)
        return [x.spec]

    def lower(self, call: Call, out: Lowering) -> None:
        x = call.tensor("x")
        dim = normal_dim(call, call.int("dim"), x.rank)
        dims = x.dims or (1,)
        size, inner = dims[dim], prod(dims[dim + 1 :])
        lines = x.numel // size
        width = out.width(64)
        lanes = lanes_of(out, size, width)
        out.dispatch(
            "softmax",
            {"x": x, "y": call.out()},
            {"lines": lines, "size": size, "inner": inner},
            ceil_div(lines, width // lanes),
            {
                "logarithm": self.name == "aten._log_softmax.default",
                "lanes": lanes,
                "wg_size": width,
            },
        )

    def reference(self, call: Call, x: np.ndarray) -> np.ndarray:  # type: ignore[override]
        wide = np.atleast_1d(x.astype(np.float64))
        dim = normal_dim(call, call.int("dim"), x.ndim)
        shifted = wide - wide.max(axis=dim, keepdims=True)
        total = np.exp(shifted).sum(axis=dim, keepdims=True)
        if self.name == "aten._log_softmax.default":
            return np.asarray(shifted - np.log(total)).reshape(x.shape)
        return np.asarray(np.exp(shifted) / total).reshape(x.shape)
