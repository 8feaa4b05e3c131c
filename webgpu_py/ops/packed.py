"""Packed weights as the kernels see them, and which kernel computes y = x . w^T + bias on them.

The layouts are those of `quant.layouts` and of the operators `linear_q4gsw`, `linear_qcs4w` and
`embedding_q4gsw`, which differ in strides and nibble order only: one set of kernels serves all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..graph.call import TensorRef
from ..graph.dims import ceil_div
from ..graph.limits import Limits
from ..graph.lowering import Lowering, Operand, Slice
from ..quant.layouts import RECORD_BYTES, CodeKind, ScaleKind

KernelCodes: TypeAlias = CodeKind | Literal["u4_even_high"]

CODE_KINDS: dict[KernelCodes, int] = {
    "u4": 0,
    "u4_even_high": 1,
    "i8": 2,
    "f16": 3,
    "bf16": 4,
    "f32": 5,
}
SCALE_KINDS: dict[ScaleKind, int] = {
    "none": 0,
    "f16": 1,
    "f16_min": 2,
    "f32": 3,
    "k": 4,
    "k_min": 5,
}
CHUNK: dict[KernelCodes, int] = {
    "u4": 32,
    "u4_even_high": 32,
    "i8": 16,
    "f16": 8,
    "bf16": 8,
    "f32": 4,
}
"""Elements in 16 bytes of codes."""

FEW_ROWS = 16
"""Up to so many rows each reads the weight for itself, which caches serve; more share tiles of it,
which take 32 or 64 rows whether they are there or not."""

GEMM_THREADS = 64
GEMM_STORAGE = 8192
GEMM_COLUMNS = 64

SLICE_ROWS = 256
"""Rows of a weight, whatever their bytes, that end on a binding's 256-byte boundary."""

ROW_BLOCK = 64
"""Rows of float32 that do so."""


@dataclass(frozen=True, slots=True)
class PackedMatrix:
    """A weight of n rows and k columns: tensors, kinds, and strides of both.

    `row_bytes` is a row's share of `codes`; `scale_row` and `scale_step` are a row's and a group's
    stride in `scales`, in records. `scales_by_row` says that rows of scales follow each other, so
    that they can be cut where codes are.
    """

    codes: TensorRef
    scales: TensorRef | None
    n: int
    k: int
    code_kind: KernelCodes
    scale_kind: ScaleKind
    group: int
    zero: int
    row_bytes: int
    scale_row: int
    scale_step: int
    scales_by_row: bool

    @property
    def chunk(self) -> int:
        """Elements in 16 bytes of codes."""
        return CHUNK[self.code_kind]

    @property
    def span(self) -> int:
        """Elements a scale covers, a multiple of 32 where one scale covers the whole row."""
        return self.group if self.group < self.k else ceil_div(self.k, 32) * 32

    @property
    def vectors(self) -> bool:
        """Whether rows are whole 16-byte vectors, and groups whole vectors (or words of u4)."""
        words = self.code_kind.startswith("u4") and not self.scale_kind.endswith("_min")
        unit = 8 if words else self.chunk
        whole = self.k % self.chunk == 0 and self.row_bytes % 16 == 0
        return whole and (self.scale_kind == "none" or self.span % unit == 0)

    def constants(self) -> dict[str, float]:
        """Override constants of `wgsl/lib/packed.wgsl`."""
        return {
            "code_kind": CODE_KINDS[self.code_kind],
            "scale_kind": SCALE_KINDS[self.scale_kind],
            "group": self.span if self.scale_kind != "none" else 32,
            "zero": self.zero,
        }

    def parts(self, limit: int) -> Iterator[Part]:
        """The weight in runs of rows whose bindings stay within `limit` bytes."""
        if self.codes.max_spec.nbytes <= limit and not self._cut_scales(limit):
            yield Part(0, self.n, self.codes, self.scales, 0)
            return
        scale_bytes = self._scale_row_bytes() if self.scales_by_row else 0
        rows = limit // max(self.row_bytes, scale_bytes) // SLICE_ROWS * SLICE_ROWS
        for first in range(0, self.n, max(rows, SLICE_ROWS)):
            count = min(max(rows, SLICE_ROWS), self.n - first)
            codes = Slice(self.codes, first * self.row_bytes, count * self.row_bytes)
            scales: Operand = self.scales
            base = first * self.scale_row
            if self.scales is not None and self.scales_by_row:
                scales = Slice(self.scales, first * scale_bytes, count * scale_bytes)
                base = 0
            yield Part(first, count, codes, scales, base)

    def _scale_row_bytes(self) -> int:
        return self.scale_row * RECORD_BYTES[self.scale_kind]

    def _cut_scales(self, limit: int) -> bool:
        return (
            self.scales is not None and self.scales_by_row and self.scales.max_spec.nbytes > limit
        )


@dataclass(frozen=True, slots=True)
class Part:
    """Rows `first` to `first + count` of a weight, as bindings."""

    first: int
    count: int
    codes: Operand
    scales: Operand
    scale_base: int

    def params(self, weight: PackedMatrix) -> dict[str, int]:
        """The Params fields that `wgsl/lib/packed.wgsl` reads."""
        return {
            "row_bytes": weight.row_bytes,
            "scale_row": weight.scale_row,
            "scale_step": weight.scale_step,
            "scale_base": self.scale_base,
        }


@dataclass(frozen=True, slots=True)
class Route:
    """A kernel with its constants; how much of y a unit covers, and units a workgroup."""

    kernel: str
    constants: Mapping[str, float]
    rows: int
    columns: int
    units: int = 1

    def groups(self, m: int, n: int) -> int:
        """Workgroups for m rows and n columns."""
        return ceil_div(ceil_div(m, self.rows) * ceil_div(n, self.columns), self.units)


def choose(weight: PackedMatrix, m: int, limits: Limits, software: bool) -> Route:
    """The kernel for m rows of x.

    `packed_gemv` for few rows, lanes along k but on adapters that run on the CPU; `packed_gemm`,
    tiles in workgroup memory, for many; `packed_any` for shapes that are no whole vectors.
    """
    if not weight.vectors:
        return _any(weight, m, limits)
    tiles = (
        limits.workgroup_width(GEMM_THREADS) == GEMM_THREADS
        and limits.max_compute_workgroup_storage_size >= GEMM_STORAGE
    )
    return _gemm(weight, m) if m > FEW_ROWS and tiles else _gemv(weight, m, limits, software)


def _per_word(weight: PackedMatrix) -> bool:
    return weight.scale_kind != "none" and weight.span % weight.chunk != 0


def _gemv(weight: PackedMatrix, m: int, limits: Limits, software: bool) -> Route:
    width = limits.workgroup_width(64)
    chunks = weight.k // weight.chunk
    lanes = min(width, max(4, 1 << (chunks - 1).bit_length()))
    if software or width < 4:
        # Few invocations a workgroup, so that a narrow layer still occupies every core.
        lanes = 1
        width = fitting_width(8, m * ceil_div(weight.n, 4), limits)
    constants = {
        "wg_size": width,
        "lanes": lanes,
        "chunk": weight.chunk,
        "per_word": _per_word(weight),
    }
    return Route("packed_gemv", constants, 1, 4 * width // lanes)


def _gemm(weight: PackedMatrix, m: int) -> Route:
    tall = m > 32
    constants = {"chunk": weight.chunk, "per_word": _per_word(weight), "tall": tall}
    return Route("packed_gemm", constants, 64 if tall else 32, GEMM_COLUMNS)


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
    out: Lowering,
    x: Operand,
    weight: PackedMatrix,
    bias: TensorRef | None,
    y: TensorRef,
) -> None:
    """Dispatch y = x . w^T + bias, in as many parts as the binding limit asks for."""
    m = y.numel // weight.n
    limit = out.limits.max_storage_buffer_binding_size
    for part in weight.parts(limit):
        for rows, x_rows, y_rows in _row_blocks(x, y, m, weight, limit):
            route = choose(weight, rows, out.limits, out.software)
            out.dispatch(
                route.kernel,
                {
                    "x": x_rows,
                    "codes": part.codes,
                    "scales": part.scales,
                    "bias": bias,
                    "y": y_rows,
                },
                {
                    "m": rows,
                    "n": part.count,
                    "k": weight.k,
                    "n_first": part.first,
                    "y_row": weight.n,
                    **part.params(weight),
                },
                route.groups(rows, part.count),
                {**weight.constants(), **route.constants, "has_bias": bias is not None},
            )


def _row_blocks(
    x: Operand, y: TensorRef, m: int, weight: PackedMatrix, limit: int
) -> Iterator[tuple[int, Operand, Operand]]:
    """(rows, x, y) in blocks whose bindings stay within the limit; x in scratch is never cut."""
    fits = y.max_spec.nbytes <= limit
    if isinstance(x, TensorRef):
        fits = fits and x.max_spec.nbytes <= limit
    if fits or not isinstance(x, TensorRef):
        yield m, x, y
        return
    wide = 4 * max(weight.n, weight.k)
    step = max(limit // wide // ROW_BLOCK * ROW_BLOCK, ROW_BLOCK)
    for first in range(0, m, step):
        rows = min(step, m - first)
        yield (
            rows,
            Slice(x, 4 * first * weight.k, 4 * rows * weight.k),
            Slice(y, 4 * first * weight.n, 4 * rows * weight.n),
        )
