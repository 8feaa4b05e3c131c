"""Flat copies: the same bytes, sometimes under other dims. The planner drops most of them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..graph.call import Call
from ..graph.dims import normal_dim
from ..graph.lowering import Lowering
from ..graph.operator import Operator, operator
from ..graph.values import TensorSpec
from .boxes import copy_flat


@operator(
    "aten.clone.default(x, memory_format=None) -> out",
    "aten.alias_copy.default(x) -> out",
    "dim_order_ops._clone_dim_order.default(x, non_blocking=None, dim_order=None) -> out",
)
class FlatCopy(Operator):
    """y = x. Any shape and dtype; tensors are row-major here, so a dim order changes nothing."""

    alias = True

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        x = call.tensor("x")
        return [TensorSpec(x.dtype, self.dims(call))]

    def dims(self, call: Call) -> tuple[int, ...]:
        """The result's dims."""
        return call.tensor("x").dims

    def lower(self, call: Call, out: Lowering) -> None:
        copy_flat(out, call.tensor("x"), call.out())

    def reference(self, call: Call, x: np.ndarray) -> Any:  # type: ignore[override]
        return x


@operator("aten.squeeze_copy.dims(x, dims) -> out")
class Squeeze(FlatCopy):
    """y = x without those of `dims` whose size is 1; negative dims count from the end.

    A live dim stays, also in runs where its size happens to be 1.
    """

    def dims(self, call: Call) -> tuple[int, ...]:
        x = call.tensor("x")
        gone = {normal_dim(call, d, x.rank) for d in call.ints("dims")}
        return tuple(
            d
            for k, (d, most) in enumerate(zip(x.dims, x.max_spec.dims, strict=True))
            if k not in gone or most != 1
        )


@operator("aten.unsqueeze_copy.default(x, dim) -> out")
class Unsqueeze(FlatCopy):
    """y = x with a dim of size 1 inserted before `dim`."""

    def dims(self, call: Call) -> tuple[int, ...]:
        x = call.tensor("x")
        at = normal_dim(call, call.int("dim"), x.rank + 1)
        return (*x.dims[:at], 1, *x.dims[at:])


@operator("aten.view_copy.default(x, sizes) -> out")
class View(FlatCopy):
    """y = x under other dims of the same product; one size may be -1.

    Live: symbolic sizes are read live. Fixed sizes of a live tensor are those at its maximum; then
    the leftmost dim that makes the product right shrinks. Errors: ShapeError.
    """

    def dims(self, call: Call) -> tuple[int, ...]:
        x, sizes, declared = call.tensor("x"), call.ints("sizes"), call.declared()
        if call.env.maximal and call.is_symint("sizes") and declared is not None:
            return declared.dims
        dims = _resolved(sizes, x.numel)
        if dims is not None:
            return dims
        most = declared.dims if declared is not None else _resolved(sizes, x.max_spec.numel)
        for k, d in enumerate(most or ()):
            assert most is not None
            rest = prod(most) // d
            if x.numel % rest == 0 and x.numel // rest <= d:
                return (*most[:k], x.numel // rest, *most[k + 1 :])
        raise call.error(
            ShapeError,
            f"x {list(x.dims)} has {x.numel} elements, sizes {sizes} must have as many "
            "(one of them may be -1)",
        )


def _resolved(sizes: Sequence[int], numel: int) -> tuple[int, ...] | None:
    """Sizes with -1 filled in; None where they don't hold `numel` elements."""
    known = prod(s for s in sizes if s != -1)
    if sizes.count(-1) == 1 and known > 0 and numel % known == 0:
        sizes = [numel // known if s == -1 else s for s in sizes]
    fits = all(s > 0 for s in sizes) and prod(sizes) == numel
    return tuple(sizes) if fits else None
