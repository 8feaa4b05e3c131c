"""Binary arithmetic with broadcasting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ..errors import UnsupportedOperator
from ..graph.call import Call
from ..graph.dims import (
    broadcast_dims,
    broadcast_strides,
    ceil_div,
    merge_axes,
    pack_axes,
    reach,
)
from ..graph.lowering import Lowering
from ..graph.operator import Operator, operator
from ..graph.values import TensorSpec

NUMBERS = ("float32", "int32")


class Binary(Operator):
    """y = a op b, element by element.

    Shapes: a and b broadcast right-aligned, size-1 dims repeat, rank 0 to 8. float32, int32 or one
    of each; the result is int32 when both are (wrapping, and 0 where an integer is divided by 0),
    else float32.
    Errors: ShapeError (no broadcast), DtypeError.
    """

    CODE: ClassVar[int]

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        a, b = call.tensor("a", NUMBERS), call.tensor("b", NUMBERS)
        whole = a.dtype == b.dtype == "int32"
        self._alpha(call, whole)
        dtype = "int32" if whole and self._keeps_integers(call) else "float32"
        return [TensorSpec(dtype, broadcast_dims(call, a, b))]

    def _alpha(self, call: Call, whole: bool) -> float:
        return 1

    def _keeps_integers(self, call: Call) -> bool:
        return True

    def _code(self, call: Call) -> int:
        return self.CODE

    def lower(self, call: Call, out: Lowering) -> None:
        a, b, y = call.tensor("a"), call.tensor("b"), call.out()
        axes = merge_axes(y.dims, broadcast_strides(a, y.dims), broadcast_strides(b, y.dims))
        far, splats = reach(axes)
        width = out.width(256)
        alpha = self._alpha(call, y.dtype == "int32")
        out.dispatch(
            "binary",
            {"a": a, "b": b, "y": y},
            {
                "numel": y.numel,
                "alpha": alpha,
                "whole_alpha": int(alpha) if y.dtype == "int32" else 0,
                "axes": pack_axes(call, axes),
            },
            ceil_div(ceil_div(y.numel, 4), width),
            {
                "op": self._code(call),
                "a_int": a.dtype == "int32",
                "b_int": b.dtype == "int32",
                "reach": far,
                "a_splat": splats[0],
                "b_splat": splats[1],
                "wg_size": width,
            },
        )

    def reference(self, call: Call, a: np.ndarray, b: np.ndarray) -> np.ndarray:  # type: ignore[override]
        if call.out().dtype == "int32":
            whole = self.whole(call, a.astype(np.int64), b.astype(np.int64))
            return np.asarray(whole, np.int64).astype(np.int32)
        return np.asarray(self.real(call, a.astype(np.float64), b.astype(np.float64)))

    def real(self, call: Call, a: np.ndarray, b: np.ndarray) -> Any:
        """The result in float64."""
        raise NotImplementedError

    def whole(self, call: Call, a: np.ndarray, b: np.ndarray) -> Any:
        """The result of integers in int64; its low 32 bits count."""
        return self.real(call, a, b)


class _Sum(Binary):
    def _alpha(self, call: Call, whole: bool) -> float:
        return call.int("alpha") if whole else call.float("alpha")


@operator("aten.add.Tensor(a, b, alpha=1) -> out")
class Add(_Sum):
    """y = a + alpha * b; shapes and dtypes as in Binary, an int32 result needs a whole alpha."""

    CODE = 0

    def real(self, call: Call, a: np.ndarray, b: np.ndarray) -> Any:
        return a + self._alpha(call, a.dtype == np.int64) * b


@operator("aten.sub.Tensor(a, b, alpha=1) -> out")
class Sub(_Sum):
    """y = a - alpha * b; shapes and dtypes as in Binary, an int32 result needs a whole alpha."""

    CODE = 1

    def real(self, call: Call, a: np.ndarray, b: np.ndarray) -> Any:
        return a - self._alpha(call, a.dtype == np.int64) * b


@operator("aten.mul.Tensor(a, b) -> out")
class Mul(Binary):
    """y = a * b; shapes and dtypes as in Binary."""

    CODE = 2

    def real(self, call: Call, a: np.ndarray, b: np.ndarray) -> Any:
        return a * b


@operator("aten.div.Tensor(a, b) -> out")
class Div(Binary):
    """y = a / b; shapes as in Binary, the result is float32 for integers too."""

    CODE = 3

    def _keeps_integers(self, call: Call) -> bool:
        return False

    def real(self, call: Call, a: np.ndarray, b: np.ndarray) -> Any:
        return np.true_divide(a, b)


@operator("aten.div.Tensor_mode(a, b, mode=None) -> out")
class DivMode(Binary):
    """y = a / b (mode None), floor(a / b) ("floor") or trunc(a / b) ("trunc").

    The quotient of floats is rounded to float32 before it is floored, as the reference does.
    Shapes and dtypes as in Binary. Errors: UnsupportedOperator for another mode.
    """

    CODES: ClassVar[dict[str, int]] = {"": 3, "floor": 4, "trunc": 5}

    def _mode(self, call: Call) -> str:
        mode = "" if call.is_null("mode") else call.string("mode")
        call.check(
            mode in self.CODES,
            f"mode is {mode!r}, must be 'floor', 'trunc' or None",
            UnsupportedOperator,
        )
        return mode

    def _code(self, call: Call) -> int:
        return self.CODES[self._mode(call)]

    def _keeps_integers(self, call: Call) -> bool:
        return self._mode(call) != ""

    def real(self, call: Call, a: np.ndarray, b: np.ndarray) -> Any:
        mode = self._mode(call)
        quotient = np.true_divide(a, b)
        if mode == "":
            return quotient
        return (np.floor if mode == "floor" else np.trunc)(quotient.astype(np.float32))

    def whole(self, call: Call, a: np.ndarray, b: np.ndarray) -> Any:
        safe = np.where(b == 0, 1, b)
        down = a // safe
        if self._mode(call) == "trunc":
            down += (down < 0) & (down * safe != a)
        return np.where(b == 0, 0, down)


@operator("aten.minimum.default(a, b) -> out")
class Minimum(Binary):
    """y = min(a, b), NaN where either is; shapes and dtypes as in Binary."""

    CODE = 6

    def real(self, call: Call, a: np.ndarray, b: np.ndarray) -> Any:
        return np.minimum(a, b)


@operator("aten.pow.Tensor_Tensor(a, b) -> out")
class Pow(Binary):
    """y = a ^ b: NaN for a < 0 with a fractional b; shapes and dtypes as in Binary.

    An integer to a negative integer power is 0, or ±1 where the base is.
    """

    CODE = 7

    def real(self, call: Call, a: np.ndarray, b: np.ndarray) -> Any:
        return np.power(a, b)

    def whole(self, call: Call, a: np.ndarray, b: np.ndarray) -> Any:
        positive = np.power(a.astype(np.int32), np.maximum(b, 0).astype(np.int32))
        unit = np.where(b % 2 == 0, 1, a)
        return np.where(b >= 0, positive, np.where(abs(a) == 1, unit, 0))
