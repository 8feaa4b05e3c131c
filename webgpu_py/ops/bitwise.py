"""Bitwise and, or, not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ..errors import DtypeError
from ..graph.call import Call, TensorRef
from ..graph.dims import broadcast_dims, broadcast_strides, ceil_div
from ..graph.lowering import Lowering, Scratch
from ..graph.operator import Operator, operator
from ..graph.values import TensorSpec
from .boxes import Box, copy_box

INTEGERS = ("bool", "uint8", "int8", "int32")


def _lower_words(
    call: Call,
    out: Lowering,
    code: int,
    a: TensorRef | Scratch,
    b: TensorRef | Scratch | None,
) -> None:
    y = call.out()
    words = ceil_div(y.spec.nbytes, 4)
    width = out.width(256)
    out.dispatch(
        "bitwise",
        {"a": a, "b": b, "y": y},
        {
            "words": words,
            "flip": 0x01010101 if y.dtype == "bool" else 0xFFFFFFFF,
            "last_mask": 0xFFFFFFFF >> (8 * (4 * words - y.spec.nbytes)),
        },
        ceil_div(words, width),
        {"op": code, "wg_size": width},
    )


class _Bitwise(Operator):
    CODE: ClassVar[int]

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        a, b = call.tensor("a", INTEGERS), call.tensor("b", INTEGERS)
        call.check(a.dtype == b.dtype, f"a is {a.dtype}, b is {b.dtype}, must be equal", DtypeError)
        return [TensorSpec(a.dtype, broadcast_dims(call, a, b))]

    def lower(self, call: Call, out: Lowering) -> None:
        y = call.out()
        operands: list[TensorRef | Scratch] = []
        for ref in (call.tensor("a"), call.tensor("b")):
            if ref.numel == y.numel:
                operands.append(ref)
                continue
            whole = out.scratch(y.spec.nbytes)
            copy_box(call, out, y.dtype, ref, whole, Box(y.dims, broadcast_strides(ref, y.dims)))
            operands.append(whole)
        _lower_words(call, out, self.CODE, *operands)


@operator("aten.bitwise_and.Tensor(a, b) -> out")
class BitwiseAnd(_Bitwise):
    """y = a & b.

    Shapes: a and b broadcast right-aligned. dtypes: bool, uint8, int8 or int32, equal.
    Errors: ShapeError (no broadcast), DtypeError.
    """

    CODE = 0

    def reference(self, call: Call, a: np.ndarray, b: np.ndarray) -> Any:  # type: ignore[override]
        return a & b


@operator("aten.bitwise_or.Tensor(a, b) -> out")
class BitwiseOr(_Bitwise):
    """y = a | b; shapes and dtypes as in BitwiseAnd."""

    CODE = 1

    def reference(self, call: Call, a: np.ndarray, b: np.ndarray) -> Any:  # type: ignore[override]
        return a | b


@operator("aten.bitwise_not.default(x) -> out")
class BitwiseNot(Operator):
    """y = ~x, for bool: not x. Any shape; bool, uint8, int8 or int32. Errors: DtypeError."""

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        x = call.tensor("x", INTEGERS)
        return [TensorSpec(x.dtype, x.dims)]

    def lower(self, call: Call, out: Lowering) -> None:
        _lower_words(call, out, 2, call.tensor("x"), None)

    def reference(self, call: Call, x: np.ndarray) -> Any:  # type: ignore[override]
        return ~x
