"""Values of a `.pte` program on the host: what they hold at first, on the way in and out.

Tensors are logical row-major arrays, whatever order they are stored in; bfloat16 ones are float32
arrays of rounded values. Nothing writes into an array: an instruction binds a new one to a value,
so a caller's arrays, constants and remembered state stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from .errors import DtypeError, FormatError, ShapeError
from .formats import pte_records as pte
from .graph.values import Bool, Double, Int, Null, String
from .portable.dtypes import store
from .program_steps import Storage

_NARROWED = {"float64": "float32", "bfloat16": "float32"}
"""Host dtypes of delegate tensors that a session does not convert itself."""


class Frame:
    """The values of one run, and which tensor was last written to each storage with views."""

    def __init__(
        self,
        plan: pte.ExecutionPlan,
        values: list[Any],
        views: Mapping[int, Storage],
        places: Mapping[int, Storage],
    ) -> None:
        self.values = list(values)
        self._plan, self._views, self._places = plan, views, places
        self._last: dict[Storage, int] = {}

    def write(self, index: int, value: Any) -> None:
        """Bind a value."""
        self.values[index] = value
        if index in self._places:
            self._last[self._places[index]] = index

    def read(self, index: int) -> Any:
        """A value; `FormatError` for a tensor that nothing was written to."""
        value = self.values[index]
        if value is None and isinstance(self._plan.values[index], pte.PteTensor):
            return self._view(index)
        return value

    def argument(self, index: int) -> Any:
        """A value; lists are filled with what their entries are now."""
        declared = self._plan.values[index]
        if isinstance(declared, pte.IntIds):
            return [self.values[i] for i in declared.items]
        if isinstance(declared, pte.TensorIds):
            return [None if i < 0 else self.read(i) for i in declared.items]
        return self.read(index)

    def _view(self, index: int) -> np.ndarray:
        """The tensor that lies in a view's storage, in the view's shape."""
        declared = self._plan.values[index]
        base = self.values[self._last[self._views[index]]] if self._has_base(index) else None
        if not isinstance(declared, pte.PteTensor) or not isinstance(base, np.ndarray):
            raise FormatError(
                f"{self._plan.name}: tensor {index} is used before anything is in it — "
                "the file is damaged"
            )
        wanted = store(0, declared.dtype).dtype
        if base.size != declared.numel or base.dtype != wanted:
            raise ShapeError(
                f"{self._plan.name}: tensor {index}, a view {declared.dtype}"
                f"{list(declared.sizes)}, lies on {base.dtype}{list(base.shape)} — the program was "
                "exported for one shape, give inputs of exactly that"
            )
        return base.reshape(declared.sizes)

    def _has_base(self, index: int) -> bool:
        return index in self._views and self._views[index] in self._last


def initial_values(
    plan: pte.ExecutionPlan, stored: Mapping[int, bytes], kept: Collection[int]
) -> list[Any]:
    """Every value before the first run; `stored` holds the bytes of constants and states by id.

    Buffers (`kept`) without a stored state begin as zeros, which take no memory until written.
    """
    values: list[Any] = []
    for index, value in enumerate(plan.values):
        if isinstance(value, pte.PteTensor):
            if index in stored:
                values.append(_decode(value, stored[index]))
            elif index in kept:
                zero = store(0, value.dtype)
                values.append(np.broadcast_to(zero, value.sizes))
            else:
                values.append(None)
        elif isinstance(value, (Int, Double, Bool, String)):
            values.append(value.value)
        else:
            values.append(None if isinstance(value, Null) else list(value.items))
    return values


def _decode(value: pte.PteTensor, raw: bytes) -> np.ndarray:
    """The logical array of stored bytes, which lie in the tensor's dimension order."""
    if value.dtype == "bfloat16":
        bits = np.frombuffer(raw, "<u2", value.numel).astype(np.uint32) << np.uint32(16)
        flat = bits.view(np.float32)
    else:
        flat = np.frombuffer(raw, np.dtype(value.dtype).newbyteorder("<"), value.numel)
    lying = flat.reshape([value.sizes[d] for d in value.dim_order])
    return lying.transpose(np.argsort(value.dim_order)) if value.dim_order else lying


def from_device(name: str, array: np.ndarray, dtype: str) -> np.ndarray:
    """A delegate's result in the dtype its value declares."""
    wider = {"int32": {"int64"}, "float32": {"float16", "float64", "bfloat16"}}
    if str(array.dtype) != dtype and dtype not in wider.get(str(array.dtype), ()):
        raise DtypeError(
            f"{name} is {array.dtype} on the device and {dtype} in the program; "
            "allowed are equal dtypes, int32 to int64 and float32 to another float"
        )
    return store(array, dtype)


def to_device(declared: pte.EValue, value: Any) -> Any:
    """A delegate's input; doubles are rounded to what the device has."""
    narrow = _NARROWED.get(declared.dtype) if isinstance(declared, pte.PteTensor) else None
    return value if narrow is None else value.astype(narrow, copy=False)


def method_input(name: str, declared: pte.EValue, given: Any) -> Any:
    """A caller's argument as the method declares it; ShapeError or DtypeError naming it."""
    if isinstance(declared, pte.PteTensor):
        return _tensor_input(name, declared, given)
    if isinstance(given, (np.ndarray, np.generic)) and given.size == 1:
        given = given.reshape(()).item()
    kinds: dict[type, tuple[Callable[[Any], Any], type | tuple[type, ...]]] = {
        Int: (int, int),
        Bool: (bool, (bool, np.bool_)),
        Double: (float, (int, float)),
        String: (str, str),
    }
    convert, accepted = kinds.get(type(declared), (lambda v: v, object))
    if not isinstance(given, accepted):
        raise DtypeError(
            f"{name} is {type(given).__name__}, the method takes {type(declared).__name__}"
        )
    return convert(given)


def _tensor_input(name: str, declared: pte.PteTensor, given: Any) -> np.ndarray:
    array = np.asarray(given)
    wanted = "float32" if declared.dtype == "bfloat16" else declared.dtype
    if array.dtype != wanted:
        raise DtypeError(
            f"{name} is {array.dtype}, the method takes {wanted}; use .astype({wanted!r})"
        )
    if array.ndim != len(declared.sizes) or (
        not declared.unbounded
        and any(d > m for d, m in zip(array.shape, declared.sizes, strict=True))
    ):
        raise ShapeError(
            f"{name} has shape {list(array.shape)}, the method takes up to {list(declared.sizes)}"
        )
    return store(array, declared.dtype)
