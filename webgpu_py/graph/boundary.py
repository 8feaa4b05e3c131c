"""Host arrays to device bytes and back, by three rules; anything else is an error.

Equal bytes go raw; host int64 narrows to device int32 after a range check that names the
position; host float16 and float32 meet in the device's float32 (a float16 program is computed
in float32). int64 results widen back, float16 ones are rounded.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import DtypeError, IndexOutOfRange, ShapeError
from .values import TensorSpec, itemsize


def to_device(name: str, array: Any, dtype: str) -> np.ndarray:
    """A contiguous array of the device dtype with the same values; DtypeError, IndexOutOfRange."""
    host = np.asarray(array)
    if host.dtype == dtype:
        return np.asarray(host, order="C")
    if host.dtype == np.int64 and dtype == "int32":
        return _narrow(name, host)
    if host.dtype == np.float16 and dtype == "float32":
        return np.asarray(host, np.float32, order="C")
    raise DtypeError(
        f"input {name!r} is {host.dtype} ({host.nbytes} bytes), the device tensor is {dtype} "
        f"({host.size * itemsize(dtype)} bytes); "
        f"convert it, for example with .astype({dtype!r})"
    )


def _narrow(name: str, host: np.ndarray) -> np.ndarray:
    narrow = host.astype(np.int32)
    wrong = np.flatnonzero((narrow != host).ravel())
    if wrong.size:
        at = int(wrong[0])
        raise IndexOutOfRange(
            f"input {name!r}: {host.ravel()[at]} at position {at} does not fit int32 "
            "(-2147483648 to 2147483647)"
        )
    return np.asarray(narrow, order="C")


def check_live(name: str, dims: tuple[int, ...], most: tuple[int, ...]) -> None:
    """Live dims must have the maximal rank, and each lie between 1 and its maximum."""
    if len(dims) != len(most) or any(not 1 <= d <= m for d, m in zip(dims, most, strict=True)):
        raise ShapeError(
            f"input {name!r} has shape {list(dims)}, allowed is rank {len(most)} with dims "
            f"from 1 up to {list(most)}"
        )


def from_device(data: bytes | memoryview, spec: TensorSpec) -> np.ndarray:
    """An own array of `spec` from device bytes (which may be padded)."""
    return np.frombuffer(data[: spec.nbytes], spec.dtype).reshape(spec.dims).copy()
