"""Reductions over any dimensions: sum, mean, largest, smallest, and where they stand."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, ClassVar

import numpy as np

from ..graph.call import Call, TensorRef
from ..graph.dims import ceil_div, dims8, normal_dim, strides_of
from ..graph.lowering import Lowering
from ..graph.operator import Operator, operator
from ..graph.values import TensorSpec

FEW_ON_CPU = 4096
"""Elements that one lane reduces on an adapter that runs on the CPU."""


def reduced_dims(call: Call, x: TensorRef, given: list[int]) -> list[int]:
    """The dims that are reduced, sorted; none given means all of them."""
    dims = [normal_dim(call, d, x.rank) for d in given] if given else list(range(x.rank))
    call.check(len(set(dims)) == len(dims), f"dims {given} name a dimension twice")
    return sorted(dims)


def kept_shape(x: TensorRef, dims: list[int], keepdim: bool) -> tuple[int, ...]:
    """The result's dims."""
    if keepdim:
        return tuple(1 if i in dims else d for i, d in enumerate(x.dims))
    return tuple(d for i, d in enumerate(x.dims) if i not in dims)


def lanes_of(out: Lowering, count: int, width: int) -> int:
    """Lanes that share a reduction of `count`: one for each element, at most the workgroup.

    On the CPU a barrier costs more than it saves, so one does all; but not of a long one, since
    lavapipe leaves loops after 2^16 turns, those of the loops within them included.
    """
    if out.software and count <= FEW_ON_CPU:
        return 1
    return min(width, 1 << max(count - 1, 0).bit_length())


def dispatch_reduce(out: Lowering, x: TensorRef, y: TensorRef, dims: list[int], op: int) -> None:
    """Dispatch `wgsl/reduce.wgsl` of x over `dims` into y."""
    kept = [i for i in range(x.rank) if i not in dims]
    strides = strides_of(x.dims)
    count = prod(x.dims[i] for i in dims)
    width = out.width(64)
    lanes = lanes_of(out, count, width)
    out.dispatch(
        "reduce",
        {"x": x, "y": y},
        {
            "outputs": y.numel,
            "count": count,
            "kept_dims": dims8([x.dims[i] for i in kept]),
            "kept_strides": _right([strides[i] for i in kept]),
            "reduced_dims": dims8([x.dims[i] for i in dims]),
            "reduced_strides": _right([strides[i] for i in dims]),
        },
        ceil_div(y.numel, width // lanes),
        {"op": op, "lanes": lanes, "wg_size": width},
    )


def _right(strides: list[int]) -> list[int]:
    return [0] * (8 - len(strides)) + strides


class _Reduction(Operator):
    CODES: ClassVar[dict[str, int]]

    def dims(self, call: Call) -> list[int]:
        return reduced_dims(call, call.tensor("x"), call.ints("dims"))

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        x = call.tensor("x", "float32")
        call.check(x.rank <= 8, f"rank {x.rank}, allowed are 0 to 8")
        return [TensorSpec("float32", kept_shape(x, self.dims(call), call.bool("keepdim")))]

    def lower(self, call: Call, out: Lowering) -> None:
        dispatch_reduce(out, call.tensor("x"), call.out(), self.dims(call), self.CODES[self.name])


@operator(
    "aten.sum.dim_IntList(x, dims=[], keepdim=False, dtype=None) -> out",
    "aten.mean.dim(x, dims=[], keepdim=False, dtype=None) -> out",
)
class Sum(_Reduction):
    """Sum or mean over dims (all of them where none are given).

    Shapes: x of rank 0 to 8; reduced dims vanish, or stay as 1 with keepdim. float32.
    Errors: ShapeError (a dim outside the rank or named twice), DtypeError.
    """

    CODES: ClassVar[dict[str, int]] = {"aten.sum.dim_IntList": 0, "aten.mean.dim": 1}

    def reference(self, call: Call, x: np.ndarray) -> Any:  # type: ignore[override]
        dims, wide = tuple(self.dims(call)), x.astype(np.float64)
        total = wide.sum(axis=dims, keepdims=call.bool("keepdim"))
        count = prod(x.shape[d] for d in dims)
        return total / count if self.name == "aten.mean.dim" else total


@operator(
    "aten.amax.default(x, dims=[], keepdim=False) -> out",
    "aten.amin.default(x, dims=[], keepdim=False) -> out",
)
class Extreme(_Reduction):
    """Largest or smallest over dims (all where none are given); NaN where one is among them.

    Shapes: x of rank 0 to 8; reduced dims vanish, or stay as 1 with keepdim. float32.
    Errors: ShapeError (a dim outside the rank or named twice), DtypeError.
    """

    CODES: ClassVar[dict[str, int]] = {"aten.amax.default": 2, "aten.amin.default": 3}

    def reference(self, call: Call, x: np.ndarray) -> Any:  # type: ignore[override]
        pick = np.max if self.name == "aten.amax.default" else np.min
        return pick(x, axis=tuple(self.dims(call)), keepdims=call.bool("keepdim"))


@operator(
    "aten.argmax.default(x, dim=None, keepdim=False) -> out",
    "aten.argmin.default(x, dim=None, keepdim=False) -> out",
)
class ArgExtreme(_Reduction):
    """Index of the largest or smallest along dim, or into the flattened x where dim is None.

    The first of equal ones; the first NaN where there is one.
    Shapes: x of rank 0 to 8; out int32, the dim vanishes or stays as 1 with keepdim.
    Errors: ShapeError (dim outside the rank), DtypeError.
    """

    CODES: ClassVar[dict[str, int]] = {"aten.argmax.default": 4, "aten.argmin.default": 5}

    def dims(self, call: Call) -> list[int]:
        given = [] if call.is_null("dim") else [call.int("dim")]
        return reduced_dims(call, call.tensor("x"), given)

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        (spec,) = super().infer(call)
        return [TensorSpec("int32", spec.dims)]

    def reference(self, call: Call, x: np.ndarray) -> Any:  # type: ignore[override]
        pick = np.argmax if self.name == "aten.argmax.default" else np.argmin
        axis = None if call.is_null("dim") else self.dims(call)[0] if x.ndim else None
        return pick(x, axis=axis, keepdims=call.bool("keepdim"))
