"""Elements of one tensor in another order or repeated: permute, flip, expand, repeat, shuffle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..graph.call import Call
from ..graph.dims import broadcast_strides, normal_dim, strides_of
from ..graph.lowering import Lowering
from ..graph.operator import Operator, operator
from ..graph.values import TensorSpec
from .boxes import Box, copy_box


class Rearrange(Operator):
    """y's elements are x's at strides of y's coordinates; any dtype, live shapes."""

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        return [TensorSpec(call.tensor("x").dtype, self.dims(call))]

    def dims(self, call: Call) -> tuple[int, ...]:
        """The result's dims."""
        raise NotImplementedError

    def box(self, call: Call) -> Box:
        """Where the result's elements come from."""
        raise NotImplementedError

    def lower(self, call: Call, out: Lowering) -> None:
        x = call.tensor("x")
        copy_box(call, out, x.dtype, x, call.out(), self.box(call))


@operator("aten.permute.default(x, dims) -> out", "aten.permute_copy.default(x, dims) -> out")
class Permute(Rearrange):
    """Dim k of y is dim dims[k] of x; negative dims count from the end.

    Errors: ShapeError (dims is no permutation of x's dims).
    """

    def _order(self, call: Call) -> list[int]:
        x, dims = call.tensor("x"), call.ints("dims")
        order = [normal_dim(call, d, x.rank, "dims entry") for d in dims]
        call.check(
            sorted(order) == list(range(x.rank)),
            f"dims {dims}, must name each of the {x.rank} dims of x once",
        )
        return order

    def dims(self, call: Call) -> tuple[int, ...]:
        x = call.tensor("x").dims
        return tuple(x[k] for k in self._order(call))

    def box(self, call: Call) -> Box:
        strides = strides_of(call.tensor("x").dims)
        return Box(call.out().dims, [strides[k] for k in self._order(call)])

    def reference(self, call: Call, x: np.ndarray) -> Any:  # type: ignore[override]
        return x.transpose(self._order(call))


@operator("aten.flip.default(x, dims) -> out")
class Flip(Rearrange):
    """y = x with each of `dims` backwards; negative dims count from the end.

    Errors: ShapeError (a dim twice).
    """

    def _flipped(self, call: Call) -> set[int]:
        x, dims = call.tensor("x"), call.ints("dims")
        found = {normal_dim(call, d, x.rank, "dims entry") for d in dims}
        call.check(len(found) == len(dims), f"dims {dims} name a dim twice")
        return found

    def dims(self, call: Call) -> tuple[int, ...]:
        self._flipped(call)
        return call.tensor("x").dims

    def box(self, call: Call) -> Box:
        dims, flipped = call.tensor("x").dims, self._flipped(call)
        strides = strides_of(dims)
        signed = [-s if k in flipped else s for k, s in enumerate(strides)]
        base = sum(
            (d - 1) * s for k, (d, s) in enumerate(zip(dims, strides, strict=True)) if k in flipped
        )
        return Box(dims, signed, base)

    def reference(self, call: Call, x: np.ndarray) -> Any:  # type: ignore[override]
        return np.flip(x, tuple(self._flipped(call)))


@operator("aten.expand_copy.default(x, sizes, implicit=False) -> out")
class Expand(Rearrange):
    """y = x broadcast to `sizes`: size-1 dims repeat, leading dims may be new.

    -1 keeps x's size. Live: symbolic sizes are read live; a fixed size that is x's maximum
    follows x. Errors: ShapeError.
    """

    def dims(self, call: Call) -> tuple[int, ...]:
        x, sizes, declared = call.tensor("x"), call.ints("sizes"), call.declared()
        symbolic = call.is_symint("sizes")
        if call.env.maximal and symbolic and declared is not None:
            return declared.dims
        fresh = len(sizes) - x.rank
        call.check(fresh >= 0, f"sizes {sizes} for x {list(x.dims)}, must be at least as many")
        call.check(
            all(s > 0 for s in sizes[:fresh]), f"sizes {sizes}: a new dim must be at least 1"
        )
        dims = sizes[:fresh]
        for size, d, most in zip(sizes[fresh:], x.dims, x.max_spec.dims, strict=True):
            if size == -1 or (size == most and not symbolic):
                dims.append(d)
                continue
            call.check(
                size == d or (d == 1 and size > 0),
                f"sizes {sizes} for x {list(x.dims)}: only a dim of size 1 can become {size}",
            )
            dims.append(size)
        return tuple(dims)

    def box(self, call: Call) -> Box:
        dims = call.out().dims
        return Box(dims, broadcast_strides(call.tensor("x"), dims))

    def reference(self, call: Call, x: np.ndarray) -> Any:  # type: ignore[override]
        return np.broadcast_to(x, call.out().dims)


@operator("aten.repeat.default(x, repeats) -> out")
class Repeat(Rearrange):
    """y = x tiled repeats[k] times along dim k; more repeats than dims prepend dims.

    Errors: ShapeError (fewer repeats than dims, or one below 1).
    """

    def _repeats(self, call: Call) -> list[int]:
        x, repeats = call.tensor("x"), call.ints("repeats")
        call.check(
            len(repeats) >= x.rank and all(r > 0 for r in repeats),
            f"repeats {repeats} for x {list(x.dims)}, must be at least {x.rank} positive numbers",
        )
        return repeats

    def dims(self, call: Call) -> tuple[int, ...]:
        declared = call.declared()
        if call.env.maximal and call.is_symint("repeats") and declared is not None:
            return declared.dims
        repeats = self._repeats(call)
        x = call.tensor("x").dims
        x = (1,) * (len(repeats) - len(x)) + x
        return tuple(r * d for r, d in zip(repeats, x, strict=True))

    def box(self, call: Call) -> Box:
        x, y = call.tensor("x").dims, call.out().dims
        x = (1,) * (len(y) - len(x)) + x
        # Each dim as (repeats, size), the first of which does not move x.
        whole = [n for d, m in zip(x, y, strict=True) for n in (m // d, d)]
        return Box(whole, [n for s in strides_of(x) for n in (0, s)])

    def reference(self, call: Call, x: np.ndarray) -> Any:  # type: ignore[override]
        return np.tile(x, self._repeats(call))


@operator("aten.pixel_shuffle.default(x, factor) -> out")
class PixelShuffle(Rearrange):
    """y[.., c, h, w] = x[.., c * r * r + (h % r) * r + w % r, h // r, w // r].

    Shapes: x [.., C * r * r, H, W] -> [.., C, H * r, W * r], rank 3 or more.
    Errors: ShapeError (rank, r < 1, channels no multiple of r * r).
    """

    def _factor(self, call: Call) -> int:
        x, r = call.tensor("x"), call.int("factor")
        call.check(
            x.rank >= 3 and r >= 1 and x.dims[-3] % (r * r) == 0,
            f"x {list(x.dims)} and factor {r}: must have 3 dims or more, the third last "
            "a multiple of factor * factor",
        )
        return r

    def dims(self, call: Call) -> tuple[int, ...]:
        r = self._factor(call)
        *lead, c, h, w = call.tensor("x").dims
        return (*lead, c // (r * r), h * r, w * r)

    def box(self, call: Call) -> Box:
        r = self._factor(call)
        *lead, c, h, w = call.tensor("x").dims
        *outer, channel, row, column = strides_of((*lead, c, h, w))
        return Box(
            [*lead, c // (r * r), h, r, w, r],
            [*outer, channel * r * r, row, channel * r, column, channel],
        )

    def reference(self, call: Call, x: np.ndarray) -> Any:  # type: ignore[override]
        r, y = self._factor(call), call.out().dims
        column, row = np.arange(y[-1]), np.arange(y[-2])[:, None]
        channel = np.arange(y[-3])[:, None, None] * r * r + row % r * r + column % r
        return x[..., channel, row // r, column // r]
