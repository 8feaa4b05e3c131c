"""Copies that may change the dtype."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import DtypeError
from ..graph.call import Call
from ..graph.dims import ceil_div
from ..graph.lowering import Lowering
from ..graph.operator import Operator, operator
from ..graph.values import TensorSpec
from .boxes import copy_flat
from .scalar_types import result_type

KINDS = {"float32": 0, "int32": 1, "uint8": 2, "int8": 3, "bool": 4}


@operator(
    "dim_order_ops._to_dim_order_copy.default(x, dtype=None, layout=None, device=None, "
    "pin_memory=None, non_blocking=None, dim_order=None) -> out",
    "aten._to_copy.default(x, dtype=None, layout=None, device=None, pin_memory=None, "
    "non_blocking=None, memory_format=None) -> out",
)
class ToCopy(Operator):
    """y = x in another dtype; the same dtype is a flat copy.

    float32 to int32 truncates toward zero and saturates, NaN becomes 0; to a byte it goes through
    int32, which wraps. To bool: x != 0. Any shape. Errors: DtypeError (uint32 to another dtype).
    """

    alias = True

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        x = call.tensor("x")
        dtype = result_type(call, "dtype", x.dtype)
        call.check(
            x.dtype == dtype or (x.dtype in KINDS and dtype in KINDS),
            f"x is {x.dtype}, the result {dtype}; only {', '.join(KINDS)} are converted",
            DtypeError,
        )
        return [TensorSpec(dtype, x.dims)]

    def lower(self, call: Call, out: Lowering) -> None:
        x, y = call.tensor("x"), call.out()
        if x.dtype == y.dtype:
            copy_flat(out, x, y)
            return
        width = out.width(256)
        out.dispatch(
            "cast",
            {"x": x, "y": y},
            {"numel": y.numel},
            ceil_div(ceil_div(y.numel, 4), width),
            {"from_kind": KINDS[x.dtype], "to_kind": KINDS[y.dtype], "wg_size": width},
        )

    def reference(self, call: Call, x: np.ndarray) -> Any:  # type: ignore[override]
        dtype = call.out().dtype
        if dtype in (x.dtype, "float32"):
            return x
        if dtype == "bool":
            return x.astype(bool)
        whole = np.trunc(np.clip(np.nan_to_num(x.astype(np.float64)), -(2**31), 2**31 - 1))
        return whole.astype(np.int64).astype(dtype)
