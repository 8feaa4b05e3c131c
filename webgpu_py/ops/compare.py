"""Comparisons and logic with a bool result."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ..errors import UnsupportedOperator
from ..graph.call import Call, TensorRef
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

KINDS = {"float32": 0, "int32": 1, "bool": 2, "uint8": 2, "int8": 3}
RELATIONS = ("eq", "ne", "lt", "le", "gt", "ge")
_ROUTES = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)
AND, OR, NOT = 6, 7, 8


def lower_compare(
    call: Call,
    out: Lowering,
    code: int,
    a: TensorRef,
    b: TensorRef | None,
    scalar: float = 0,
    live: int | None = None,
) -> None:
    """Dispatch y = a op b, or where b is None y = a op scalar, which `live` names a word of."""
    y = call.out()
    strides = [broadcast_strides(a, y.dims)] + ([broadcast_strides(b, y.dims)] if b else [])
    axes = merge_axes(y.dims, *strides)
    far, splats = reach(axes)
    kind = KINDS[a.dtype]
    width = out.width(256)
    out.dispatch(
        "compare",
        {"a": a, "b": b, "y": y},
        {
            "numel": y.numel,
            "scalar": scalar if kind == 0 else 0,
            "whole_scalar": int(scalar) if kind != 0 else 0,
            "live_word": live or 0,
            "axes": pack_axes(call, axes),
        },
        ceil_div(ceil_div(y.numel, 4), width),
        {
            "op": code,
            "a_kind": kind,
            "b_kind": KINDS[b.dtype] if b else kind,
            "scalar": 0 if b else 1 if live is None else 2,
            "reach": far,
            "a_splat": splats[0],
            "b_splat": b is not None and splats[1],
            "wg_size": width,
        },
    )


@operator(
    "aten.eq.Tensor(a, b) -> out",
    "aten.ne.Tensor(a, b) -> out",
    "aten.lt.Tensor(a, b) -> out",
    "aten.le.Tensor(a, b) -> out",
    "aten.gt.Tensor(a, b) -> out",
    "aten.ge.Tensor(a, b) -> out",
)
class Compare(Operator):
    """y = a op b as bool.

    Shapes: a and b broadcast right-aligned, size-1 dims repeat, rank 0 to 8. dtypes: float32,
    int32, int8, uint8, bool; if one side is float32 the other is converted to it.
    Errors: ShapeError (no broadcast), DtypeError.
    """

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        a, b = call.tensor("a", list(KINDS)), call.tensor("b", list(KINDS))
        return [TensorSpec("bool", broadcast_dims(call, a, b))]

    def _code(self) -> int:
        return RELATIONS.index(self.name.split(".")[1])

    def lower(self, call: Call, out: Lowering) -> None:
        lower_compare(call, out, self._code(), call.tensor("a"), call.tensor("b"))

    def reference(self, call: Call, a: np.ndarray, b: np.ndarray) -> Any:  # type: ignore[override]
        # As in the kernel, an int32 against a float32 is rounded to one.
        dtype = np.float32 if np.float32 in (a.dtype, b.dtype) else np.int32
        return _ROUTES[self._code()](a.astype(dtype), b.astype(dtype))


@operator(
    "aten.eq.Scalar(x, value) -> out",
    "aten.ne.Scalar(x, value) -> out",
    "aten.lt.Scalar(x, value) -> out",
    "aten.le.Scalar(x, value) -> out",
    "aten.gt.Scalar(x, value) -> out",
    "aten.ge.Scalar(x, value) -> out",
)
class CompareScalar(Operator):
    """y = x op value as bool.

    Any shape; float32, int32, int8, uint8, bool. A float32 x sees the value rounded to float32, an
    integer x sees it exactly, fractions included. A symbolic value is read live.
    Errors: DtypeError, UnsupportedOperator (NaN for integers).
    """

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        x = call.tensor("x", list(KINDS))
        value = call.float("value")
        call.check(
            x.dtype == "float32" or not math.isnan(value),
            f"value is NaN for {x.dtype}, must be a number",
            UnsupportedOperator,
        )
        return [TensorSpec("bool", x.dims)]

    def lower(self, call: Call, out: Lowering) -> None:
        x = call.tensor("x")
        code, value = RELATIONS.index(self.name.split(".")[1]), call.float("value")
        if call.is_symint("value"):
            lower_compare(call, out, code, x, None, live=out.live("value"))
            return
        if x.dtype != "float32":
            code, value = _for_integers(code, value)
        lower_compare(call, out, code, x, None, value)

    def reference(self, call: Call, x: np.ndarray) -> Any:  # type: ignore[override]
        route = _ROUTES[RELATIONS.index(self.name.split(".")[1])]
        value = call.float("value")
        if x.dtype == np.float32:
            return route(x, np.float32(value))
        return route(x.astype(np.float64), value)


def _for_integers(code: int, value: float) -> tuple[int, int]:
    """The same relation of an int32 with an int32: a fraction or a far value has a neighbour."""
    name = RELATIONS[code]
    low, high = -(2**31), 2**31 - 1
    if low <= value <= high and value == int(value):
        return code, int(value)
    if name in ("eq", "ne"):
        # Nothing is below `low`, everything is at least that.
        return RELATIONS.index("lt" if name == "eq" else "ge"), low
    if value < low:
        return RELATIONS.index("lt" if name in ("lt", "le") else "ge"), low
    if value > high:
        return RELATIONS.index("le" if name in ("lt", "le") else "gt"), high
    down = math.floor(value)
    return RELATIONS.index("le" if name in ("lt", "le") else "gt"), down


class _Logic(Operator):
    CODE: ClassVar[int]

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        a, b = call.tensor("a", list(KINDS)), call.tensor("b", list(KINDS))
        return [TensorSpec("bool", broadcast_dims(call, a, b))]

    def lower(self, call: Call, out: Lowering) -> None:
        lower_compare(call, out, self.CODE, call.tensor("a"), call.tensor("b"))


@operator("aten.logical_and.default(a, b) -> out")
class LogicalAnd(_Logic):
    """y = (a != 0) and (b != 0) as bool; shapes and dtypes as in Compare."""

    CODE = AND

    def reference(self, call: Call, a: np.ndarray, b: np.ndarray) -> Any:  # type: ignore[override]
        return (a != 0) & (b != 0)


@operator("aten.logical_or.default(a, b) -> out")
class LogicalOr(_Logic):
    """y = (a != 0) or (b != 0) as bool; shapes and dtypes as in Compare."""

    CODE = OR

    def reference(self, call: Call, a: np.ndarray, b: np.ndarray) -> Any:  # type: ignore[override]
        return (a != 0) | (b != 0)


@operator("aten.logical_not.default(x) -> out")
class LogicalNot(Operator):
    """y = (x == 0) as bool; any shape, dtypes as in Compare. Errors: DtypeError."""

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        return [TensorSpec("bool", call.tensor("x", list(KINDS)).dims)]

    def lower(self, call: Call, out: Lowering) -> None:
        lower_compare(call, out, NOT, call.tensor("x"), None)

    def reference(self, call: Call, x: np.ndarray) -> Any:  # type: ignore[override]
        return x == 0
