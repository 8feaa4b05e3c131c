"""Shape arithmetic that operator families share."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import ShapeError, UnsupportedOperator
from .call import Call, TensorRef


def broadcast_dims(call: Call, *refs: TensorRef) -> tuple[int, ...]:
    """Right-aligned broadcast of the operands' live dims; size-1 dims repeat, rank up to 8."""
    rank = max(r.rank for r in refs)
    call.check(rank <= 8, f"rank {rank}, allowed are 0 to 8")
    dims = [1] * rank
    for ref in refs:
        for k, d in enumerate(reversed(ref.dims)):
            at = rank - 1 - k
            if dims[at] == 1:
                dims[at] = d
            elif d not in (1, dims[at]):
                shapes = ", ".join(f"{r.name} {list(r.dims)}" for r in refs)
                raise call.error(ShapeError, f"{shapes} do not broadcast: {d} against {dims[at]}")
    return tuple(dims)


def dims8(dims: Sequence[int]) -> list[int]:
    """Dims right-aligned to 8 entries, leading ones 1: the kernels' form."""
    return [1] * (8 - len(dims)) + list(dims)


def strides_of(dims: Sequence[int]) -> list[int]:
    """Row-major strides, in elements."""
    strides = [1] * len(dims)
    for k in range(len(dims) - 2, -1, -1):
        strides[k] = strides[k + 1] * dims[k + 1]
    return strides


def strides8(dims: Sequence[int]) -> list[int]:
    """Row-major strides right-aligned to 8 entries; size-1 dims get 0, so that they repeat."""
    steps = [0 if d == 1 else s for d, s in zip(dims, strides_of(dims), strict=True)]
    return [0] * (8 - len(dims)) + steps


def normal_dim(call: Call, dim: int, rank: int, name: str = "dim") -> int:
    """A dimension index in 0..rank-1; negative ones count from the end."""
    call.check(
        -max(rank, 1) <= dim < max(rank, 1),
        f"{name}={dim}, allowed are {-max(rank, 1)} to {max(rank, 1) - 1}",
    )
    return dim % max(rank, 1)


def ceil_div(a: int, b: int) -> int:
    """A / b rounded up."""
    return a // b + (a % b != 0)


Axis = tuple[int, ...]
MAX_AXES = 12


def broadcast_strides(ref: TensorRef, dims: Sequence[int]) -> list[int]:
    """Strides of an operand over the broadcast `dims`: 0 where it repeats."""
    steps = [0 if d == 1 else s for d, s in zip(ref.dims, strides_of(ref.dims), strict=True)]
    return [0] * (len(dims) - ref.rank) + steps


def merge_axes(dims: Sequence[int], *strides: Sequence[int]) -> list[Axis]:
    """Axes (size, stride of every operand), innermost first.

    Size-1 dims are dropped, and neighbours that are one run for every operand become one axis, so
    that a kernel divides as seldom as it can.
    """
    axes: list[Axis] = []
    for k in reversed(range(len(dims))):
        size, steps = dims[k], tuple(s[k] for s in strides)
        if size == 1:
            continue
        if axes and all(s == axes[-1][0] * t for s, t in zip(steps, axes[-1][1:], strict=True)):
            axes[-1] = (axes[-1][0] * size, *axes[-1][1:])
        else:
            axes.append((size, *steps))
    return axes


def pack_axes(call: Call, axes: Sequence[Axis]) -> list[int]:
    """Axes as `params.axes` of wgsl/lib/axes.wgsl: up to three strides modulo 2^32, then size."""
    call.check(
        len(axes) <= MAX_AXES,
        f"{len(axes)} separate axes, allowed are {MAX_AXES}; use a tensor of lower rank",
        UnsupportedOperator,
    )
    words: list[int] = []
    for size, *steps in axes:
        words += [s & 0xFFFFFFFF for s in [*steps, 0, 0][:3]] + [size]
    return words


def reach(axes: Sequence[Axis]) -> tuple[int, list[bool]]:
    """How a kernel that makes four elements a thread reads its operands, and which are splats.

    0: element i of each; 1: whole quads, where a splat repeats along the innermost axis; 2: each
    element at a place of its own.
    """
    if not axes:
        return 0, [False] * 3
    inner = axes[0]
    splats = [s == 0 for s in inner[1:]]
    quads = len(axes) == 1 or inner[0] % 4 == 0
    for at, step in enumerate(inner[1:], 1):
        quads &= step == 0 or (step == 1 and all(a[at] % 4 == 0 for a in axes[1:]))
    if not quads:
        return 2, splats
    return int(len(axes) > 1 or any(splats)), splats
