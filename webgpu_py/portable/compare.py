"""Comparisons, truth values and choices between two tensors.

Schemas: `eq.Tensor_out(self, other)` and its five siblings, also with a number; `any.out(self, dim,
keepdim)`; `where.self_out(condition, self, other)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .dtypes import cast, operands
from .kernel import Array, Result, kernel


def _comparison(name: str, function: Callable[..., Any]) -> None:
    @kernel(f"aten::{name}.Tensor_out", f"aten::{name}.Scalar_out", elementwise=True)
    def compare(a: Array, b: Any) -> Result:
        return np.asarray(function(*operands(a, b)))


_comparison("eq", np.equal)
_comparison("ne", np.not_equal)
_comparison("lt", np.less)
_comparison("le", np.less_equal)
_comparison("gt", np.greater)
_comparison("ge", np.greater_equal)


def _logical(name: str, function: Callable[..., Any]) -> None:
    @kernel(f"aten::logical_{name}.out", elementwise=True)
    def logical(a: Array, b: Array) -> Result:
        return np.asarray(function(a != 0, b != 0))


_logical("and", np.logical_and)
_logical("or", np.logical_or)
_logical("xor", np.logical_xor)


@kernel("aten::logical_not.out", elementwise=True)
def logical_not(a: Array) -> Result:
    """True where zero."""
    return a == 0


@kernel("aten::isnan.out", elementwise=True)
def isnan(a: Array) -> Result:
    """True where not a number."""
    return np.isnan(a)


@kernel("aten::isinf.out", elementwise=True)
def isinf(a: Array) -> Result:
    """True where infinite."""
    return np.isinf(a)


@kernel("aten::any.all_out")
def any_of_all(a: Array) -> Result:
    """Whether any element is true."""
    return np.asarray((a != 0).any())


@kernel("aten::any.out")
def any_of_dim(a: Array, dim: int, keepdim: bool) -> Result:
    """Whether any element along `dim` is true."""
    return np.asarray((a != 0).any(axis=dim, keepdims=keepdim))


@kernel("aten::any.dims_out")
def any_of_dims(a: Array, dims: Sequence[int] | None, keepdim: bool) -> Result:
    """Whether any element along `dims` (all of them when None or empty) is true."""
    return np.asarray((a != 0).any(axis=tuple(dims) if dims else None, keepdims=keepdim))


@kernel("aten::all.all_out")
def all_of_all(a: Array) -> Result:
    """Whether every element is true."""
    return np.asarray((a != 0).all())


@kernel("aten::all.out")
def all_of_dim(a: Array, dim: int, keepdim: bool) -> Result:
    """Whether every element along `dim` is true."""
    return np.asarray((a != 0).all(axis=dim, keepdims=keepdim))


@kernel("aten::where.self_out", elementwise=True)
def where(condition: Array, a: Array, b: Array) -> Result:
    """`a` where the condition holds, else `b`."""
    return np.where(condition != 0, *operands(a, b))


@kernel("aten::masked_fill.Scalar_out", elementwise=True)
def masked_fill(a: Array, mask: Array, value: Any) -> Result:
    """`a` with `value` where the mask holds."""
    return np.where(mask != 0, cast(value, a.dtype), a)
