"""Arithmetic of two operands: add, multiply, divide, remainders, powers, bounds, bits.

Schemas: `op.out(self, other)`; `add` and `sub` have `alpha` (`self ± alpha * other`), `div` has
`rounding_mode` (None, "trunc" or "floor"). A `Scalar` form takes a number for `other`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import DtypeError, IndexOutOfRange
from .dtypes import cast, compute_dtype, floating, operands
from .kernel import Array, Result, kernel


@kernel("aten::add.out", "aten::add.Scalar_out", elementwise=True)
def add(a: Array, b: Any, alpha: Any) -> Result:
    """`a + alpha * b`."""
    x, y, factor = operands(a, b, alpha)
    return x | (y & factor) if x.dtype == np.bool_ else x + factor * y


@kernel("aten::sub.out", "aten::sub.Scalar_out", elementwise=True)
def sub(a: Array, b: Any, alpha: Any) -> Result:
    """`a - alpha * b`."""
    x, y, factor = operands(a, b, alpha)
    return x - factor * y


@kernel("aten::rsub.Scalar_out", elementwise=True)
def rsub(a: Array, b: Any, alpha: Any) -> Result:
    """`b - alpha * a`."""
    x, y, factor = operands(a, b, alpha)
    return y - factor * x


@kernel("aten::mul.out", "aten::mul.Scalar_out", elementwise=True)
def mul(a: Array, b: Any) -> Result:
    """`a * b`."""
    x, y = operands(a, b)
    return x * y


@kernel("aten::div.out", "aten::div.Scalar_out", elementwise=True)
def div(a: Array, b: Any) -> Result:
    """`a / b` in floating point, whatever the operands are."""
    x, y = operands(a, b)
    return floating(x) / floating(y)


@kernel("aten::div.out_mode", "aten::div.Scalar_mode_out", elementwise=True)
def div_mode(a: Array, b: Any, rounding_mode: str | None) -> Result:
    """`a / b`, then rounded towards zero ("trunc") or down ("floor")."""
    if rounding_mode is None:
        return div(a, b)
    if rounding_mode == "floor":
        return floor_divide(a, b)
    if rounding_mode != "trunc":
        raise DtypeError(f"rounding_mode {rounding_mode!r}; None, 'trunc' and 'floor' are defined")
    x, y = operands(a, b)
    if x.dtype.kind == "f":
        return np.trunc(x / y)
    _refuse_zero(y)
    quotient = x // y
    return quotient + ((quotient < 0) & (quotient * y != x))


@kernel("aten::floor_divide.out", elementwise=True)
def floor_divide(a: Array, b: Any) -> Result:
    """`floor(a / b)`, with the remainder of the divisor's sign."""
    x, y = operands(a, b)
    _refuse_zero(y)
    return np.floor_divide(x, y)


@kernel("aten::remainder.Tensor_out", "aten::remainder.Scalar_out", elementwise=True)
def remainder(a: Array, b: Any) -> Result:
    """`a - b * floor(a / b)`: the sign of the divisor."""
    x, y = operands(a, b)
    _refuse_zero(y)
    return np.remainder(x, y)


@kernel("aten::fmod.Tensor_out", "aten::fmod.Scalar_out", elementwise=True)
def fmod(a: Array, b: Any) -> Result:
    """`a - b * trunc(a / b)`: the sign of the dividend."""
    x, y = operands(a, b)
    _refuse_zero(y)
    return np.fmod(x, y)


@kernel(
    "aten::pow.Tensor_Tensor_out",
    "aten::pow.Tensor_Scalar_out",
    "aten::pow.Scalar_out",
    elementwise=True,
)
def power(a: Any, b: Any) -> Result:
    """`a ** b`; integers with negative exponents give 1, -1 or 0."""
    x, y = operands(a, b)
    if x.dtype.kind != "i" or not (y < 0).any():
        return np.power(x, y)
    inverse = np.where(x == 1, 1, np.where(x == -1, 1 - 2 * (y % 2), 0)).astype(x.dtype)
    return np.where(y < 0, inverse, np.power(x, np.abs(y)))


@kernel("aten::atan2.out", elementwise=True)
def atan2(a: Array, b: Array) -> Result:
    """Angle of the point (b, a)."""
    x, y = operands(a, b)
    return np.arctan2(floating(x), floating(y))


@kernel("aten::maximum.out", elementwise=True)
def maximum(a: Array, b: Array) -> Result:
    """The larger one; NaN wins."""
    return np.maximum(*operands(a, b))


@kernel("aten::minimum.out", elementwise=True)
def minimum(a: Array, b: Array) -> Result:
    """The smaller one; NaN wins."""
    return np.minimum(*operands(a, b))


@kernel("aten::clamp.out", "aten::clamp.Tensor_out", elementwise=True)
def clamp(a: Array, low: Any, high: Any) -> Result:
    """`min(max(a, low), high)`; a bound may be None."""
    dtype = compute_dtype(a, low, high)
    x = cast(a, dtype)
    if low is not None:
        x = np.maximum(x, cast(low, dtype))
    return x if high is None else np.minimum(x, cast(high, dtype))


@kernel("aten::bitwise_not.out", elementwise=True)
def bitwise_not(a: Array) -> Result:
    """Every bit flipped; truth values negated."""
    return np.invert(_whole(a))


def _bits(name: str, function: Callable[..., Any]) -> None:
    @kernel(
        f"aten::bitwise_{name}.Tensor_out", f"aten::bitwise_{name}.Scalar_out", elementwise=True
    )
    def bits(a: Array, b: Any) -> Result:
        x, y = operands(a, b)
        return np.asarray(function(_whole(x), y))


def _shift(name: str, function: Callable[..., Any]) -> None:
    @kernel(
        f"aten::bitwise_{name}.Tensor_out",
        f"aten::bitwise_{name}.Tensor_Scalar_out",
        elementwise=True,
    )
    def shift(a: Array, b: Any) -> Result:
        x, y = operands(a, b)
        return np.asarray(function(_whole(x), y))


_bits("and", np.bitwise_and)
_bits("or", np.bitwise_or)
_bits("xor", np.bitwise_xor)
_shift("left_shift", np.left_shift)
_shift("right_shift", np.right_shift)


def _whole(value: Array) -> Result:
    if value.dtype.kind == "f":
        raise DtypeError(f"{value.dtype} has no bits to combine; integers and bool have")
    return value


def _refuse_zero(divisor: Array) -> None:
    """Integers have no infinity to divide into."""
    if divisor.dtype.kind != "f" and not divisor.all():
        at = int(np.flatnonzero(divisor.ravel() == 0)[0])
        raise IndexOutOfRange(f"integer division by zero, divisor at position {at}")
