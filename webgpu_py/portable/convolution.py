"""Convolution, pooling and resampling over channels-first images.

Schemas: `convolution.out(input, weight, bias, stride, padding, dilation, transposed,
output_padding, groups)`, any number of spatial dimensions; `avg_pool2d.out(self, kernel_size,
stride, padding, ceil_mode, count_include_pad, divisor_override)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import ceil, floor
from typing import Any

import numpy as np

from ..errors import ShapeError
from .dtypes import floating, operands
from .kernel import Array, Out, Result, kernel


@kernel("aten::convolution.out")
def convolution(
    x: Array,
    weight: Array,
    bias: Array | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    *,
    out: Out,
) -> Result:
    """Cross-correlation, or its transpose.

    Weight: [out, in / groups, ...], transposed [in, out / groups, ...].
    """
    n = weight.ndim - 2
    steps, pads, gaps = (_each(v, n) for v in (stride, padding, dilation))
    if n < 1 or x.ndim != n + 2 or groups < 1 or min(steps + gaps) < 1 or min(pads) < 0:
        raise ShapeError(
            f"input {list(x.shape)}, weight {list(weight.shape)}, stride {steps}, padding {pads}, "
            f"dilation {gaps}, groups {groups}"
        )
    channels = weight.shape[0] if transposed else weight.shape[1] * groups
    if x.shape[1] != channels or weight.shape[0] % groups:
        raise ShapeError(
            f"{x.shape[1]} channels in, weight {list(weight.shape)} in {groups} groups"
        )
    a, w = operands(x, weight)
    extra = _each(output_padding, n) if transposed else [0] * n
    run = _spread if transposed else _gather
    parts = [
        run(a_part, w_part, steps, pads, gaps, extra, out, groups)
        for a_part, w_part in zip(
            np.split(a, groups, axis=1), np.split(w, groups, axis=0), strict=True
        )
    ]
    result = np.concatenate(parts, axis=1)
    return result if bias is None else result + bias.reshape(-1, *[1] * n)


def _gather(
    x: Array, w: Array, steps: list[int], pads: list[int], gaps: list[int], extra: list[int],
    out: Out, groups: int,
) -> Result:  # fmt: skip
    """One group of a convolution, one kernel position at a time."""
    kernel_size = w.shape[2:]
    padded = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in pads)])
    size = [
        (have - gap * (k - 1) - 1) // step + 1
        for have, k, step, gap in zip(padded.shape[2:], kernel_size, steps, gaps, strict=True)
    ]
    out.check((x.shape[0], w.shape[0] * groups, *size))
    total = np.zeros((x.shape[0], w.shape[0], *size), x.dtype)
    for at in product(*map(range, kernel_size)):
        window = tuple(
            slice(k * gap, k * gap + step * (n - 1) + 1, step)
            for k, gap, step, n in zip(at, gaps, steps, size, strict=True)
        )
        part = np.tensordot(padded[(slice(None), slice(None), *window)], _at(w, at), ([1], [1]))
        total += np.moveaxis(part, -1, 1)
    return total


def _spread(
    x: Array, w: Array, steps: list[int], pads: list[int], gaps: list[int], extra: list[int],
    out: Out, groups: int,
) -> Result:  # fmt: skip
    """One group of a transposed convolution: every input element adds a scaled kernel."""
    kernel_size, size = w.shape[2:], x.shape[2:]
    full = [
        (n - 1) * step + gap * (k - 1) + 1 + more
        for n, step, gap, k, more in zip(size, steps, gaps, kernel_size, extra, strict=True)
    ]
    shape = [n - 2 * pad for n, pad in zip(full, pads, strict=True)]
    out.check((x.shape[0], w.shape[1] * groups, *shape))
    total = np.zeros((x.shape[0], w.shape[1], *full), x.dtype)
    for at in product(*map(range, kernel_size)):
        window = tuple(
            slice(k * gap, k * gap + step * (n - 1) + 1, step)
            for k, gap, step, n in zip(at, gaps, steps, size, strict=True)
        )
        part = np.tensordot(x, _at(w, at), ([1], [0]))
        total[(slice(None), slice(None), *window)] += np.moveaxis(part, -1, 1)
    crop = tuple(slice(pad, pad + n) for pad, n in zip(pads, shape, strict=True))
    return total[(slice(None), slice(None), *crop)]


def _at(w: Array, at: tuple[int, ...]) -> Array:
    """The weight at one kernel position: [out, in] or [in, out]."""
    return w.reshape(*w.shape[:2], -1)[..., np.ravel_multi_index(at, w.shape[2:])]


def _each(values: Sequence[int], n: int) -> list[int]:
    """One value a dimension, from a list of one or of `n`."""
    return list(values) * n if len(values) == 1 else list(values)


def _windows(
    n: int, k: int, step: int, pad: int, gap: int, round_up: bool
) -> tuple[Result, Result]:
    """Places [out, k] along one dimension, those outside clipped, and which are inside."""
    if min(k, step, gap) < 1 or pad < 0 or n + 2 * pad < gap * (k - 1) + 1:
        raise ShapeError(f"window {k} by {step}, padding {pad}, dilation {gap} over {n} elements")
    room = n + 2 * pad - gap * (k - 1) - 1
    count = (ceil(room / step) if round_up else room // step) + 1
    if round_up and (count - 1) * step >= n + pad:
        count -= 1  # The last window must start inside the input or its left padding.
    places = np.arange(count)[:, None] * step - pad + np.arange(k) * gap
    inside = (places >= 0) & (places < n)
    return np.clip(places, 0, n - 1), inside


def _picked(x: Array, rows: Array, columns: Array) -> Result:
    """[..., out rows, out columns, kernel rows, kernel columns]."""
    return x[..., rows[:, None, :, None], columns[None, :, None, :]]


@kernel("aten::avg_pool2d.out")
def avg_pool2d(
    x: Array,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Result:
    """Mean of each window; padding counts as zeros, or not at all."""
    size, pads = _each(kernel_size, 2), _each(padding, 2)
    steps = _each(stride, 2) if stride else size
    places, inside, counts = [], [], []
    for n, k, step, pad in zip(x.shape[-2:], size, steps, pads, strict=True):
        at, good = _windows(n, k, step, pad, 1, ceil_mode)
        first = np.arange(len(at)) * step - pad
        places.append(at)
        inside.append(good)
        counts.append(
            np.minimum(first + k, n + pad) - first if count_include_pad else good.sum(axis=1)
        )
    mask = inside[0][:, None, :, None] & inside[1][None, :, None, :]
    total = np.where(mask, _picked(x, *places), 0).sum(axis=(-2, -1), dtype=np.float64)
    return total / (divisor_override or counts[0][:, None] * counts[1])


@kernel("aten::max_pool2d_with_indices.out", outs=2)
def max_pool2d(
    x: Array,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
) -> tuple[Result, Result]:
    """Largest element of each window, and its place in the flat image."""
    size, pads, gaps = (_each(v, 2) for v in (kernel_size, padding, dilation))
    steps = _each(stride, 2) if stride else size
    (rows, good_rows), (columns, good_columns) = (
        _windows(n, k, step, pad, gap, ceil_mode)
        for n, k, step, pad, gap in zip(x.shape[-2:], size, steps, pads, gaps, strict=True)
    )
    mask = good_rows[:, None, :, None] & good_columns[None, :, None, :]
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    values = np.where(mask, _picked(x, rows, columns), np.asarray(lowest, x.dtype))
    flat = values.reshape(*values.shape[:-2], -1)
    best = flat.argmax(axis=-1)
    i, j = np.divmod(best, size[1])
    index = rows[np.arange(len(rows))[:, None], i] * x.shape[-1]
    index = index + columns[np.arange(len(columns)), j]
    return np.take_along_axis(flat, best[..., None], -1)[..., 0], index


@kernel("aten::_adaptive_avg_pool2d.out")
def adaptive_avg_pool2d(x: Array, output_size: Sequence[int]) -> Result:
    """Means of an even division of the image into `output_size` windows."""
    result = x.astype(np.float64)
    for axis, n in zip((-2, -1), output_size, strict=True):
        have = x.shape[axis]
        result = np.stack(
            [
                np.take(result, range(i * have // n, -(-(i + 1) * have // n)), axis=axis).mean(axis)
                for i in range(n)
            ],
            axis=axis,
        )
    return result


def _scaling(
    x: Array, size: Sequence[int] | None, factors: Sequence[float] | None, out: Out
) -> list[tuple[int, int, float]]:
    """(elements, elements out, elements per element out) of rows and columns."""
    found = []
    for i, have in enumerate(x.shape[-2:]):
        n = int(size[i]) if size else floor(have * factors[i]) if factors else have
        found.append((have, n, 1 / factors[i] if factors else have / max(n, 1)))
    out.check((*x.shape[:-2], found[0][1], found[1][1]))
    return found


@kernel("aten::upsample_nearest2d.vec_out")
def upsample_nearest2d(
    x: Array, output_size: Sequence[int] | None, factors: Sequence[float] | None, *, out: Out
) -> Result:
    """The element whose cell each new one falls into."""
    rows, columns = (
        np.minimum(np.floor(np.arange(n) * np.float32(scale)).astype(int), have - 1)
        for have, n, scale in _scaling(x, output_size, factors, out)
    )
    return np.asarray(x[..., rows[:, None], columns])


@kernel("aten::upsample_bilinear2d.vec_out")
def upsample_bilinear2d(
    x: Array,
    output_size: Sequence[int] | None,
    align_corners: bool,
    factors: Sequence[float] | None,
    *,
    out: Out,
) -> Result:
    """Linear between the nearest rows and columns."""
    result: Any = floating(x)
    scaling = _scaling(x, output_size, factors, out)
    for axis, (have, n, scale) in zip((-2, -1), scaling, strict=True):
        if align_corners:
            source = np.arange(n) * ((have - 1) / (n - 1) if n > 1 else 0.0)
        else:
            source = np.maximum((np.arange(n) + 0.5) * scale - 0.5, 0)
        low = np.minimum(source.astype(int), have - 1)
        share = (source - low).astype(np.float32).reshape((-1, 1) if axis == -2 else (-1,))
        high = np.minimum(low + 1, have - 1)
        result = np.take(result, low, axis) * (1 - share) + np.take(result, high, axis) * share
    return np.asarray(result)
