"""Softmax and the normalisations, in float64 inside.

Schemas: `_softmax.out(self, dim, half_to_float)`; `native_layer_norm.out(input, normalized_shape,
weight, bias, eps)`; `native_group_norm.out(input, weight, bias, N, C, HxW, group, eps)`;
`_native_batch_norm_legit_no_training.out(input, weight, bias, mean, var, momentum, eps)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ShapeError
from .kernel import Array, Result, kernel


@kernel("aten::_softmax.out")
def softmax(x: Array, dim: int, half_to_float: bool) -> Result:
    """`exp(x) / sum(exp(x))` along `dim`."""
    values = _shifted(x, dim)
    powers = np.exp(values)
    return (powers / powers.sum(axis=dim if x.ndim else 0, keepdims=True)).reshape(x.shape)


@kernel("aten::_log_softmax.out")
def log_softmax(x: Array, dim: int, half_to_float: bool) -> Result:
    """`x - log(sum(exp(x)))` along `dim`."""
    values = _shifted(x, dim)
    total = np.exp(values).sum(axis=dim if x.ndim else 0, keepdims=True)
    return (values - np.log(total)).reshape(x.shape)


def _shifted(x: Array, dim: int) -> Result:
    """`x - max(x)`, at least rank 1; a row of -inf alone gives NaN, as in PyTorch."""
    wide = np.atleast_1d(x).astype(np.float64)
    return wide - wide.max(axis=dim if x.ndim else 0, keepdims=True)


@kernel("aten::native_layer_norm.out", outs=3)
def layer_norm(
    x: Array, shape: Sequence[int], weight: Array | None, bias: Array | None, eps: float
) -> tuple[Result, Result, Result]:
    """Zero mean and unit variance over the last `len(shape)` dimensions; also mean and 1/std."""
    if not shape or x.shape[x.ndim - len(shape) :] != tuple(shape):
        raise ShapeError(f"normalized shape {list(shape)} is not the end of {list(x.shape)}")
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    result, mean, rstd = _normalised(x.astype(np.float64), axes, eps)
    return _affine(result, weight, bias), mean, rstd


@kernel("aten::native_group_norm.out", outs=3)
def group_norm(
    x: Array,
    weight: Array | None,
    bias: Array | None,
    n: int,
    channels: int,
    area: int,
    groups: int,
    eps: float,
) -> tuple[Result, Result, Result]:
    """Zero mean and unit variance over each group of channels; also mean and 1/std."""
    rows = x.astype(np.float64).reshape(n, groups, channels // groups * area)
    result, mean, rstd = _normalised(rows, (2,), eps)
    scaled = _affine(result.reshape(n, channels, area), _column(weight), _column(bias))
    return scaled.reshape(x.shape), mean.reshape(n, groups), rstd.reshape(n, groups)


@kernel("aten::_native_batch_norm_legit_no_training.out", outs=3)
def batch_norm(
    x: Array,
    weight: Array | None,
    bias: Array | None,
    mean: Array,
    variance: Array,
    momentum: float,
    eps: float,
) -> tuple[Result, Result, Result]:
    """Per channel (dimension 1), with stored statistics."""
    rows = x.astype(np.float64).reshape(*x.shape[:2], -1)
    rstd = 1 / np.sqrt(variance.astype(np.float64) + eps)
    result = (rows - _column(mean)) * rstd[:, None]
    scaled = _affine(result, _column(weight), _column(bias)).reshape(x.shape)
    return scaled, np.zeros(0), np.zeros(0)


@kernel("aten::_native_batch_norm_legit.no_stats_out", outs=3)
def batch_norm_no_stats(
    x: Array,
    weight: Array | None,
    bias: Array | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Result, Result, Result]:
    """Per channel (dimension 1), with the statistics of this very batch."""
    rows = x.astype(np.float64).reshape(*x.shape[:2], -1)
    result, mean, rstd = _normalised(rows, (0, 2), eps)
    scaled = _affine(result, _column(weight), _column(bias)).reshape(x.shape)
    return scaled, mean.ravel(), rstd.ravel()


def _normalised(x: Array, axes: tuple[int, ...], eps: float) -> tuple[Result, Result, Result]:
    mean = x.mean(axis=axes, keepdims=True)
    rstd = 1 / np.sqrt(((x - mean) ** 2).mean(axis=axes, keepdims=True) + eps)
    return (x - mean) * rstd, mean, rstd


def _affine(x: Array, weight: Array | None, bias: Array | None) -> Result:
    scaled = x if weight is None else x * weight
    return scaled if bias is None else scaled + bias


def _column(vector: Array | None) -> Any:
    return None if vector is None else vector[:, None]
