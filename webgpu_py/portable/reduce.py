"""Reductions along dimensions.

`dims` None or empty means all. Sums run in float64 or int64 and are rounded once, when stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import ShapeError
from .kernel import Array, Result, kernel


def _axes(dims: int | Sequence[int] | None) -> tuple[int, ...] | None:
    if isinstance(dims, int):
        return (dims,)
    return tuple(dims) if dims else None


def _wide(x: Array) -> Result:
    return x.astype(np.float64 if x.dtype.kind == "f" else np.int64)


@kernel("aten::sum.IntList_out")
def sum_dims(x: Array, dims: Sequence[int] | None, keepdim: bool, dtype: Any) -> Result:
    """Sum."""
    return np.asarray(_reduced(np.sum, _wide(x), dims, keepdim))


@kernel("aten::mean.out")
def mean_dims(x: Array, dims: Sequence[int] | None, keepdim: bool, dtype: Any) -> Result:
    """Mean."""
    return np.asarray(_reduced(np.mean, x.astype(np.float64), dims, keepdim))


@kernel("aten::mean.dtype_out")
def mean_all(x: Array, dtype: Any) -> Result:
    """Mean of all elements."""
    return np.asarray(np.mean(x.astype(np.float64)))


@kernel("aten::prod.int_out")
def prod_dim(x: Array, dim: int, keepdim: bool, dtype: Any) -> Result:
    """Product along one dimension."""
    return np.asarray(_reduced(np.prod, _wide(x), dim, keepdim))


@kernel("aten::prod.out")
def prod_all(x: Array, dtype: Any) -> Result:
    """Product of all elements."""
    return np.asarray(np.prod(_wide(x)))


@kernel("aten::cumsum.out")
def cumsum(x: Array, dim: int, dtype: Any) -> Result:
    """Running sum along one dimension."""
    return _wide(x) if x.ndim == 0 else np.cumsum(_wide(x), axis=dim)


@kernel("aten::amax.out")
def amax(x: Array, dims: Sequence[int], keepdim: bool) -> Result:
    """Largest element."""
    return np.asarray(_reduced(np.max, x, dims, keepdim))


@kernel("aten::amin.out")
def amin(x: Array, dims: Sequence[int], keepdim: bool) -> Result:
    """Smallest element."""
    return np.asarray(_reduced(np.min, x, dims, keepdim))


@kernel("aten::max.unary_out")
def max_all(x: Array) -> Result:
    """Largest of all elements."""
    return np.asarray(x.max())


@kernel("aten::min.unary_out")
def min_all(x: Array) -> Result:
    """Smallest of all elements."""
    return np.asarray(x.min())


@kernel("aten::argmax.out")
def argmax(x: Array, dim: int | None, keepdim: bool) -> Result:
    """Where the largest element is; the first of equal ones, of the flat input without `dim`."""
    return _position(np.argmax, x, dim, keepdim)


@kernel("aten::argmin.out")
def argmin(x: Array, dim: int | None, keepdim: bool) -> Result:
    """Where the smallest element is."""
    return _position(np.argmin, x, dim, keepdim)


@kernel("aten::max.dim_max", outs=2)
def max_dim(x: Array, dim: int, keepdim: bool) -> tuple[Result, Result]:
    """Largest element along `dim`, and where it is."""
    return amax(x, [dim], keepdim), argmax(x, dim, keepdim)


@kernel("aten::min.dim_min", outs=2)
def min_dim(x: Array, dim: int, keepdim: bool) -> tuple[Result, Result]:
    """Smallest element along `dim`, and where it is."""
    return amin(x, [dim], keepdim), argmin(x, dim, keepdim)


@kernel("aten::var.correction_out")
def var_correction(x: Array, dims: Sequence[int] | None, correction: Any, keepdim: bool) -> Result:
    """Mean squared distance to the mean, over `n - correction` (1 when None)."""
    wide = x.astype(np.float64)
    axes = None if x.ndim == 0 else _axes(dims)
    spread = ((wide - wide.mean(axis=axes, keepdims=True)) ** 2).sum(axis=axes, keepdims=keepdim)
    count = x.size if axes is None else int(np.prod([x.shape[a] for a in axes]))
    freedom = count - (1 if correction is None else correction)
    return np.asarray(spread / np.float64(max(freedom, 0)))


@kernel("aten::var.out")
def var(x: Array, dims: Sequence[int] | None, unbiased: bool, keepdim: bool) -> Result:
    """Variance over `n - 1`, or over `n`."""
    return var_correction(x, dims, int(unbiased), keepdim)


@kernel("aten::var_mean.correction_out", outs=2)
def var_mean(
    x: Array, dims: Sequence[int] | None, correction: Any, keepdim: bool
) -> tuple[Result, Result]:
    """Variance and mean."""
    return var_correction(x, dims, correction, keepdim), mean_dims(x, dims, keepdim, None)


def _reduced(function: Callable[..., Any], x: Array, dims: Any, keepdim: bool) -> Any:
    """Reduce; rank 0 may name dimension 0 or -1, which it has not."""
    if x.ndim == 0:
        if any(d not in (0, -1) for d in _axes(dims) or ()):
            raise ShapeError(f"dimensions {dims} of rank 0")
        return function(x)
    return function(x, axis=_axes(dims), keepdims=keepdim)


def _position(function: Callable[..., Any], x: Array, dim: int | None, keepdim: bool) -> Result:
    if dim is None:
        flat = function(x)
        return np.full((1,) * x.ndim if keepdim else (), flat, np.int64)
    if x.ndim == 0:
        return np.zeros((), np.int64)
    return np.asarray(function(x, axis=dim, keepdims=keepdim))
