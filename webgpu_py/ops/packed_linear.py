"""y = x . w^T + bias on packed weights, and what its kernels do by the way.

What stands before and behind a linear layer of a transformer (a norm of x, a gated activation, a
residual) is done by the same dispatch where that saves one: a dispatch costs a GPU's host 5 us or
more, whatever it does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from ..graph.call import TensorRef
from ..graph.dims import ceil_div
from ..graph.kernel import Number
from ..graph.lowering import Lowering, Operand, Slice
from .packed import PackedMatrix, Part
from .packed_kernels import Route
from .packed_route import FEW_ROWS, choose
from .rms_norm import lower_rms_norm

Activation = Literal["silu", "gelu_tanh"]
ACTIVATIONS: dict[Activation, int] = {"silu": 1, "gelu_tanh": 2}

SCALED_ROWS = {"packed_gemm_matrix": "half_rows", "packed_gemm_int8": "pair_rows"}
"""Kernels that read x in 16 bits, and what makes it so."""

BAKED = ("packed_gemv_dot",)
"""Kernels that are compiled for a layer's shape and few rows: 10 to 25 % less time on an H200. For
many rows it would be 3 to 15 %, for a second of compiling at every new number of rows."""

ROW_BLOCK = 64
"""Rows of float32 that end on a binding's 256-byte boundary."""


@dataclass(frozen=True, slots=True)
class Extras:
    """What a linear layer does beside the product, in this order.

    `norm` [K]: x is divided by its root mean square (of the last dim, plus `eps`) and multiplied
    by it. `bias` [N] is added. `gate`: rows 0 .. N/2 of the weight are a gate, the others what it
    gates: act(gate) * up. `residual`, of y's shape, is added.
    """

    bias: TensorRef | None = None
    norm: TensorRef | None = None
    eps: float = 0.0
    gate: Activation | None = None
    residual: TensorRef | None = None

    @property
    def halves(self) -> int:
        """Rows of the weight for each column of y."""
        return 2 if self.gate else 1


def lower_linear(
    out: Lowering, x: Operand, weight: PackedMatrix, y: TensorRef, extras: Extras | None = None
) -> None:
    """Dispatch y = x . w^T and its extras, in as many parts as the binding limit asks for."""
    e = extras or Extras()
    m = y.numel * e.halves // weight.n
    limit = out.limits.max_storage_buffer_binding_size
    route = choose(weight, m, out.limits, out.software, out.features, out.choices)
    if e.norm is not None and not route.kernel.startswith("packed_gemv"):
        normed = out.scratch(4 * m * weight.k)
        lower_rms_norm(out, x, e.norm, normed, m, weight.k, e.eps)
        x, e = normed, replace(e, norm=None)
    parts = list(weight.parts(limit))
    blocks = list(_row_blocks(x, y, m, weight, limit))
    if route.kernel in SCALED_ROWS and (len(blocks) > 1 or 4 * m * weight.n > limit):
        route = choose(weight, m, out.limits, out.software, frozenset())
    beside: dict[str, Operand] = {}
    if route.kernel in SCALED_ROWS:
        x, beside["row_scales"] = _scaled_rows(out, SCALED_ROWS[route.kernel], x, m, weight.k)
    if len(blocks) > 1 or 4 * route.splits * m * weight.n > limit:
        route = replace(route, splits=1)
    alone = len(parts) == 1 and route.kernel not in ("packed_any", "packed_gemm_int8")
    gate_later = e.gate is not None and not alone
    if route.splits == 1 and not gate_later:
        for part in parts:
            for first, rows in blocks:
                _dispatch(out, route, weight, part, rows, _cut(first, rows, m), x, y, e, beside)
        return
    product = out.scratch(4 * route.splits * m * weight.n)
    plain = Extras(norm=e.norm, eps=e.eps)
    for part in parts:
        _dispatch(out, route, weight, part, m, _cut(0, m, m), x, product, plain, beside)
    width = out.width(64)
    out.dispatch(
        "packed_merge",
        {"product": product, "bias": e.bias, "residual": e.residual, "y": y},
        {
            "count": y.numel,
            "columns": weight.n // e.halves,
            "row": weight.n,
            "splits": route.splits,
            "stride": m * weight.n,
        },
        ceil_div(y.numel, width),
        {
            "gate": ACTIVATIONS[e.gate] if e.gate else 0,
            "has_bias": e.bias is not None,
            "has_residual": e.residual is not None,
            "wg_size": width,
        },
    )


def _scaled_rows(out: Lowering, kernel: str, x: Operand, m: int, k: int) -> tuple[Operand, Operand]:
    """x in 16 bits as a kernel of SCALED_ROWS writes it, and its rows' scales, in scratch."""
    rows, row_scales = out.scratch(2 * m * 64 * ceil_div(k, 64)), out.scratch(4 * m)
    out.dispatch(
        kernel,
        {"x": x, "scaled": rows, "row_scales": row_scales},
        {"rows": m, "width": k},
        m,
        {"wg_size": out.width(128)},
    )
    return rows, row_scales


Cut: TypeAlias = Callable[[Operand, int], Operand]


def _cut(first: int, rows: int, m: int) -> Cut:
    """Rows of an operand of m rows, of a width in float32."""

    def cut(operand: Operand, width: int) -> Operand:
        if rows == m or not isinstance(operand, TensorRef):
            return operand
        return Slice(operand, 4 * first * width, 4 * rows * width)

    return cut


def _dispatch(
    out: Lowering,
    route: Route,
    weight: PackedMatrix,
    part: Part,
    rows: int,
    cut: Cut,
    x: Operand,
    y: Operand,
    e: Extras,
    beside: Mapping[str, Operand],
) -> None:
    columns = weight.n // e.halves
    bind: dict[str, Operand] = {
        "x": cut(x, weight.k),
        "codes": part.codes,
        "scales": part.scales,
        "bias": e.bias,
        "residual": cut(e.residual, columns),
        "y": cut(y, columns),
        **beside,
    }
    params: dict[str, Number] = {
        "m": rows,
        "n": part.count // e.halves,
        "k": weight.k,
        "n_first": part.first,
        "y_row": columns,
        "eps": e.eps,
        "splits": route.splits,
        **part.params(weight),
    }
    constants = {
        **weight.constants(),
        **route.constants,
        "has_bias": e.bias is not None,
        "has_residual": e.residual is not None,
        "gate": ACTIVATIONS[e.gate] if e.gate else 0,
    }
    if route.kernel.startswith("packed_gemv"):
        bind["norm"] = e.norm
        constants["has_norm"] = e.norm is not None
    if route.kernel == "packed_gemv_dot":
        constants["subgroup"] = min(max(out.subgroup, 4), 32)
    groups = route.groups(rows, part.count)
    bake = route.kernel in BAKED and rows <= FEW_ROWS
    out.dispatch(route.kernel, bind, params, groups, constants, bake)


def _row_blocks(
    x: Operand, y: TensorRef, m: int, weight: PackedMatrix, limit: int
) -> Iterator[tuple[int, int]]:
    """(first row, rows) of blocks whose bindings stay within the limit; x in scratch is not cut."""
    sizes = [t.max_spec.nbytes for t in (x, y) if isinstance(t, TensorRef)]
    if len(sizes) < 2 or max(sizes) <= limit:
        yield 0, m
        return
    step = max(limit // (4 * max(weight.n, weight.k)) // ROW_BLOCK * ROW_BLOCK, ROW_BLOCK)
    for first in range(0, m, step):
        yield first, min(step, m - first)
