"""Functions of one tensor, element by element: those without parameters, and their kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from ..graph.call import Call
from ..graph.dims import ceil_div
from ..graph.lowering import Lowering
from ..graph.operator import Operator, operator
from ..graph.values import TensorSpec


class Unary(Operator):
    """y = f(x), element by element; NaN stays NaN.

    Shapes: any; y has x's. dtypes: those in DTYPES; y has x's.
    Errors: DtypeError.
    """

    CODE: ClassVar[int]
    DTYPES: ClassVar[tuple[str, ...]] = ("float32",)

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        x = call.tensor("x", self.DTYPES)
        self.parameters(call)
        return [TensorSpec(x.dtype, x.dims)]

    def parameters(self, call: Call) -> tuple[float, float]:
        """The kernel's two parameters, for x's dtype."""
        return 0, 0

    def code(self, call: Call) -> int:
        """The kernel's function."""
        return self.CODE

    def lower(self, call: Call, out: Lowering) -> None:
        x, y = call.tensor("x"), call.out()
        width = out.width(256)
        p, q = self.parameters(call)
        whole = x.dtype == "int32"
        out.dispatch(
            "unary",
            {"x": x, "y": y},
            {
                "numel": y.numel,
                "p": p,
                "q": q,
                "whole_p": int(p) if whole else 0,
                "whole_q": int(q) if whole else 0,
            },
            ceil_div(ceil_div(y.numel, 4), width),
            {"op": self.code(call), "whole": whole, "wg_size": width},
        )

    def reference(self, call: Call, x: np.ndarray) -> Any:  # type: ignore[override]
        return self.formula(call, x.astype(np.int64 if x.dtype == np.int32 else np.float64))

    def formula(self, call: Call, x: np.ndarray) -> Any:
        """The result in float64, or in int64 for integers."""
        raise NotImplementedError


Formula = Callable[[np.ndarray], Any]

_PLAIN: dict[str, tuple[int, Formula]] = {
    "aten.abs.default": (0, np.abs),
    "aten.neg.default": (1, np.negative),
    "aten.exp.default": (2, np.exp),
    "aten.sqrt.default": (3, np.sqrt),
    "aten.rsqrt.default": (4, lambda x: 1 / np.sqrt(x)),
    "aten.sin.default": (5, np.sin),
    "aten.cos.default": (6, np.cos),
    "aten.round.default": (7, np.rint),
    "aten.tanh.default": (8, np.tanh),
    "aten.sigmoid.default": (9, lambda x: np.exp(-np.logaddexp(0, -x))),
    "aten.relu.default": (10, lambda x: np.maximum(x, 0)),
    "aten.hardswish.default": (11, lambda x: np.where(abs(x) < 3, x * (x + 3) / 6, x * (x > 0))),
}


@operator(
    "aten.abs.default(x) -> out",
    "aten.neg.default(x) -> out",
    "aten.relu.default(x) -> out",
)
class Plain(Unary):
    """abs: |x|; neg: -x; relu: max(x, 0). float32 or int32; shapes as in Unary."""

    DTYPES: ClassVar[tuple[str, ...]] = ("float32", "int32")

    def code(self, call: Call) -> int:
        return _PLAIN[self.name][0]

    def formula(self, call: Call, x: np.ndarray) -> Any:
        return _PLAIN[self.name][1](x)


@operator(
    "aten.exp.default(x) -> out",
    "aten.sqrt.default(x) -> out",
    "aten.rsqrt.default(x) -> out",
    "aten.sin.default(x) -> out",
    "aten.cos.default(x) -> out",
    "aten.round.default(x) -> out",
    "aten.tanh.default(x) -> out",
    "aten.sigmoid.default(x) -> out",
    "aten.hardswish.default(x) -> out",
)
class PlainFloat(Plain):
    """exp, sqrt, rsqrt = 1 / sqrt(x), sin, cos, tanh.

    round: half to even; sigmoid: 1 / (1 + exp(-x)); hardswish: x * min(max(x + 3, 0), 6) / 6.
    float32; shapes as in Unary.
    """

    DTYPES = ("float32",)
