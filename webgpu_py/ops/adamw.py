"""The AdamW optimizer."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

import numpy as np

from ..errors import UnsupportedOperator
from ..graph.call import Call
from ..graph.dims import ceil_div
from ..graph.lowering import Lowering
from ..graph.operator import Operator, operator
from ..graph.values import TensorSpec


@operator(
    "et_vk.adamw_step.default(param!, m!, v!, grad, lr, beta1, beta2, eps, weight_decay, "
    "bias_correction1, bias_correction2) -> [param_out, m_out, v_out]"
)
class AdamWStep(Operator):
    """One AdamW step on param, m and v, in place.

    m = beta1 m + (1 - beta1) grad; v = beta2 v + (1 - beta2) grad^2;
    param = param - lr weight_decay param - lr (m / bias_correction1)
            / (sqrt(v / bias_correction2) + eps).
    Shapes: all four equal, any. float32. The list of results is not written: name the updated
    arguments themselves as outputs.
    Errors: ShapeError, DtypeError, UnsupportedOperator (a correction of 0, scalars not finite).
    """

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        param = call.tensor("param", "float32")
        for name in ("m", "v", "grad"):
            other = call.tensor(name, "float32")
            call.check(
                other.dims == param.dims,
                f"{name} {list(other.dims)} and param {list(param.dims)}, must be equal",
            )
        self._scalars(call)
        declared = (call.declared(i) for i in range(len(call.result_ids)))
        return [spec for spec in declared if spec is not None]

    def _scalars(self, call: Call) -> dict[str, float]:
        found = {a.name: call.float(a.name) for a in self.signature.arguments[4:]}
        for name, value in found.items():
            call.check(isfinite(value), f"{name}={value}, must be finite", UnsupportedOperator)
            call.check(
                value != 0 or not name.startswith("bias_correction"),
                f"{name}=0, must not be 0: count steps from 1",
                UnsupportedOperator,
            )
        return found

    def lower(self, call: Call, out: Lowering) -> None:
        given = self._scalars(call)
        param = call.tensor("param")
        width = out.width(256)
        out.dispatch(
            "adamw_step",
            {name: call.tensor(name) for name in ("param", "m", "v", "grad")},
            {
                "numel": param.numel,
                "decay": 1 - given["lr"] * given.pop("weight_decay"),
                "one_minus_beta1": 1 - given["beta1"],
                "one_minus_beta2": 1 - given["beta2"],
                **given,
            },
            ceil_div(param.numel, width),
            {"wg_size": width},
        )

    def reference(  # type: ignore[override]
        self, call: Call, param: np.ndarray, m: np.ndarray, v: np.ndarray, grad: np.ndarray
    ) -> Any:
        s = self._scalars(call)
        g = grad.astype(np.float64)
        first = s["beta1"] * m + (1 - s["beta1"]) * g
        second = s["beta2"] * v + (1 - s["beta2"]) * g**2
        step = first / s["bias_correction1"]
        step /= np.sqrt(second / s["bias_correction2"]) + s["eps"]
        param[...] = param - s["lr"] * (s["weight_decay"] * param + step)
        m[...], v[...] = first, second
        return []
