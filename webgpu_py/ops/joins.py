"""Tensors put into a larger one: cat, constant_pad_nd."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

import numpy as np

from ..errors import DtypeError, UnsupportedOperator
from ..graph.call import Call, TensorRef
from ..graph.dims import normal_dim, strides_of
from ..graph.lowering import Lowering
from ..graph.operator import Operator, operator
from ..graph.values import TensorSpec
from .boxes import Box, copy_box
from .fill import value_bits


@operator("aten.cat.default(tensors, dim=0) -> out")
class Cat(Operator):
    """The tensors one after the other along `dim`.

    Shapes: equal but for `dim`; one dtype, any. Errors: ShapeError, DtypeError.
    """

    def _tensors(self, call: Call) -> list[TensorRef]:
        found = [t for t in call.tensors("tensors") if t is not None]
        call.check(len(found) > 0, "no tensor is given, there must be one")
        return found

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        first, *others = self._tensors(call)
        call.check(first.rank > 0, "tensors have rank 0, cat needs a dim")
        dim = normal_dim(call, call.int("dim"), first.rank)
        around = (*first.dims[:dim], *first.dims[dim + 1 :])
        for t in others:
            call.check(
                t.dtype == first.dtype, f"{t.name} is {t.dtype}, must be {first.dtype}", DtypeError
            )
            call.check(
                t.rank == first.rank and (*t.dims[:dim], *t.dims[dim + 1 :]) == around,
                f"{t.name} is {list(t.dims)}, must be {list(first.dims)} but for dim {dim}",
            )
        length = sum(t.dims[dim] for t in (first, *others))
        return [TensorSpec(first.dtype, (*first.dims[:dim], length, *first.dims[dim + 1 :]))]

    def lower(self, call: Call, out: Lowering) -> None:
        y = call.out()
        dim = normal_dim(call, call.int("dim"), y.rank)
        offset = [0] * y.rank
        for t in self._tensors(call):
            box = Box(y.dims, strides_of(t.dims), dims=t.dims, offset=tuple(offset))
            copy_box(call, out, t.dtype, t, y, box)
            offset[dim] += t.dims[dim]

    def reference(self, call: Call, tensors: list[np.ndarray]) -> Any:  # type: ignore[override]
        return np.concatenate([t for t in tensors if t is not None], axis=call.int("dim"))


@operator("aten.constant_pad_nd.default(x, pad, value=0) -> out")
class ConstantPad(Operator):
    """y = x with `value` around it; negative pads crop.

    pad: (before, after) pairs from the last dim on. Any rank and dtype.
    Errors: ShapeError (an odd number of pads, too many, nothing left of x or y), DtypeError,
    UnsupportedOperator (symbolic pads).
    """

    def _pads(self, call: Call) -> list[tuple[int, int]]:
        x, pad = call.tensor("x"), call.ints("pad")
        call.check(not call.is_symint("pad"), "pad has a symbolic entry", UnsupportedOperator)
        call.check(
            len(pad) % 2 == 0 and len(pad) <= 2 * x.rank,
            f"{len(pad)} pads, must be pairs for at most {x.rank} dims",
        )
        pairs = list(zip(pad[::2], pad[1::2], strict=True))[::-1]
        return [(0, 0)] * (x.rank - len(pairs)) + pairs

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        x, pads = call.tensor("x"), self._pads(call)
        dims = []
        for d, (before, after) in zip(x.dims, pads, strict=True):
            kept = d + min(before, 0) + min(after, 0)
            call.check(kept > 0, f"pads {[before, after]} leave nothing of a dim of size {d}")
            dims.append(d + before + after)
        value = call.float("value")
        call.check(
            x.dtype == "float32" or isfinite(value),
            f"value {value} for {x.dtype}, must be finite",
            DtypeError,
        )
        return [TensorSpec(x.dtype, tuple(dims))]

    def lower(self, call: Call, out: Lowering) -> None:
        x, y = call.tensor("x"), call.out()
        strides, pads = strides_of(x.dims), self._pads(call)
        box = Box(
            y.dims,
            strides,
            base=sum(-min(before, 0) * s for (before, _), s in zip(pads, strides, strict=True)),
            dims=[d + min(b, 0) + min(a, 0) for d, (b, a) in zip(x.dims, pads, strict=True)],
            offset=[max(before, 0) for before, _ in pads],
        )
        copy_box(call, out, x.dtype, x, y, box, value_bits(x.dtype, call.float("value")))

    def reference(self, call: Call, x: np.ndarray) -> Any:  # type: ignore[override]
        pads = self._pads(call)
        kept = x[
            tuple(
                slice(max(-b, 0), d - max(-a, 0)) for d, (b, a) in zip(x.shape, pads, strict=True)
            )
        ]
        around = [(max(b, 0), max(a, 0)) for b, a in pads]
        return np.pad(kept, around, constant_values=np.asarray(call.float("value"), x.dtype))
