"""Which kernel computes y = x . w^T + bias on packed weights, and what it does by the way.

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
from ..graph.limits import Limits
from ..graph.lowering import Lowering, Operand, Slice
from .packed import PackedMatrix, Part
from .rms_norm import lower_rms_norm

Activation = Literal["silu", "gelu_tanh"]
ACTIVATIONS: dict[Activation, int] = {"silu": 1, "gelu_tanh": 2}

FEW_ROWS = 4
FEW_ROWS_SOFTWARE = 16
"""Up to so many rows each reads the weight for itself, which caches serve; more share tiles of it,
which take 32 or 64 rows whether they are there or not."""

MANY_GROUPS = 256
"""Workgroups that keep a large GPU busy."""

GEMV_VECTORS = 1280
"""Most vec4 of x that a workgroup has in its memory."""

NARROW = 2048
"""Columns of a layer that leave a large GPU half empty."""

GEMV_SUMS = 24
"""Bytes of workgroup memory an invocation adds up its sums with."""

REDUCE_NBYTES = 64
"""Workgroup memory of `wgsl/lib/reduce.wgsl` beside a number an invocation."""

GEMM_THREADS = 128
TILE_STORAGE = 16384
GEMM_COLUMNS = 64
GEMM_DEPTH = 32
MOST_SPLITS = 16

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


@dataclass(frozen=True, slots=True)
class Route:
    """A kernel with its constants; how much of y a unit covers, and units a workgroup.

    With `splits`, so many workgroups share the k of a unit and leave a sum each.
    """

    kernel: str
    constants: Mapping[str, float]
    rows: int
    columns: int
    units: int = 1
    splits: int = 1

    def groups(self, m: int, n: int) -> int:
        """Workgroups for m rows and n columns of the product."""
        units = ceil_div(m, self.rows) * ceil_div(n, self.columns)
        return ceil_div(units * self.splits, self.units)


def choose(weight: PackedMatrix, m: int, limits: Limits, software: bool) -> Route:
    """The kernel for m rows of x.

    `packed_gemv`, lanes along k, for few rows, or `packed_lane` on adapters that run on the CPU;
    `packed_gemm`, tiles in workgroup memory, for many; `packed_any` for shapes that are no whole
    vectors.
    """
    if not weight.vectors:
        return _any(weight, m, limits)
    room = limits.max_compute_workgroup_storage_size >= TILE_STORAGE
    tiles = room and limits.workgroup_width(GEMM_THREADS) == GEMM_THREADS
    if m > (FEW_ROWS_SOFTWARE if software else FEW_ROWS) and tiles:
        return _gemm(weight, m, software)
    if software or not room or limits.workgroup_width(64) < 4:
        return _lane(weight, m, limits)
    return _gemv(weight, m, limits)


def _chunks(weight: PackedMatrix) -> dict[str, float]:
    per_word = weight.scale_kind != "none" and weight.span % weight.chunk != 0
    return {"chunk": weight.chunk, "per_word": per_word}


def _gemv(weight: PackedMatrix, m: int, limits: Limits) -> Route:
    # Measured on an H200: few lanes where columns abound, many where a row is long or columns few.
    chunks, sums = weight.k // weight.chunk, m * weight.n
    row = 1 << (chunks - 1).bit_length()
    sums_nbytes = GEMV_SUMS * limits.workgroup_width(256) + REDUCE_NBYTES
    storage = limits.max_compute_workgroup_storage_size - sums_nbytes
    room = min(GEMV_VECTORS, storage // 16) // (weight.chunk // 4 + 1)
    most = max(4, min(1 << (room.bit_length() - 1), row))
    wanted = 128 if chunks >= 256 else 16 if sums >= 16384 else 32 if sums >= 1024 else 64
    lanes = min(limits.workgroup_width(wanted), most)
    width = max(lanes, limits.workgroup_width(128 if lanes <= 32 else 256))
    # A narrow layer is a matter of latency: its workgroups stage their row at once.
    slots = most if sums < NARROW else lanes
    constants = {**_chunks(weight), "lanes": lanes, "slots": slots, "wg_size": width}
    return Route("packed_gemv", constants, 1, 4 * width // lanes)


def _lane(weight: PackedMatrix, m: int, limits: Limits) -> Route:
    # Few invocations a workgroup, so that a narrow layer still occupies every core.
    width = fitting_width(8, m * ceil_div(weight.n, 4), limits)
    return Route("packed_lane", {**_chunks(weight), "wg_size": width}, 1, 4, width)


def _gemm(weight: PackedMatrix, m: int, software: bool) -> Route:
    rows = 64 if m > 32 else 32
    tiles = ceil_div(m, rows) * ceil_div(weight.n, GEMM_COLUMNS)
    # Two turns of the loop are the least that is worth a share of its own.
    splits = min(MANY_GROUPS // tiles, weight.k // (2 * GEMM_DEPTH), MOST_SPLITS)
    constants = {**_chunks(weight), "tall": rows == 64}
    return Route(
        "packed_gemm", constants, rows, GEMM_COLUMNS, splits=1 if software else max(splits, 1)
    )


def _any(weight: PackedMatrix, m: int, limits: Limits) -> Route:
    width = fitting_width(64, ceil_div(m, 4) * weight.n, limits)
    return Route("packed_any", {"wg_size": width}, 4, 1, width)


def fitting_width(wanted: int, invocations: int, limits: Limits) -> int:
    """The wanted workgroup width, or a larger one where the grid would be too small for it."""
    width = limits.workgroup_width(wanted)
    most = limits.max_compute_workgroups_per_dimension**2
    while invocations > most * width and limits.workgroup_width(2 * width) > width:
        width *= 2
    return width


def lower_linear(
    out: Lowering, x: Operand, weight: PackedMatrix, y: TensorRef, extras: Extras | None = None
) -> None:
    """Dispatch y = x . w^T and its extras, in as many parts as the binding limit asks for."""
    e = extras or Extras()
    m = y.numel * e.halves // weight.n
    limit = out.limits.max_storage_buffer_binding_size
    route = choose(weight, m, out.limits, out.software)
    if e.norm is not None and route.kernel != "packed_gemv":
        normed = out.scratch(4 * m * weight.k)
        lower_rms_norm(out, x, e.norm, normed, m, weight.k, e.eps)
        x, e = normed, replace(e, norm=None)
    parts = list(weight.parts(limit))
    blocks = list(_row_blocks(x, y, m, weight, limit))
    if len(blocks) > 1 or 4 * route.splits * m * weight.n > limit:
        route = replace(route, splits=1)
    gate_later = e.gate is not None and (len(parts) > 1 or route.kernel == "packed_any")
    if route.splits == 1 and not gate_later:
        for part in parts:
            for first, rows in blocks:
                _dispatch(out, route, weight, part, rows, _cut(first, rows, m), x, y, e)
        return
    product = out.scratch(4 * route.splits * m * weight.n)
    plain = Extras(norm=e.norm, eps=e.eps)
    for part in parts:
        _dispatch(out, route, weight, part, m, _cut(0, m, m), x, product, plain)
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
) -> None:
    columns = weight.n // e.halves
    bind: dict[str, Operand] = {
        "x": cut(x, weight.k),
        "codes": part.codes,
        "scales": part.scales,
        "bias": e.bias,
        "residual": cut(e.residual, columns),
        "y": cut(y, columns),
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
    if route.kernel == "packed_gemv":
        bind["norm"] = e.norm
        constants["has_norm"] = e.norm is not None
    out.dispatch(route.kernel, bind, params, route.groups(rows, part.count), constants)


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
