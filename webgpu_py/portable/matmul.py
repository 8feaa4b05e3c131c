"""Matrix products; integers stay integers, floats are summed in float32 or wider."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ShapeError
from .dtypes import operands
from .kernel import Array, Out, Result, kernel


@kernel("aten::mm.out")
def mm(a: Array, b: Array, *, out: Out) -> Result:
    """[n, k] times [k, m]."""
    return _product(a, b, 2, out)


@kernel("aten::bmm.out")
def bmm(a: Array, b: Array, *, out: Out) -> Result:
    """[b, n, k] times [b, k, m], one by one."""
    if len(a) != len(b):
        raise ShapeError(f"batches of {len(a)} and {len(b)}")
    return _product(a, b, 3, out)


@kernel("aten::addmm.out")
def addmm(bias: Array, a: Array, b: Array, beta: Any, alpha: Any, *, out: Out) -> Result:
    """`beta * bias + alpha * (a @ b)`."""
    product, added, scale, share = operands(_product(a, b, 2, out), bias, alpha, beta)
    # Zero beta must hide whatever the bias holds, NaN included.
    return scale * product + (share * added if beta else np.zeros_like(added))


@kernel("aten::linear.out")
def linear(x: Array, weight: Array, bias: Array | None, *, out: Out) -> Result:
    """[..., k] times the transpose of [n, k], plus [n]."""
    out.check((*x.shape[:-1], len(weight)))
    a, b = operands(x, weight)
    result = a @ b.T
    return result if bias is None else result + bias


def _product(a: Array, b: Array, rank: int, out: Out) -> Result:
    if a.ndim != rank or b.ndim != rank:
        raise ShapeError(f"ranks {a.ndim} and {b.ndim}, both must be {rank}")
    out.check((*a.shape[:-1], b.shape[-1]))
    return np.matmul(*operands(a, b))
