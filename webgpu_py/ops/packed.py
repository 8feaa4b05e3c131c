"""Packed weights as the kernels see them.

The layouts are those of `quant.layouts` and of the operators `linear_q4gsw`, `linear_qcs4w` and
`embedding_q4gsw`, which differ in strides and nibble order only: one set of kernels serves all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..graph.call import TensorRef
from ..graph.dims import ceil_div
from ..graph.lowering import Operand, Slice
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

SLICE_ROWS = 256
"""Rows of a weight, whatever their bytes, that end on a binding's 256-byte boundary."""


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

    @property
    def scales_beside(self) -> bool:
        """Whether the scales of four neighbouring rows are one vec4."""
        return self.scale_kind == "f32" and self.scale_row == 1 and self.scale_step % 4 == 0

    @property
    def half_scales(self) -> bool:
        """Whether float16 scales are one a chunk of codes, and an even number a row."""
        in_order = self.scale_kind == "f16" and self.scale_step == 1
        return in_order and self.span == self.chunk and self.scale_row % 2 == 0

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
