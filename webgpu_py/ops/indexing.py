"""Lookups by index tensors: embedding, index_select, gather, index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import DtypeError, UnsupportedOperator
from ..graph.call import Call, TensorRef
from ..graph.dims import broadcast_dims, normal_dim, strides_of
from ..graph.lowering import Lowering
from ..graph.operator import Operator, operator
from ..graph.values import TensorSpec
from .takes import Take, check_known, check_values, lower_offsets, lower_take


@operator(
    "aten.embedding.default(weight, indices, padding_idx=-1, scale_grad=False, sparse=False) -> out"
)
class Embedding(Operator):
    """y[.., :] = weight[indices[..], :].

    Shapes: weight [V, D], indices any, y = indices' + [D]. weight any dtype, indices int32.
    A table above the binding limit is read in parts.
    Errors: ShapeError, DtypeError, IndexOutOfRange (an index outside 0..V-1).
    """

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        weight, indices = call.tensor("weight"), call.tensor("indices", "int32")
        call.check(weight.rank == 2, f"weight {list(weight.dims)}, must be [rows, width]")
        check_known(call, indices, weight.dims[0])
        return [TensorSpec(weight.dtype, (*indices.dims, weight.dims[1]))]

    def lower(self, call: Call, out: Lowering) -> None:
        weight, indices = call.tensor("weight"), call.tensor("indices")
        rows, width = weight.dims
        dims = (indices.numel, width)
        lower_take(call, out, weight, indices, Take(dims, (0, 1), (1, 0), rows, width))

    def reference(self, call: Call, weight: np.ndarray, indices: np.ndarray) -> Any:  # type: ignore[override]
        check_values(call, indices, len(weight), name="indices")
        return weight[indices]


@operator("aten.index_select.default(x, dim, index) -> out")
class IndexSelect(Operator):
    """y[.., j, ..] = x[.., index[j], ..] along `dim`.

    Shapes: x any rank above 0, index rank 0 or 1; any dtype, index int32.
    Errors: ShapeError, DtypeError, IndexOutOfRange (an index outside the dim).
    """

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        x, index = call.tensor("x"), call.tensor("index", "int32")
        call.check(x.rank > 0, "x has rank 0, must have a dim to select from")
        call.check(index.rank <= 1, f"index {list(index.dims)}, must have rank 0 or 1")
        dim = normal_dim(call, call.int("dim"), x.rank)
        check_known(call, index, x.dims[dim])
        return [TensorSpec(x.dtype, (*x.dims[:dim], index.numel, *x.dims[dim + 1 :]))]

    def lower(self, call: Call, out: Lowering) -> None:
        x, index, y = call.tensor("x"), call.tensor("index"), call.out()
        dim = normal_dim(call, call.int("dim"), x.rank)
        strides = strides_of(x.dims)
        still = [0 if k == dim else s for k, s in enumerate(strides)]
        moves = [int(k == dim) for k in range(x.rank)]
        lower_take(call, out, x, index, Take(y.dims, still, moves, x.dims[dim], strides[dim]))

    def reference(self, call: Call, x: np.ndarray, index: np.ndarray) -> Any:  # type: ignore[override]
        dim = normal_dim(call, call.int("dim"), x.ndim)
        check_values(call, index, x.shape[dim])
        return np.take(x, index.reshape(-1), dim)


@operator("aten.gather.default(x, dim, index, sparse_grad=False) -> out")
class Gather(Operator):
    """y[i, .., j] = x at the same coordinates but index[i, .., j] along `dim`.

    Shapes: index has x's rank and nowhere but along `dim` more elements; y has its shape.
    Any dtype, index int32. Errors: ShapeError, DtypeError, IndexOutOfRange.
    """

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        x, index = call.tensor("x"), call.tensor("index", "int32")
        dim = normal_dim(call, call.int("dim"), x.rank)
        fits = x.rank == index.rank and all(
            i <= d or k == dim for k, (i, d) in enumerate(zip(index.dims, x.dims, strict=True))
        )
        call.check(
            fits,
            f"index {list(index.dims)} for x {list(x.dims)}, must have its rank and, but for "
            f"dim {dim}, no more elements",
        )
        check_known(call, index, x.dims[dim] if x.rank else 1)
        return [TensorSpec(x.dtype, index.dims)]

    def lower(self, call: Call, out: Lowering) -> None:
        x, index = call.tensor("x"), call.tensor("index")
        dim = normal_dim(call, call.int("dim"), x.rank)
        strides = strides_of(x.dims)
        still = [0 if k == dim else s for k, s in enumerate(strides)]
        size, step = (x.dims[dim], strides[dim]) if x.rank else (1, 1)
        lower_take(call, out, x, index, Take(index.dims, still, strides_of(index.dims), size, step))

    def reference(self, call: Call, x: np.ndarray, index: np.ndarray) -> Any:  # type: ignore[override]
        dim = normal_dim(call, call.int("dim"), x.ndim)
        check_values(call, index, x.shape[dim] if x.ndim else 1)
        if x.ndim == 0:
            return x
        kept = x[tuple(slice(n) if k != dim else slice(None) for k, n in enumerate(index.shape))]
        return np.take_along_axis(kept, index, dim)


@operator("aten.index.Tensor(x, indices) -> out")
class Index(Operator):
    """y = x[indices]: a list with an index tensor, or None for a whole dim, for each leading dim.

    Index tensors broadcast; their dims stand where the first of them is, or in front when a None
    is between them. Negative indices wrap. Any dtype, indices int32.
    Errors: ShapeError, DtypeError, UnsupportedOperator (masks), IndexOutOfRange.
    """

    def _indices(self, call: Call) -> dict[int, TensorRef]:
        """Index tensors by the dim that they select from."""
        x, found = call.tensor("x"), call.tensors("indices")
        call.check(
            len(found) <= x.rank, f"{len(found)} indices for x {list(x.dims)}, at most {x.rank}"
        )
        tensors = {k: t for k, t in enumerate(found) if t is not None}
        call.check(bool(tensors), "no index tensor is given, there must be one")
        for t in tensors.values():
            call.check(
                t.dtype not in ("bool", "uint8"),
                f"{t.name} is a mask ({t.dtype}), which has no shape before the run; "
                "use int32 indices",
                UnsupportedOperator,
            )
            call.check(t.dtype == "int32", f"{t.name} is {t.dtype}, must be int32", DtypeError)
        return tensors

    def _layout(
        self, call: Call, tensors: dict[int, TensorRef]
    ) -> tuple[int, tuple[int, ...], list[int]]:
        """Where the index dims stand in y, what they are, and the dims of x that stay whole."""
        x = call.tensor("x")
        whole = [k for k in range(x.rank) if k not in tensors]
        first, last = min(tensors), max(tensors)
        at = first if last - first == len(tensors) - 1 else 0
        return at, broadcast_dims(call, *tensors.values()), whole

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        x, tensors = call.tensor("x"), self._indices(call)
        at, dims, whole = self._layout(call, tensors)
        for k, t in tensors.items():
            check_known(call, t, x.dims[k], wrap=True)
        kept = [x.dims[k] for k in whole]
        return [TensorSpec(x.dtype, (*kept[:at], *dims, *kept[at:]))]

    def lower(self, call: Call, out: Lowering) -> None:
        x, y, tensors = call.tensor("x"), call.out(), self._indices(call)
        at, dims, whole = self._layout(call, tensors)
        strides = strides_of(x.dims)
        kept = [strides[k] for k in whole]
        still = [*kept[:at], *[0] * len(dims), *kept[at:]]
        moves = [*[0] * at, *strides_of(dims), *[0] * (len(kept) - at)]
        if len(tensors) == 1:
            ((k, index),) = tensors.items()
            take = Take(y.dims, still, moves, x.dims[k], strides[k], wrap=True)
            lower_take(call, out, x, index, take)
            return
        terms = [(t, x.dims[k], strides[k]) for k, t in tensors.items()]
        offsets = lower_offsets(call, out, dims, terms)
        lower_take(call, out, x, offsets, Take(y.dims, still, moves))

    def reference(self, call: Call, x: np.ndarray, indices: list[np.ndarray | None]) -> Any:  # type: ignore[override]
        for k, (t, size) in enumerate(zip(indices, x.shape, strict=False)):
            if t is not None:
                check_values(call, t, size, wrap=True, name=f"indices[{k}]")
        return x[tuple(slice(None) if t is None else t for t in indices)]
