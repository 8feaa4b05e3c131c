"""Reading and writing by index: embedding, gather, scatter, masks, sorting out.

Indices are checked; a bad one ends in `IndexOutOfRange` with its value and position.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import IndexOutOfRange, ShapeError
from .dtypes import cast
from .kernel import Array, Out, Result, kernel
from .shape import slicing


def checked(index: Array, size: int) -> Result:
    """`index` as int64, every entry inside 0 to `size - 1`."""
    wide = index.astype(np.int64)
    bad = np.flatnonzero((wide < 0) | (wide >= size))
    if bad.size:
        at = int(bad[0])
        raise IndexOutOfRange(f"index {wide.ravel()[at]} at position {at} of 0 to {size - 1}")
    return wide


@kernel("aten::embedding.out")
def embedding(
    weight: Array, indices: Array, padding_idx: int, scale_grad: bool, sparse: bool, *, out: Out
) -> Result:
    """Row `indices[i]` of the table."""
    out.check(indices.shape + weight.shape[1:])
    return weight[checked(indices, len(weight))]


@kernel("aten::index_select.out")
def index_select(x: Array, dim: int, index: Array, *, out: Out) -> Result:
    """Slices `index` of dimension `dim`."""
    if x.ndim == 0:
        checked(index, 1)
        return x.copy()
    taken = list(x.shape)
    taken[dim] = index.size
    out.check(taken)
    return np.take(x, checked(np.atleast_1d(index), x.shape[dim]), axis=dim)


def _places(indices: Sequence[Array | None]) -> tuple[Any, ...]:
    """Optional index tensors as NumPy wants them; missing ones keep their dimension."""
    return tuple(slice(None) if i is None else i for i in indices)


@kernel("aten::index.Tensor_out")
def index(x: Array, indices: Sequence[Array | None], *, out: Out) -> Result:
    """`x[indices]` with index tensors, masks, and None for whole dimensions."""
    given = [i for i in indices if i is not None]
    if all(i.dtype != np.bool_ for i in given):
        picked = np.broadcast_shapes(*(i.shape for i in given))
        kept = [n for at, n in enumerate(x.shape) if at >= len(indices) or indices[at] is None]
        out.check([*picked, *kept])
    return np.array(x[_places(indices)])


@kernel("aten::index_put.out")
def index_put(x: Array, indices: Sequence[Array | None], values: Array, accumulate: bool) -> Result:
    """A copy of `x` with `values` written (or added) at `x[indices]`."""
    result = x.copy()
    if accumulate:
        np.add.at(result, _places(indices), cast(values, x.dtype))
    else:
        result[_places(indices)] = cast(values, x.dtype)
    return result


kernel("aten::index_put_", outs=0)(index_put)


def _grid(index: Array, dim: int) -> list[Result]:
    """Index arrays of every element of `index`, with `index` itself in place of dimension `dim`."""
    grid = list(np.ogrid[tuple(slice(n) for n in index.shape)])
    grid[dim] = index
    return grid


@kernel("aten::gather.out")
def gather(x: Array, dim: int, index: Array, sparse_grad: bool) -> Result:
    """`x[.., index[i, .., j], ..]`: every element of `index` picks along `dim`."""
    if x.ndim == 0:
        checked(index, 1)
        return np.full(index.shape, x)
    return x[tuple(_grid(checked(index, x.shape[dim]), dim))]


def _scattered(x: Array, dim: int, index: Array) -> tuple[Array, tuple[Array, ...]]:
    result = np.atleast_1d(x).copy()
    places = np.atleast_1d(index)
    return result, tuple(_grid(checked(places, result.shape[dim]), dim))


@kernel("aten::scatter.src_out")
def scatter(x: Array, dim: int, index: Array, src: Array) -> Result:
    """A copy of `x` with `src` written where `index` says along `dim`."""
    result, places = _scattered(x, dim, index)
    result[places] = cast(_leading(src, index.shape), x.dtype)
    return result.reshape(x.shape)


@kernel("aten::scatter.value_out")
def scatter_value(x: Array, dim: int, index: Array, value: Any) -> Result:
    """A copy of `x` with `value` where `index` says along `dim`."""
    result, places = _scattered(x, dim, index)
    result[places] = cast(value, x.dtype)
    return result.reshape(x.shape)


@kernel("aten::scatter_add.out")
def scatter_add(x: Array, dim: int, index: Array, src: Array) -> Result:
    """A copy of `x` with `src` added where `index` says along `dim`."""
    result, places = _scattered(x, dim, index)
    np.add.at(result, places, cast(_leading(src, index.shape), x.dtype))
    return result.reshape(x.shape)


def _leading(src: Array, shape: tuple[int, ...]) -> Result:
    """The corner of `src` that a (smaller) index covers."""
    if src.ndim != len(shape) or any(n > have for n, have in zip(shape, src.shape, strict=True)):
        raise ShapeError(f"source {list(src.shape)} is smaller than the index {list(shape)}")
    return np.atleast_1d(src[tuple(slice(n) for n in shape)])


@kernel("aten::select_scatter.out")
def select_scatter(x: Array, src: Array, dim: int, index: int) -> Result:
    """A copy of `x` with slice `index` of dimension `dim` replaced."""
    size = x.shape[dim]
    if not -size <= index < size:
        raise IndexOutOfRange(f"index {index} of dimension {dim}, which has {size}")
    result = x.copy()
    np.moveaxis(result, dim, 0)[index] = cast(src, x.dtype)
    return result


@kernel("aten::slice_scatter.out")
def slice_scatter(
    x: Array, src: Array, dim: int, start: int | None, end: int | None, step: int
) -> Result:
    """A copy of `x` with a slice of dimension `dim` replaced."""
    result = x.copy()
    result[slicing(x, dim, start, end, step)] = cast(src, x.dtype)
    return result


@kernel("aten::masked_select.out")
def masked_select(x: Array, mask: Array) -> Result:
    """The elements where the mask holds, in order."""
    values, chosen = np.broadcast_arrays(x, mask != 0)
    return values[chosen]


@kernel("aten::masked_scatter.out")
def masked_scatter(x: Array, mask: Array, source: Array) -> Result:
    """A copy of `x` with the first elements of `source` where the mask holds."""
    values, chosen = np.broadcast_arrays(x, mask != 0)
    result, count = values.copy(), int(chosen.sum())
    if source.size < count:
        raise ShapeError(f"{source.size} elements for {count} places")
    result[chosen] = cast(source.ravel()[:count], x.dtype)
    return result


@kernel("aten::nonzero.out")
def nonzero(x: Array) -> Result:
    """The index of every element that is not zero, a row each."""
    return np.argwhere(x)


@kernel("aten::topk.values", outs=2)
def topk(x: Array, k: int, dim: int, largest: bool, in_order: bool) -> tuple[Result, Result]:
    """The `k` largest (or smallest) along `dim`, best first, and where they were."""
    values, axis = np.atleast_1d(x), dim if x.ndim else 0
    size = values.shape[axis]
    if not 0 <= k <= size:
        raise ShapeError(f"k is {k}, the dimension has {size}")
    # Sorted from behind, equal elements keep their order once the result is turned around.
    if largest:
        order = size - 1 - np.flip(np.argsort(np.flip(values, axis), axis, kind="stable"), axis)
    else:
        order = np.argsort(values, axis, kind="stable")
    best = np.take(order, np.arange(k), axis=axis)
    picked = np.take_along_axis(values, best, axis)
    shape = x.shape if x.ndim == 0 else picked.shape
    return picked.reshape(shape), best.reshape(shape)


@kernel("aten::repeat_interleave.Tensor_out")
def repeat_interleave(repeats: Array, output_size: int | None, *, out: Out) -> Result:
    """Index i, `repeats[i]` times."""
    if (repeats < 0).any():
        raise ShapeError("repeats must be 0 or more")
    out.check((int(repeats.sum()),))
    return np.repeat(np.arange(len(repeats)), repeats)
