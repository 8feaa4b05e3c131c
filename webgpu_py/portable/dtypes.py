"""Element types as PyTorch promotes, casts and numbers them, on NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import DtypeError
from ..formats.pte_records import SCALAR_TYPES
from .kernel import Array


def is_float(value: Any) -> bool:
    """Whether an array or a number is floating point."""
    return isinstance(value, float) or (isinstance(value, np.ndarray) and value.dtype.kind == "f")


def compute_dtype(*operands: Any) -> np.dtype[Any]:
    """The dtype that PyTorch promotes operands to: floats beat integers beat truth values.

    Numbers only decide between those three kinds. Halves compute in float32 and are rounded when
    the result is stored.
    """
    arrays = [x.dtype for x in operands if isinstance(x, np.ndarray)]
    numbers = [x for x in operands if not isinstance(x, np.ndarray) and x is not None]
    floats = [d for d in arrays if d.kind == "f"]
    if floats:
        found = np.result_type(*floats)
        return np.dtype(np.float32) if found == np.float16 else found
    if any(isinstance(x, float) for x in numbers):
        return np.dtype(np.float32)
    integers = [d for d in arrays if d.kind in "iu"]
    if integers:
        found = np.result_type(*integers)
        return found if found.kind in "iu" else np.dtype(np.int64)
    if any(isinstance(x, int) and not isinstance(x, bool) for x in numbers):
        return np.dtype(np.int64)
    return np.dtype(np.bool_)


def cast(value: Any, dtype: Any) -> Array:
    """An array of `dtype` as C++ casts: floats lose their fraction, integers wrap around."""
    array = np.asarray(value)
    dtype = np.dtype(dtype)
    if array.dtype.kind == "f" and dtype.kind in "iu":
        # Out-of-range floats are undefined there; through int64 they are at least the same here.
        wide = np.nan_to_num(array.astype(np.float64), nan=0.0, posinf=2.0**63, neginf=-(2.0**63))
        whole = np.trunc(np.clip(wide, -(2.0**63), 2.0**63 - 1024)).astype(np.int64)
        return whole.astype(dtype)
    return array.astype(dtype, copy=False)


def operands(*values: Any) -> list[Array]:
    """All values as arrays of their common dtype."""
    dtype = compute_dtype(*values)
    return [cast(value, dtype) for value in values]


def floating(value: Array) -> Array:
    """For functions that exist on floats only: integers become float32, halves too."""
    if value.dtype.kind == "f" and value.dtype != np.float16:
        return value
    return value.astype(np.float32)


def dtype_of_code(code: Any) -> str:
    """The dtype of a ScalarType number; `DtypeError` for one that NumPy cannot hold."""
    if code not in SCALAR_TYPES:
        raise DtypeError(f"scalar type {code}; {sorted(SCALAR_TYPES)} can be held")
    return SCALAR_TYPES[code][0]


def round_to_bfloat16(array: Array) -> Array:
    """Nearest bfloat16 value of each element, ties to even, kept in float32."""
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & np.uint32(
        0xFFFF0000
    )
    # Adding to the bits of a NaN could make it infinite.
    kept = np.where(np.isnan(array), np.uint32(0x7FC00000), rounded)
    return np.asarray(kept, np.uint32).view(np.float32).reshape(np.shape(array))


def store(value: Any, dtype: str) -> Array:
    """A result in the dtype its tensor declares (bfloat16: rounded, in a float32 array)."""
    if dtype == "bfloat16":
        return round_to_bfloat16(cast(value, np.float32))
    return cast(value, dtype)
