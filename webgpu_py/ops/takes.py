"""Elements chosen by index tensors: the checks and dispatches that indexing operators share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod

import numpy as np

from ..errors import IndexOutOfRange
from ..graph.call import Call, TensorRef
from ..graph.dims import Axis, broadcast_strides, ceil_div, merge_axes, pack_axes
from ..graph.lowering import Lowering, Scratch, Slice
from ..graph.values import itemsize


def check_known(call: Call, index: TensorRef, size: int, wrap: bool = False) -> None:
    """Check an index tensor's values before a run, where the host knows them."""
    host = call.env.host.get(index.id)
    if host is not None:
        check_values(call, host, size, wrap, index.name)


def check_values(
    call: Call, index: np.ndarray, size: int, wrap: bool = False, name: str = "index"
) -> None:
    """IndexOutOfRange with value and position, unless all values are rows of `size`."""
    low = -size if wrap else 0
    flat = index.reshape(-1)
    bad = (flat < low) | (flat >= size)
    if bad.any():
        at = int(bad.argmax())
        raise call.error(
            IndexOutOfRange,
            f"{name}: index {int(flat[at])} at position {at} is out of range, "
            f"allowed are {low} to {size - 1}",
        )


@dataclass(frozen=True, slots=True)
class Take:
    """Which element of x goes where in y, which is row-major over `dims`.

    `x` and `index` are strides over `dims`; an index moves x by `step` elements and must be below
    `size`. A `step` of None says that the index tensor holds checked offsets into x.
    """

    dims: Sequence[int]
    x: Sequence[int]
    index: Sequence[int]
    size: int = 0
    step: int | None = None
    wrap: bool = False


def lower_take(
    call: Call, out: Lowering, x: TensorRef, index: TensorRef | Scratch, take: Take
) -> None:
    """Dispatch y = x at `index`."""
    y = call.out()
    axes = merge_axes(take.dims, take.x, take.index)
    width = out.width(256)
    constants = {"wrap": take.wrap, "offsets": take.step is None, "wg_size": width}
    nbytes = itemsize(x.dtype)
    step = take.step or 0
    for unit in (4, 1) if nbytes == 4 else (16, 4):
        if _divides(axes, step, unit):
            break
    else:
        out.dispatch(
            "take_bytes",
            {"x": x, "index": index, "y": y},
            {"count": y.numel, "size": take.size, "step": step, "axes": pack_axes(call, axes)},
            ceil_div(ceil_div(y.numel, 4), width),
            constants,
        )
        return
    if unit > 1:
        (size, _, still), *others = axes
        axes = [(size // unit, 1, still), *((n, s // unit, k) for n, s, k in others)]
    count = y.numel // unit
    for part, first, here in _parts(out, x, take):
        out.dispatch(
            "take" if unit * nbytes == 4 else "take_vec4",
            {"x": part, "index": index, "y": y},
            {
                "count": count,
                "size": take.size,
                "step": step // unit,
                "first": first,
                "here": here,
                "axes": pack_axes(call, axes),
            },
            ceil_div(count, width),
            {**constants, "unit": unit},
        )


def _divides(axes: Sequence[Axis], step: int, unit: int) -> bool:
    """Whether whole units of that many elements are taken."""
    if unit == 1:
        return True
    if not axes or axes[0][1:] != (1, 0) or axes[0][0] % unit or step % unit:
        return False
    return not any(s % unit for _, s, _ in axes[1:])


def _parts(out: Lowering, x: TensorRef, take: Take) -> Sequence[tuple[TensorRef | Slice, int, int]]:
    """x whole, or where the binding limit is too small ranges of its leading rows."""
    limit = out.limits.max_storage_buffer_binding_size
    row = (take.step or 0) * itemsize(x.dtype)
    leading = x.rank > 0 and take.size == x.dims[0] and row * take.size == x.spec.nbytes
    if x.max_spec.nbytes <= limit or not leading or row > limit:
        return [(x, 0, take.size)]
    whole = out.limits.min_storage_buffer_offset_alignment // gcd(
        row, out.limits.min_storage_buffer_offset_alignment
    )
    rows = limit // row // whole * whole
    if rows == 0:
        return [(x, 0, take.size)]
    return [
        (Slice(x, first * row, here * row), first, here)
        for first in range(0, take.size, rows)
        for here in [min(rows, take.size - first)]
    ]


def lower_offsets(
    call: Call,
    out: Lowering,
    dims: Sequence[int],
    terms: Sequence[tuple[TensorRef, int, int]],
) -> Scratch:
    """Dispatch the sums of index * step over terms (index, size, step), broadcast to `dims`.

    Negative indices wrap.
    """
    count = prod(dims)
    width = out.width(256)
    offsets = out.scratch(4 * count)
    for n, (index, size, step) in enumerate(terms):
        axes = merge_axes(dims, broadcast_strides(index, dims))
        out.dispatch(
            "index_offsets",
            {"index": index, "offsets": offsets},
            {"count": count, "size": size, "step": step, "axes": pack_axes(call, axes)},
            ceil_div(count, width),
            {"adds": n > 0, "wg_size": width},
        )
    return offsets
