"""Shape arithmetic that operator families share."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import ShapeError
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
