"""Functions of one operand, element by element.

Schemas: `op.out(self)` and, where they have them, the activation's constants. Functions that exist
on reals only turn integers into float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import DtypeError
from .dtypes import floating
from .kernel import Array, Result, kernel

_erf = np.frompyfunc(math.erf, 1, 1)


def erf_of(x: Array) -> Result:
    """The error function; NumPy has none."""
    return np.asarray(_erf(x), np.float64)


def sigmoid_of(x: Array) -> Result:
    """`1 / (1 + exp(-x))` without overflow on either side."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, small) / (1 + small)


_REALS: dict[str, Callable[..., Any]] = {
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "reciprocal": lambda x: 1 / x,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erf": erf_of,
    "sigmoid": sigmoid_of,
}

_ANY: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "neg": np.negative,
    "sign": lambda x: np.greater(x, 0).astype(x.dtype) - np.less(x, 0).astype(x.dtype),
    "ceil": np.ceil,
    "floor": np.floor,
    "round": np.rint,
    "trunc": np.trunc,
    "relu": lambda x: np.maximum(x, 0),
    "_conj_physical": np.conj,
}
_ROUNDINGS = {"ceil", "floor", "round", "trunc"}


def _register(name: str, function: Callable[..., Any], real: bool) -> None:
    @kernel(f"aten::{name}.out")
    def unary(x: Array) -> Result:
        if not real and x.dtype.kind in "biu" and (name in _ROUNDINGS or x.dtype == np.bool_):
            return x
        return np.asarray(function(floating(x) if real or x.dtype.kind == "f" else x))


for _name, _function in _REALS.items():
    _register(_name, _function, real=True)
for _name, _function in _ANY.items():
    _register(_name, _function, real=False)


@kernel("aten::logit.out")
def logit(x: Array, eps: float | None) -> Result:
    """`log(x / (1 - x))`, x kept `eps` away from 0 and 1."""
    real = floating(x)
    if eps is not None:
        real = np.clip(real, np.float32(eps), np.float32(1 - eps))
    return np.log(real / (1 - real))


@kernel("aten::gelu.out")
def gelu(x: Array, approximate: str) -> Result:
    """`x * Phi(x)`, exact or by the tanh formula."""
    wide = x.astype(np.float64)
    if approximate == "tanh":
        inner = math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)
        return 0.5 * wide * (1 + np.tanh(inner))
    if approximate != "none":
        raise DtypeError(f"approximate {approximate!r}; 'none' and 'tanh' are defined")
    return 0.5 * wide * (1 + erf_of(wide / math.sqrt(2)))


@kernel("aten::elu.out")
def elu(x: Array, alpha: float, scale: float, input_scale: float) -> Result:
    """`scale * x` where positive, else `scale * alpha * (exp(input_scale * x) - 1)`."""
    real = floating(x)
    low = scale * alpha * np.expm1(np.minimum(real, 0) * np.float32(input_scale))
    return np.where(real > 0, scale * real, low)


@kernel("aten::glu.out")
def glu(x: Array, dim: int) -> Result:
    """First half times the sigmoid of the second, along `dim`."""
    if x.shape[dim] % 2:
        raise ValueError(f"dimension {dim} has {x.shape[dim]} elements, an even number is needed")
    value, gate = np.split(floating(x), 2, axis=dim)
    return value * sigmoid_of(gate)


@kernel("aten::hardtanh.out")
def hardtanh(x: Array, low: float, high: float) -> Result:
    """`min(max(x, low), high)`."""
    return np.minimum(np.maximum(x, np.asarray(low, x.dtype)), np.asarray(high, x.dtype))


@kernel("aten::leaky_relu.out")
def leaky_relu(x: Array, negative_slope: float) -> Result:
    """`x` where positive, else `negative_slope * x`."""
    real = floating(x)
    return np.where(real > 0, real, real * np.float32(negative_slope))
