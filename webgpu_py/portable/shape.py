"""Views as copies, joins, splits, and padding: elements move, none is computed.

Negative dimensions count from the end, as everywhere in PyTorch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import IndexOutOfRange, ShapeError
from .dtypes import cast
from .kernel import Array, Out, Result, kernel


@kernel("aten::view_copy.out")
def view_copy(x: Array, size: Sequence[int]) -> Result:
    """The elements in order, in another shape; one size may be -1."""
    return x.reshape(tuple(size)).copy()


@kernel("aten::squeeze_copy.dim_out")
def squeeze_dim(x: Array, dim: int) -> Result:
    """Without dimension `dim`, if its size is 1."""
    return squeeze_dims(x, [dim])


@kernel("aten::squeeze_copy.dims_out")
def squeeze_dims(x: Array, dims: Sequence[int]) -> Result:
    """Without those of `dims` whose size is 1."""
    if x.ndim == 0:
        return x.copy()
    axes = tuple(_axis(x.ndim, d) for d in dims)
    return x.squeeze(tuple(a for a in axes if x.shape[a] == 1)).copy()


@kernel("aten::unsqueeze_copy.out")
def unsqueeze(x: Array, dim: int) -> Result:
    """With a new dimension of size 1 at `dim`."""
    return np.expand_dims(x, dim).copy()


@kernel("aten::permute_copy.out")
def permute(x: Array, dims: Sequence[int]) -> Result:
    """Dimension i of the result is dimension `dims[i]`."""
    return x.transpose(tuple(dims)).copy()


@kernel("aten::transpose_copy.int_out")
def transpose(x: Array, dim0: int, dim1: int) -> Result:
    """Two dimensions exchanged."""
    return (x if x.ndim == 0 else x.swapaxes(dim0, dim1)).copy()


@kernel("aten::t_copy.out")
def matrix_transpose(x: Array) -> Result:
    """Rows and columns exchanged; rank 0 and 1 stay."""
    if x.ndim > 2:
        raise ShapeError(f"rank {x.ndim}, at most 2")
    return x.T.copy()


@kernel("aten::expand_copy.out")
def expand(x: Array, size: Sequence[int], implicit: bool, *, out: Out) -> Result:
    """Repeated along dimensions of size 1; -1 keeps a size, new dimensions come first."""
    lead = len(size) - x.ndim
    if lead < 0:
        raise ShapeError(f"size {list(size)} has fewer dimensions than {list(x.shape)}")
    kept = (1,) * lead + x.shape
    target = [have if want == -1 else want for want, have in zip(size, kept, strict=True)]
    return np.array(np.broadcast_to(x, out.check(target)))


@kernel("aten::repeat.out")
def repeat(x: Array, repeats: Sequence[int], *, out: Out) -> Result:
    """The whole of `x`, `repeats[i]` times along dimension i; new dimensions come first."""
    lead = len(repeats) - x.ndim
    if lead < 0:
        raise ShapeError(f"{len(repeats)} repeats for {x.ndim} dimensions")
    kept = (1,) * lead + x.shape
    out.check([n * times for n, times in zip(kept, repeats, strict=True)])
    return np.tile(x, tuple(repeats))


@kernel("aten::select_copy.int_out")
def select(x: Array, dim: int, index: int) -> Result:
    """Slice `index` of dimension `dim`, which goes."""
    size = x.shape[_axis(x.ndim, dim)]
    if not -size <= index < size:
        raise IndexOutOfRange(f"index {index} of dimension {dim}, which has {size}")
    return np.take(x, index, axis=dim)


@kernel("aten::slice_copy.Tensor_out")
def slice_copy(x: Array, dim: int, start: int | None, end: int | None, step: int) -> Result:
    """Elements from `start` to before `end` by `step`; bounds are clamped to the dimension."""
    return x[slicing(x, dim, start, end, step)].copy()


@kernel("aten::narrow_copy.out")
def narrow(x: Array, dim: int, start: int, length: int) -> Result:
    """`length` elements from `start`."""
    size = x.shape[_axis(x.ndim, dim)]
    first = start + size if start < 0 else start
    if not 0 <= first <= first + length <= size:
        raise IndexOutOfRange(f"{length} elements from {start} of a dimension of {size}")
    return x[slicing(x, dim, first, first + length, 1)].copy()


def slicing(x: Array, dim: int, start: int | None, end: int | None, step: int) -> tuple[slice, ...]:
    """The index that slices one dimension and keeps the others."""
    if step < 1:
        raise ShapeError(f"step {step}, at least 1")
    axis = _axis(x.ndim, dim)
    return (slice(None),) * axis + (slice(start, end, step),)


@kernel("aten::cat.out")
def cat(tensors: Sequence[Array], dim: int, *, out: Out) -> Result:
    """One after another along `dim`; empty ones of rank 1 do not count."""
    parts = [t for t in tensors if t.shape != (0,)]
    if not parts:
        return np.zeros(out.check((0,)), out.compute)
    joined = list(parts[0].shape)
    joined[dim] = sum(t.shape[dim] for t in parts)
    out.check(joined)
    return np.concatenate([cast(t, out.compute) for t in parts], axis=dim)


@kernel("aten::stack.out")
def stack(tensors: Sequence[Array], dim: int, *, out: Out) -> Result:
    """One after another along a new dimension `dim`."""
    joined = list(tensors[0].shape)
    joined.insert(dim if dim >= 0 else dim + len(joined) + 1, len(tensors))
    out.check(joined)
    return np.stack([cast(t, out.compute) for t in tensors], axis=dim)


@kernel("aten::split_copy.Tensor_out", outs=-1)
def split(x: Array, size: int, dim: int) -> list[Result]:
    """Pieces of `size` along `dim`; the last may be shorter."""
    if size < 1:
        raise ShapeError(f"split size {size}, at least 1")
    at = range(size, x.shape[_axis(x.ndim, dim)], size)
    return [part.copy() for part in np.split(x, list(at), axis=dim)]


@kernel("aten::split_with_sizes_copy.out", outs=-1)
def split_with_sizes(x: Array, sizes: Sequence[int], dim: int) -> list[Result]:
    """Pieces of the given sizes along `dim`."""
    have = x.shape[_axis(x.ndim, dim)]
    if sum(sizes) != have or any(n < 0 for n in sizes):
        raise ShapeError(f"sizes {list(sizes)} do not add up to {have}")
    at = np.cumsum(np.asarray(sizes, np.int64))[:-1]
    return [part.copy() for part in np.split(x, at.tolist(), axis=dim)]


@kernel("aten::unbind_copy.int_out", outs=-1)
def unbind(x: Array, dim: int) -> list[Result]:
    """The slices along `dim`, each without it."""
    return [np.take(x, i, axis=dim) for i in range(x.shape[_axis(x.ndim, dim)])]


@kernel("aten::flip.out")
def flip(x: Array, dims: Sequence[int]) -> Result:
    """Backwards along `dims`."""
    return np.flip(x, tuple(dims)).copy()


@kernel("aten::roll.out")
def roll(x: Array, shifts: Sequence[int], dims: Sequence[int]) -> Result:
    """Shifted along `dims`, what leaves on one side enters on the other; flat without `dims`."""
    if not dims:
        return np.roll(x, shifts[0])
    return np.roll(x, tuple(shifts), tuple(dims))


@kernel("aten::tril.out")
def tril(x: Array, diagonal: int) -> Result:
    """Zero above the diagonal."""
    return np.tril(x, diagonal)


@kernel("aten::diagonal_copy.out")
def diagonal(x: Array, offset: int, dim1: int, dim2: int) -> Result:
    """The diagonal over two dimensions, as the last one."""
    return np.diagonal(x, offset, dim1, dim2).copy()


@kernel("aten::unfold_copy.out")
def unfold(x: Array, dim: int, size: int, step: int) -> Result:
    """Windows of `size` along `dim`, every `step`; the window is a new last dimension."""
    if x.ndim == 0:
        return np.full(size, x)
    windows = np.lib.stride_tricks.sliding_window_view(x, size, axis=_axis(x.ndim, dim))
    return windows[slicing(windows, _axis(x.ndim, dim), None, None, step)].copy()


@kernel("aten::as_strided_copy.out")
def as_strided(
    x: Array, size: Sequence[int], stride: Sequence[int], offset: int | None, *, out: Out
) -> Result:
    """Element `offset + sum(i * stride)` of the flat input, for every index i."""
    out.check(size)
    places = np.full((), offset or 0, np.int64)
    for n, step in zip(size, stride, strict=True):
        places = places[..., None] + np.arange(n) * step
    if places.size and not 0 <= places.min() <= places.max() < x.size:
        raise IndexOutOfRange(f"elements up to {places.max()} of {x.size}")
    return x.ravel()[places]


@kernel("aten::pixel_shuffle.out")
def pixel_shuffle(x: Array, factor: int) -> Result:
    """Channels become `factor` x `factor` blocks of pixels."""
    *lead, channels, height, width = x.shape
    blocks = x.reshape(*lead, channels // factor**2, factor, factor, height, width)
    n = len(lead)
    order = [*range(n), n, n + 3, n + 1, n + 4, n + 2]
    return blocks.transpose(order).reshape(
        *lead, channels // factor**2, height * factor, width * factor
    )


@kernel("aten::pixel_unshuffle.out")
def pixel_unshuffle(x: Array, factor: int) -> Result:
    """Blocks of `factor` x `factor` pixels become channels."""
    *lead, channels, height, width = x.shape
    blocks = x.reshape(*lead, channels, height // factor, factor, width // factor, factor)
    n = len(lead)
    order = [*range(n), n, n + 2, n + 4, n + 1, n + 3]
    return blocks.transpose(order).reshape(
        *lead, channels * factor**2, height // factor, width // factor
    )


@kernel("aten::constant_pad_nd.out")
def constant_pad(x: Array, pad: Sequence[int], value: Any, *, out: Out) -> Result:
    """`value` around; `pad` has (before, after) from the last dimension on, negative ones crop."""
    pairs = _pairs(x, pad)
    shape = [n + before + after for n, (before, after) in zip(x.shape, pairs, strict=True)]
    result = np.full(out.check(shape), cast(value, x.dtype))
    source = tuple(
        slice(max(-before, 0), n - max(-after, 0))
        for n, (before, after) in zip(x.shape, pairs, strict=True)
    )
    inner = x[source]
    target = tuple(
        slice(max(before, 0), max(before, 0) + n)
        for n, (before, _) in zip(inner.shape, pairs, strict=True)
    )
    result[target] = inner
    return result


def _pad_with(mode: str, name: str) -> None:
    @kernel(*(f"aten::{name}_pad{n}d.out" for n in (1, 2, 3)))
    def pad_edges(x: Array, pad: Sequence[int], *, out: Out) -> Result:
        pairs = _pairs(x, pad)
        if min(pad, default=0) < 0:
            raise ShapeError(f"padding {list(pad)}, sizes must be 0 or more")
        if mode == "reflect" and any(
            max(pair) >= n for n, pair in zip(x.shape, pairs, strict=True) if max(pair)
        ):
            raise ShapeError(f"padding {list(pad)} reflects more than {list(x.shape)} holds")
        out.check([n + sum(pair) for n, pair in zip(x.shape, pairs, strict=True)])
        return np.pad(x, pairs, mode=mode)  # type: ignore[call-overload]


_pad_with("reflect", "reflection")
_pad_with("edge", "replication")


def _pairs(x: Array, pad: Sequence[int]) -> list[tuple[int, int]]:
    """(before, after) of every dimension, from a list that starts at the last one."""
    given = len(pad) // 2
    if len(pad) % 2 or given > x.ndim:
        raise ShapeError(f"{len(pad)} padding sizes for {x.ndim} dimensions")
    pairs = [(pad[2 * i], pad[2 * i + 1]) for i in range(given)]
    return [(0, 0)] * (x.ndim - given) + pairs[::-1]


def _axis(rank: int, dim: int) -> int:
    """`dim` counted from the front; rank 0 counts as 1."""
    if not -max(rank, 1) <= dim < max(rank, 1):
        raise IndexOutOfRange(f"dimension {dim} of {rank}")
    return dim % max(rank, 1)
