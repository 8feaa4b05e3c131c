"""Convolution, pooling and resampling over channels-first images.

Schemas: `convolution.out(input, weight, bias, stride, padding, dilation, transposed,
output_padding, groups)`, any number of spatial dimensions; `avg_pool2d.out(self, kernel_size,
stride, padding, ceil_mode, count_include_pad, divisor_override)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import floor
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
    extra = _each(output_padding, n)
    spatial = zip(x.shape[2:], weight.shape[2:], steps, pads, gaps, extra, strict=True)
    if transposed:
        size = [(m - 1) * step - 2 * p + gap * (k - 1) + 1 + e for m, k, step, p, gap, e in spatial]
    else:
        size = [(m + 2 * p - gap * (k - 1) - 1) // step + 1 for m, k, step, p, gap, _ in spatial]
    made = weight.shape[1] * groups if transposed else weight.shape[0]
    shape = out.check((x.shape[0], made, *size))
    a, w = operands(x, weight)
    result = np.zeros(shape, a.dtype)
    for source, target, part in zip(
        np.split(a, groups, axis=1),
        np.split(result, groups, axis=1),
        np.split(w, groups, axis=0),
        strict=True,
    ):
        _accumulate(source, target, part, steps, pads, gaps, transposed)
    return result if bias is None else result + bias.reshape(-1, *[1] * n)


def _accumulate(
    source: Array,
    target: Array,
    weight: Array,
    steps: list[int],
    pads: list[int],
    gaps: list[int],
    transposed: bool,
) -> None:
    """Add one group's products to `target`, one kernel position at a time.

    Position k joins element i of the coarse side to element `i * step + k * gap - pad` of the fine
    one; the coarse side is the result, or the input when transposed.
    """
    coarse, fine = (source, target) if transposed else (target, source)
    for at in product(*map(range, weight.shape[2:])):
        places = [
            _meeting(m, room, step, k * gap - pad)
            for m, room, step, k, gap, pad in zip(
                coarse.shape[2:], fine.shape[2:], steps, at, gaps, pads, strict=True
            )
        ]
        near: Any = (..., *(i for i, _ in places))
        far: Any = (..., *(j for _, j in places))
        taps = weight.reshape(*weight.shape[:2], -1)[
            ..., np.ravel_multi_index(at, weight.shape[2:])
        ]
        if transposed:
            target[far] += np.moveaxis(np.tensordot(source[near], taps, ([1], [0])), -1, 1)
        else:
            target[near] += np.moveaxis(np.tensordot(source[far], taps, ([1], [1])), -1, 1)


def _meeting(count: int, room: int, step: int, offset: int) -> tuple[slice, slice]:
    """The i below `count` for which `i * step + offset` lies inside `room`, and those places."""
    first = max(0, -(offset // step))
    last = min(count - 1, (room - 1 - offset) // step)
    if last < first:
        return slice(0, 0), slice(0, 0)
    start = first * step + offset
    return slice(first, last + 1), slice(start, last * step + offset + 1, step)


def _each(values: Sequence[int], n: int) -> list[int]:
    """One value a dimension, from a list of one or of `n`."""
    return list(values) * n if len(values) == 1 else list(values)


def _count(n: int, k: int, step: int, pad: int, gap: int, round_up: bool) -> int:
    """Windows of `k` along one dimension of `n`."""
    if min(k, step, gap) < 1 or not 0 <= pad <= k * gap or n + 2 * pad < gap * (k - 1) + 1:
        raise ShapeError(f"window {k} by {step}, padding {pad}, dilation {gap} over {n} elements")
    room = n + 2 * pad - gap * (k - 1) - 1
    count = -(-room // step) + 1 if round_up else room // step + 1
    if round_up and (count - 1) * step >= n + pad:
        count -= 1  # The last window must start inside the input or its left padding.
    return count


class _Windows:
    """Pooling windows over the last two dimensions: where they lie, and which places exist."""

    def __init__(
        self,
        x: Array,
        kernel_size: Sequence[int],
        stride: Sequence[int],
        padding: Sequence[int],
        dilation: Sequence[int],
        round_up: bool,
        out: Out,
    ) -> None:
        self.size, self.pads, gaps = (_each(v, 2) for v in (kernel_size, padding, dilation))
        self.steps = _each(stride, 2) if stride else self.size
        options = list(zip(x.shape[-2:], self.size, self.steps, self.pads, gaps, strict=True))
        counts = [_count(*option, round_up) for option in options]
        out.check((*x.shape[:-2], *counts))
        self.places, inside = [], []
        for count, (n, k, step, pad, gap) in zip(counts, options, strict=True):
            at = np.arange(count)[:, None] * step - pad + np.arange(k) * gap
            inside.append((at >= 0) & (at < n))
            self.places.append(np.clip(at, 0, n - 1))
        self.inside = inside
        self.mask = inside[0][:, None, :, None] & inside[1][None, :, None, :]

    def of(self, x: Array) -> Array:
        """[..., out rows, out columns, kernel rows, kernel columns]."""
        rows, columns = self.places
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
    *,
    out: Out,
) -> Result:
    """Mean of each window; padding counts as zeros, or not at all."""
    windows = _Windows(x, kernel_size, stride, padding, [1], ceil_mode, out)
    total = np.where(windows.mask, windows.of(x), 0).sum(axis=(-2, -1), dtype=np.float64)
    if divisor_override:
        return total / divisor_override
    counts = [inside.sum(axis=1) for inside in windows.inside]
    if count_include_pad:
        for axis in (0, 1):
            first = np.arange(len(counts[axis])) * windows.steps[axis] - windows.pads[axis]
            end = x.shape[axis - 2] + windows.pads[axis]
            counts[axis] = np.minimum(first + windows.size[axis], end) - first
    return total / (counts[0][:, None] * counts[1])


@kernel("aten::max_pool2d_with_indices.out", outs=2)
def max_pool2d(
    x: Array,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
    *,
    out: tuple[Out, Out],
) -> tuple[Result, Result]:
    """Largest element of each window, and its place in the flat image."""
    windows = _Windows(x, kernel_size, stride, padding, dilation, ceil_mode, out[0])
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    values = np.where(windows.mask, windows.of(x), np.asarray(lowest, x.dtype))
    flat = values.reshape(*values.shape[:-2], -1)
    best = flat.argmax(axis=-1)
    i, j = np.divmod(best, windows.size[1])
    rows, columns = windows.places
    index = rows[np.arange(len(rows))[:, None], i] * x.shape[-1]
    index = index + columns[np.arange(len(columns)), j]
    return np.take_along_axis(flat, best[..., None], -1)[..., 0], index


@kernel("aten::_adaptive_avg_pool2d.out")
def adaptive_avg_pool2d(x: Array, output_size: Sequence[int], *, out: Out) -> Result:
    """Means of an even division of the image into `output_size` windows."""
    out.check((*x.shape[:-2], *output_size))
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
