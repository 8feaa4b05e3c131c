"""Two-dimensional windows: arguments, sizes, and convolution as one matrix product a tap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..graph.call import Call
from ..graph.dims import ceil_div

Pair = tuple[int, int]


def pair(call: Call, name: str, least: int, default: Pair | None = None) -> Pair:
    """A list of one or two integers as (height, width), each at least `least`."""
    found = call.ints(name)
    if not found and default is not None:
        return default
    call.check(len(found) in (1, 2), f"{name} {found}, must be one or two integers")
    call.check(min(found) >= least, f"{name} {found}, must be at least {least}")
    return found[0], found[-1]


@dataclass(frozen=True, slots=True)
class Window:
    """Kernel, stride, padding and dilation as (height, width); transposed ones spread."""

    kernel: Pair
    stride: Pair
    padding: Pair
    dilation: Pair = (1, 1)
    output_padding: Pair = (0, 0)
    transposed: bool = False

    def results(self, call: Call, size: Pair, ceil_mode: bool = False) -> Pair:
        """Height and width of the result; ShapeError where a window finds no place.

        With `ceil_mode` a last window may overhang, unless it would start past the input.
        """
        found = (self._axis(0, size[0], ceil_mode), self._axis(1, size[1], ceil_mode))
        call.check(
            min(found) >= 1,
            f"input of {size[0]} x {size[1]} gives {found[0]} x {found[1]} for kernel "
            f"{list(self.kernel)}, stride {list(self.stride)}, padding {list(self.padding)}, "
            f"dilation {list(self.dilation)}; use a larger input or more padding",
        )
        return found

    def _axis(self, i: int, size: int, ceil_mode: bool) -> int:
        stride, pad, span = self.stride[i], self.padding[i], self.dilation[i] * (self.kernel[i] - 1)
        if self.transposed:
            return (size - 1) * stride - 2 * pad + span + self.output_padding[i] + 1
        room = size + 2 * pad - span - 1
        if not ceil_mode:
            return room // stride + 1
        count = ceil_div(room, stride) + 1
        return count - 1 if (count - 1) * stride >= size + pad else count

    def params(self) -> dict[str, int]:
        """The fields that the kernels' Params have for a window."""
        found: dict[str, int] = {}
        for name in ("kernel", "stride", "pad", "dilation"):
            height, width = getattr(self, "padding" if name == "pad" else name)
            found |= {f"{name}_height": height, f"{name}_width": width}
        return found


def taps(window: Window, i: int, j: int, count: Pair) -> tuple[slice, slice]:
    """Where tap (i, j) of `count` windows lies in the padded (or, transposed, spread) plane."""
    rows, cols = i * window.dilation[0], j * window.dilation[1]
    return (
        slice(rows, rows + (count[0] - 1) * window.stride[0] + 1, window.stride[0]),
        slice(cols, cols + (count[1] - 1) * window.stride[1] + 1, window.stride[1]),
    )


def convolve(x: np.ndarray, weight: np.ndarray, window: Window, results: Pair) -> Any:
    """Convolution of [N, G, IC, H, W] by [G, OC, IC, KH, KW], giving [N, G, OC, OH, OW]."""
    n, g, channels = x.shape[:3]
    plane = np.pad(x, [(0, 0)] * 3 + [(p, p) for p in window.padding])
    total = np.zeros((n, g, weight.shape[1], results[0] * results[1]))
    for i, j in np.ndindex(*window.kernel):
        rows, cols = taps(window, i, j, results)
        patch = plane[..., rows, cols].reshape(n, g, channels, -1)
        total += weight[..., i, j] @ patch
    return total.reshape(*total.shape[:3], *results)


def convolve_transposed(x: np.ndarray, weight: np.ndarray, window: Window, results: Pair) -> Any:
    """Every input cell of [N, G, IC, H, W] spread by [G, OC, IC, KH, KW], cut to `results`."""
    n, g, channels, *size = x.shape
    flat = x.reshape(n, g, channels, -1)
    plane = np.zeros(
        (n, g, weight.shape[1], *(r + 2 * p for r, p in zip(results, window.padding, strict=True)))
    )
    for i, j in np.ndindex(*window.kernel):
        rows, cols = taps(window, i, j, (size[0], size[1]))
        spread = weight[..., i, j] @ flat
        plane[..., rows, cols] += spread.reshape(*spread.shape[:3], *size)
    top, left = window.padding
    return plane[..., top : top + results[0], left : left + results[1]]
