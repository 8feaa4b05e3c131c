"""What the int8 operators share: scale and zero point arguments, and float32 to int8."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np

from ..errors import UnsupportedOperator
from ..graph.call import Call

MAX_DEPTH = 65793
"""Products of a zero-shifted byte and a weight byte that always fit an int32 sum."""

_MOST = float(np.finfo(np.float32).max)


def scale_of(call: Call, name: str) -> float:
    """A scale: finite and positive."""
    value = call.float(name)
    call.check(
        isfinite(value) and 0 < value <= _MOST,
        f"{name}={value}, must be positive and finite in float32",
        UnsupportedOperator,
    )
    return value


def inverse_of(call: Call, name: str) -> float:
    """1 / scale, divided in float64 and rounded to float32."""
    value = 1.0 / scale_of(call, name)
    call.check(value <= _MOST, f"1 / {name} exceeds float32", UnsupportedOperator)
    return float(np.float32(value))


def zero_point_of(call: Call, name: str) -> int:
    """A zero point: an int8."""
    value = call.int(name)
    call.check(
        -128 <= value <= 127, f"{name}={value}, allowed are -128 to 127", UnsupportedOperator
    )
    return value


def relu_of(call: Call) -> bool:
    """Whether the argument `activation` asks for relu; "none" is the only other choice."""
    activation = call.string("activation")
    call.check(
        activation in ("none", "relu"),
        f"activation {activation!r}, allowed are 'none' and 'relu'",
        UnsupportedOperator,
    )
    return activation == "relu"


def dequantize(codes: np.ndarray, scale: float, zero_point: int) -> np.ndarray:
    """(codes - zero_point) * scale in float32."""
    return (codes.astype(np.int32) - zero_point).astype(np.float32) * np.float32(scale)


def requantize(values: np.ndarray, inverse: float, zero_point: int) -> Any:
    """clamp(round to even(values * inverse) + zero_point, -128, 127) in float32, as int8."""
    steps = np.rint(values.astype(np.float32) * np.float32(inverse)).clip(-65536, 65536)
    return (steps.astype(np.int32) + zero_point).clip(-128, 127).astype(np.int8)
