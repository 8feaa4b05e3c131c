"""Symbolic numbers: sizes, arithmetic on them, and the two tensor primitives of the runtime.

These calls have no `out` argument: the last id is the value they overwrite, the first one for
`et_copy_index`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import IndexOutOfRange, ShapeError
from .kernel import Array, Result, kernel

_LOW, _HIGH = -(2**63), 2**63 - 1


def bounded(value: Any) -> Any:
    """A Python number as it is, or `IndexOutOfRange` when an integer left the int64 range."""
    if isinstance(value, int) and not _LOW <= value <= _HIGH:
        raise IndexOutOfRange(f"{value} does not fit int64")
    return value


_BINARY: dict[str, Callable[..., Any]] = {
    "add.Scalar": operator.add,
    "sub.Scalar": operator.sub,
    "mul.Scalar": operator.mul,
    "floordiv.Scalar": operator.floordiv,
    "floordiv.int": operator.floordiv,
    "truediv.Scalar": operator.truediv,
    "mod.Scalar": operator.mod,
    "mod.int": operator.mod,
    "eq.Scalar": operator.eq,
    "gt.Scalar": operator.gt,
    "lt.Scalar": operator.lt,
    "ge.Scalar": operator.ge,
    "le.Scalar": operator.le,
    "sym_max.Scalar": max,
    "sym_min.Scalar": min,
}
_UNARY: dict[str, Callable[..., Any]] = {
    "neg.Scalar": operator.neg,
    "sym_float.Scalar": float,
    "sym_int.Scalar": int,
    "sym_not.Scalar": operator.not_,
    "ceil.Scalar": math.ceil,
    "round.Scalar": round,
    "trunc.Scalar": math.trunc,
}


def _register_binary(name: str, function: Callable[..., Any]) -> None:
    @kernel(f"executorch_prim::{name}", outs=0)
    def binary(a: Any, b: Any) -> Any:
        return bounded(function(a, b))


def _register_unary(name: str, function: Callable[..., Any]) -> None:
    @kernel(f"executorch_prim::{name}", outs=0)
    def unary(a: Any) -> Any:
        return bounded(function(a))


for _name, _function in _BINARY.items():
    _register_binary(_name, _function)
for _name, _function in _UNARY.items():
    _register_unary(_name, _function)


@kernel("executorch_prim::sym_ite.Scalar", outs=0)
def choose(condition: bool, a: Any, b: Any) -> Any:
    """`a` if the condition holds, else `b`."""
    return a if condition else b


@kernel("aten::sym_size.int", outs=0)
def sym_size(x: Array, dim: int) -> int:
    """Live size of one dimension."""
    if not -x.ndim <= dim < x.ndim:
        raise IndexOutOfRange(f"dimension {dim} of {x.ndim}")
    return int(x.shape[dim])


@kernel("aten::sym_numel", outs=0)
def sym_numel(x: Array) -> int:
    """Live number of elements."""
    return int(x.size)


@kernel("aten::_local_scalar_dense", outs=0)
def local_scalar(x: Array) -> Any:
    """The one element as a number."""
    if x.size != 1:
        raise ShapeError(f"{x.size} elements, exactly 1 can become a number")
    return x.reshape(()).item()


@kernel("executorch_prim::et_view.default", outs=0)
def view(x: Array, size: Sequence[int]) -> Result:
    """The elements in order, in another shape; one size may be -1."""
    return x.reshape(tuple(size))


@kernel("executorch_prim::et_copy_index.tensor", outs=0, returns=False)
def copy_index(target: Array, source: Array, index: int) -> Result:
    """The first `index` slices of the target, then the source: how loops collect results."""
    if not 0 <= index <= len(target):
        raise IndexOutOfRange(f"slice {index}, the target has {len(target)}")
    return np.concatenate([target[:index], source[None].astype(target.dtype)])
