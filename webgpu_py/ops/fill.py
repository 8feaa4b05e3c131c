"""Tensors of one value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import DtypeError
from ..graph.call import Call
from ..graph.lowering import Lowering
from ..graph.operator import Operator, operator
from ..graph.values import TensorSpec, itemsize
from .boxes import fill
from .scalar_types import result_type

_LIVE_KINDS = {"int32": 1, "float32": 2, "int8": 3, "uint8": 3, "bool": 4}


def value_bits(dtype: str, value: float) -> int:
    """A value as a 32-bit word: one 4-byte element, or a byte four times."""
    if dtype == "float32":
        with np.errstate(over="ignore"):
            return int(np.float32(value).view(np.uint32))
    if dtype == "bool":
        return 0x01010101 * (value != 0)
    return int(value) & 0xFFFFFFFF if itemsize(dtype) == 4 else (int(value) & 0xFF) * 0x01010101


class _Fill(Operator):
    def infer(self, call: Call) -> Sequence[TensorSpec]:
        dims, default = self._shape(call)
        value, dtype = self._value(call), result_type(call, "dtype", default)
        call.check(
            dtype == "float32" or (dtype in _LIVE_KINDS and math.isfinite(value)),
            f"value {value} as {dtype}, allowed are finite values as {', '.join(_LIVE_KINDS)}",
            DtypeError,
        )
        return [TensorSpec(dtype, dims)]

    def _shape(self, call: Call) -> tuple[tuple[int, ...], str]:
        """Dims, and the dtype where neither program nor argument says one."""
        if self.name == "aten.scalar_tensor.default":
            return (), "float32"
        if self.signature.arguments[0].name == "x":
            x = call.tensor("x")
            return x.dims, x.dtype
        declared = call.declared()
        if call.env.maximal and call.is_symint("size") and declared is not None:
            return declared.dims, "float32"
        dims = call.ints("size")
        call.check(all(d > 0 for d in dims), f"size is {dims}, every dim must be at least 1")
        return tuple(dims), "float32"

    def _value(self, call: Call) -> float:
        if any(a.name == "value" for a in self.signature.arguments):
            return call.float("value")
        return 1.0 if "ones" in self.name else 0.0

    def lower(self, call: Call, out: Lowering) -> None:
        y = call.out()
        has_value = any(a.name == "value" for a in self.signature.arguments)
        if has_value and call.is_symint("value"):
            fill(out, y, y.spec.nbytes, 0, out.live("value"), _LIVE_KINDS[y.dtype])
        else:
            fill(out, y, y.spec.nbytes, value_bits(y.dtype, self._value(call)))

    def reference(self, call: Call, x: np.ndarray | None = None) -> Any:  # type: ignore[override]
        y, value = call.out(), self._value(call)
        if y.dtype == "float32":
            return np.full(y.dims, value)
        if y.dtype == "bool":
            return np.full(y.dims, value != 0)
        return np.full(y.dims, int(value), np.int64).astype(y.dtype)


@operator(
    "aten.full.default(size, value, dtype=None, layout=None, device=None, pin_memory=None) -> out",
    "aten.scalar_tensor.default(value, dtype=None, layout=None, device=None, pin_memory=None)"
    " -> out",
    "aten.zeros.default(size, dtype=None, layout=None, device=None, pin_memory=None) -> out",
    "aten.ones.default(size, dtype=None, layout=None, device=None, pin_memory=None) -> out",
)
class Fill(_Fill):
    """y = value (full, scalar_tensor), 0 (zeros) or 1 (ones) everywhere.

    Shapes: `size`, symbolic entries are read live; rank 0 for scalar_tensor. The dtype is what the
    program declares, else what `dtype` asks for, else float32. A symbolic value is read live.
    Errors: ShapeError (a size below 1), DtypeError.
    """


@operator(
    "aten.full_like.default(x, value, dtype=None, layout=None, device=None, pin_memory=None, "
    "memory_format=None) -> out",
    "aten.zeros_like.default(x, dtype=None, layout=None, device=None, pin_memory=None, "
    "memory_format=None) -> out",
    "aten.ones_like.default(x, dtype=None, layout=None, device=None, pin_memory=None, "
    "memory_format=None) -> out",
)
class FillLike(_Fill):
    """y = value (full_like), 0 or 1 everywhere, in x's shape and, unless another is said, dtype."""
