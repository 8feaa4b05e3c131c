"""Copies, casts and tensors made from nothing.

Dimension orders and memory formats are ignored: arrays here are always in logical order, and where
a result is stored decides its dtype.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ShapeError
from .dtypes import cast
from .kernel import Array, Out, Result, kernel


@kernel("aten::copy_", outs=0)
def copy_in_place(target: Array, source: Array, non_blocking: bool) -> Result:
    """`source` broadcast to the shape of `target`, in its dtype."""
    return np.array(np.broadcast_to(cast(source, target.dtype), target.shape))


@kernel("aten::copy.out")
def copy(target: Array, source: Array, non_blocking: bool) -> Result:
    """`source` broadcast to the shape of `target`."""
    return np.array(np.broadcast_to(source, target.shape))


@kernel(
    "aten::alias_copy.out",
    "aten::detach_copy.out",
    "aten::lift_fresh_copy.out",
    "et_copy::_h2d_copy.out",
    "et_copy::_d2h_copy.out",
)
def identity(x: Array) -> Result:
    """The same elements."""
    return x.copy()


@kernel("aten::clone.out")
def clone(x: Array, memory_format: Any) -> Result:
    """The same elements."""
    return x.copy()


@kernel(
    "aten::_to_copy.out",
    "dim_order_ops::_to_dim_order_copy.out",
    "dim_order_ops::_clone_dim_order.out",
)
def to_copy(x: Array, non_blocking: bool, order: Any) -> Result:
    """The same elements; the result's dtype does the cast."""
    return x.copy()


@kernel("aten::fill.Scalar_out", "aten::fill.Tensor_out")
def fill(x: Array, value: Any, *, out: Out) -> Result:
    """`value` in the shape of `x`."""
    return np.full(out.check(x.shape), cast(value, out.compute))


@kernel("aten::full.out")
def full(size: Sequence[int], value: Any, *, out: Out) -> Result:
    """`value` in the shape `size`."""
    return np.full(out.check(size), cast(value, out.compute))


@kernel("aten::full_like.out")
def full_like(x: Array, value: Any, memory_format: Any, *, out: Out) -> Result:
    """`value` in the shape of `x`."""
    return np.full(out.check(x.shape), cast(value, out.compute))


@kernel("aten::zeros.out")
def zeros(size: Sequence[int], *, out: Out) -> Result:
    """Zeros."""
    return np.zeros(out.check(size), out.compute)


@kernel("aten::ones.out")
def ones(size: Sequence[int], *, out: Out) -> Result:
    """Ones."""
    return np.ones(out.check(size), out.compute)


@kernel("aten::empty.out", "dim_order_ops::_empty_dim_order.out")
def empty(size: Sequence[int], order: Any, *, out: Out) -> Result:
    """Any content; zeros, so that runs repeat."""
    return np.zeros(out.check(size), out.compute)


@kernel("aten::scalar_tensor.out")
def scalar_tensor(value: Any, *, out: Out) -> Result:
    """One number, rank 0."""
    return cast(value, out.compute)


@kernel("aten::arange.out")
def arange(end: Any, *, out: Out) -> Result:
    """0, 1, ... below `end`."""
    return arange_from(0, end, 1, out=out)


@kernel("aten::arange.start_out")
def arange_from(start: Any, end: Any, step: Any, *, out: Out) -> Result:
    """`start + i * step`, for as many i as stay before `end`."""
    if step == 0 or (end - start) * step < 0:
        raise ShapeError(f"from {start} to {end} by {step} never arrives")
    # Integers must not pass through floats, which are exact up to 2^53 only.
    if isinstance(start, int) and isinstance(end, int) and isinstance(step, int):
        count = -((start - end) // step)
    else:
        count = int(np.ceil((end - start) / step))
    out.check((count,))
    return cast(start + np.arange(count) * step, out.compute)
