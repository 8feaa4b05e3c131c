"""Parts of one tensor: slice, select, split."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import IndexOutOfRange
from ..graph.call import Call
from ..graph.dims import ceil_div, normal_dim, strides_of
from ..graph.lowering import Lowering
from ..graph.operator import Operator, operator
from ..graph.values import TensorSpec
from .boxes import Box, copy_box


@operator("aten.slice_copy.Tensor(x, dim=0, start=0, end=9223372036854775807, step=1) -> out")
class Slice(Operator):
    """y = x[.., start:end:step, ..] along `dim`; any dtype.

    Negative bounds count from the end of the live dim, then both are clamped to it. Symbolic
    bounds are read live: they set the length and the start of each run. Until the first run their
    initial value stands for the largest length, where the program declares none.
    Errors: ShapeError (step < 1, an empty slice).
    """

    def _bound(self, call: Call, name: str) -> int:
        x = call.tensor("x")
        size = x.dims[normal_dim(call, call.int("dim"), x.rank)]
        at = call.int(name)
        return min(max(at + size if at < 0 else at, 0), size)

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        x = call.tensor("x")
        call.check(x.rank > 0, "x has rank 0, a slice needs a dim")
        dim, step = normal_dim(call, call.int("dim"), x.rank), call.int("step")
        call.check(step >= 1, f"step is {step}, must be at least 1")
        start, end = self._bound(call, "start"), self._bound(call, "end")
        length = ceil_div(max(end - start, 0), step)
        if call.env.maximal and (call.is_symint("start") or call.is_symint("end")):
            declared = call.declared()
            if declared is not None and len(declared.dims) == x.rank:
                length = declared.dims[dim]
            length = length or ceil_div(x.dims[dim], step)
        call.check(
            length > 0,
            f"slice {call.int('start')}:{call.int('end')} of dim {dim} of {list(x.dims)} is empty",
        )
        return [TensorSpec(x.dtype, (*x.dims[:dim], length, *x.dims[dim + 1 :]))]

    def lower(self, call: Call, out: Lowering) -> None:
        x, y = call.tensor("x"), call.out()
        dim, step = normal_dim(call, call.int("dim"), x.rank), call.int("step")
        strides = strides_of(x.dims)
        at, live = self._bound(call, "start") * strides[dim], None
        if call.is_symint("start"):
            at, live = 0, out.live_value(lambda env: self._bound(call.with_env(env), "start"))
        src = [s * step if k == dim else s for k, s in enumerate(strides)]
        box = Box(y.dims, src, at, live=live, live_step=strides[dim])
        copy_box(call, out, x.dtype, x, y, box)

    def reference(self, call: Call, x: np.ndarray) -> Any:  # type: ignore[override]
        dim = normal_dim(call, call.int("dim"), x.ndim)
        start, end = self._bound(call, "start"), self._bound(call, "end")
        return x[(slice(None),) * dim + (slice(start, end, call.int("step")),)]


@operator("aten.select_copy.int(x, dim, index) -> out")
class Select(Operator):
    """y = x[.., index, ..] along `dim`, which goes away; any dtype.

    A negative index counts from the end of the live dim; a symbolic one is read live.
    Errors: ShapeError (rank 0), IndexOutOfRange.
    """

    def _at(self, call: Call) -> tuple[int, int]:
        x = call.tensor("x")
        call.check(x.rank > 0, "x has rank 0, select needs a dim")
        dim, index = normal_dim(call, call.int("dim"), x.rank), call.int("index")
        size = x.dims[dim]
        call.check(
            -size <= index < size or (call.env.maximal and call.is_symint("index")),
            f"index {index} of dim {dim} of x {list(x.dims)}, allowed are {-size} to {size - 1}",
            IndexOutOfRange,
        )
        return dim, index % size

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        x = call.tensor("x")
        dim, _ = self._at(call)
        return [TensorSpec(x.dtype, (*x.dims[:dim], *x.dims[dim + 1 :]))]

    def lower(self, call: Call, out: Lowering) -> None:
        x, y = call.tensor("x"), call.out()
        dim, index = self._at(call)
        strides = strides_of(x.dims)
        step = strides.pop(dim)
        at, live = index * step, None
        if call.is_symint("index"):
            at, live = 0, out.live_value(lambda env: self._at(call.with_env(env))[1])
        copy_box(call, out, x.dtype, x, y, Box(y.dims, strides, at, live=live, live_step=step))

    def reference(self, call: Call, x: np.ndarray) -> Any:  # type: ignore[override]
        dim, index = self._at(call)
        return x.take(index, axis=dim)


@operator("aten.split_with_sizes_copy.default(x, sizes, dim=0) -> [parts]")
class Split(Operator):
    """One result a size: consecutive parts of x along `dim`; any dtype.

    Live: symbolic sizes are read live. Errors: ShapeError (a size below 1, a sum that is not x's).
    """

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        x, sizes = call.tensor("x"), call.ints("sizes")
        call.check(x.rank > 0, "x has rank 0, a split needs a dim")
        dim = normal_dim(call, call.int("dim"), x.rank)
        if call.env.maximal and call.is_symint("sizes"):
            declared = [call.declared(k) for k in range(len(sizes))]
            sizes = [s if d is None else d.dims[dim] for s, d in zip(sizes, declared, strict=True)]
        else:
            call.check(
                all(s > 0 for s in sizes) and sum(sizes) == x.dims[dim],
                f"sizes {sizes}, must be positive with sum {x.dims[dim]}",
            )
        return [TensorSpec(x.dtype, (*x.dims[:dim], s, *x.dims[dim + 1 :])) for s in sizes]

    def lower(self, call: Call, out: Lowering) -> None:
        x = call.tensor("x")
        dim = normal_dim(call, call.int("dim"), x.rank)
        strides = strides_of(x.dims)
        at = 0
        for k in range(len(call.result_ids)):
            part = call.out(k)
            copy_box(call, out, x.dtype, x, part, Box(part.dims, strides, at * strides[dim]))
            at += part.dims[dim]

    def reference(self, call: Call, x: np.ndarray) -> Any:  # type: ignore[override]
        dim = normal_dim(call, call.int("dim"), x.ndim)
        sizes = [call.out(k).dims[dim] for k in range(len(call.result_ids))]
        return np.split(x, np.cumsum(sizes)[:-1], axis=dim)
