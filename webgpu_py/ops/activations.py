"""Functions of one tensor with parameters: bounds, slope, exponent, gelu."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import DtypeError, UnsupportedOperator
from ..graph.call import Call
from ..graph.operator import operator
from .unary import Unary


@operator(
    "aten.clamp.default(x, low=None, high=None) -> out",
    "aten.hardtanh.default(x, low=-1, high=1) -> out",
)
class Clamp(Unary):
    """y = min(max(x, low), high); a bound that is None does nothing.

    float32, or int32 with whole bounds; shapes as in Unary.
    Errors: DtypeError (int32 with a fractional bound).
    """

    CODE = 12
    DTYPES = ("float32", "int32")

    def parameters(self, call: Call) -> tuple[float, float]:
        whole = call.tensor("x").dtype == "int32"
        low, high = (-(2.0**31), 2.0**31 - 1) if whole else (-math.inf, math.inf)
        bounds = [
            # A missing bound of hardtanh has a default, one of clamp has none.
            free if call.is_null(name) and self.name == "aten.clamp.default" else call.float(name)
            for name, free in (("low", low), ("high", high))
        ]
        if not whole:
            return bounds[0], bounds[1]
        for bound in bounds:
            call.check(bound.is_integer(), f"bound {bound} for int32, must be whole", DtypeError)
        first, last = (int(min(max(b, low), high)) for b in bounds)
        return first, last

    def formula(self, call: Call, x: np.ndarray) -> Any:
        low, high = self.parameters(call)
        return np.minimum(np.maximum(x, low), high)


@operator("aten.pow.Tensor_Scalar(x, exponent) -> out")
class PowScalar(Unary):
    """y = x ^ exponent; for x < 0 with the sign of a whole exponent, NaN for a fractional one."""

    CODE = 13

    def parameters(self, call: Call) -> tuple[float, float]:
        return call.float("exponent"), 0

    def formula(self, call: Call, x: np.ndarray) -> Any:
        return np.power(x, np.float64(np.float32(call.float("exponent"))))


@operator("aten.leaky_relu.default(x, slope=0.01) -> out")
class LeakyRelu(Unary):
    """y = max(x, 0) + slope * min(x, 0)."""

    CODE = 14

    def parameters(self, call: Call) -> tuple[float, float]:
        return call.float("slope"), 0

    def formula(self, call: Call, x: np.ndarray) -> Any:
        return np.where(x > 0, x, call.float("slope") * x)


_ERF = np.frompyfunc(math.erf, 1, 1)


@operator("aten.gelu.default(x, approximate='none') -> out")
class Gelu(Unary):
    """y = x * (1 + erf(x / sqrt(2))) / 2, approximate "none".

    "tanh": y = x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) / 2.
    Errors: UnsupportedOperator (another form).
    """

    def code(self, call: Call) -> int:
        form = call.string("approximate")
        call.check(
            form in ("none", "tanh"),
            f"approximate is {form!r}, must be 'none' or 'tanh'",
            UnsupportedOperator,
        )
        return 15 if form == "none" else 16

    def parameters(self, call: Call) -> tuple[float, float]:
        self.code(call)
        return 0, 0

    def formula(self, call: Call, x: np.ndarray) -> Any:
        if self.code(call) == 15:
            return 0.5 * x * (1 + np.asarray(_ERF(x / math.sqrt(2)), np.float64))
        return x / (1 + np.exp(-2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
