"""Stored GGUF blocks to packed weights, on the device and before the first run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..graph.call import Call, TensorRef
from ..graph.dims import ceil_div
from ..graph.lowering import Lowering, Operand, Slice
from ..graph.operator import Operator, operator
from ..graph.values import TensorSpec
from ..quant.ggml import GGMLType
from ..quant.layouts import BITS, LAYOUTS, RECORD_BYTES
from ..quant.repack import repack, supported_type
from .packed_kernels import fitting_width

KINDS = ("", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K")
"""Block types by the kernel's `kind`; 0 are rows of floats."""

CODES_AT = {
    "Q4_0": 2,
    "Q4_1": 4,
    "Q5_0": 6,
    "Q5_1": 8,
    "Q8_0": 2,
    "Q4_K": 16,
    "Q5_K": 48,
    "Q6_K": 0,
}
"""Byte of a block where its codes begin."""

SLICE_UNITS = 128
"""Blocks, or rows of words, that end on a 256-byte boundary of every result."""

SLACK = 256
"""Bytes a slice may begin before its first block, as bindings begin on 256 bytes."""


@dataclass(frozen=True, slots=True)
class _Units:
    """A result in equal units, each made from `source` bytes: what may be cut between."""

    count: int
    source: int
    result: int


@operator("webgpu_py.repack(blocks, type, rows, columns) -> [codes, scales]")
class Repack(Operator):
    """A stored matrix [rows, columns] in the packed layout of its type, `quant.LAYOUTS`.

    Shapes: blocks uint8 of any dims, the tensor's bytes; codes uint32 [rows, W], scales uint32
    [words]. F32, F16 and BF16 have no scales: then codes is the only result (where rows are whole
    words it equals the bytes, which a uint32 constant holds without this operator).
    Done once at build; bit for bit `quant.repack.repack`.
    Errors: UnsupportedModel (type), ShapeError (bytes against rows and columns), DtypeError.
    """

    once: ClassVar[bool] = True

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        blocks = call.tensor("blocks", "uint8")
        stored, rows, columns = self._matrix(call)
        expected = rows * columns // stored.elements * stored.nbytes
        call.check(
            blocks.numel == expected,
            f"{stored.name} [{rows}, {columns}] takes {expected} bytes, blocks has {blocks.numel}",
        )
        layout = LAYOUTS[stored.name]
        specs = [TensorSpec("uint32", (rows, layout.row_words(columns)))]
        if layout.scales != "none":
            specs.append(TensorSpec("uint32", (layout.scale_words(rows, columns),)))
        return specs

    def _matrix(self, call: Call) -> tuple[GGMLType, int, int]:
        stored = supported_type(call.string("type"))
        rows, columns = call.int("rows"), call.int("columns")
        call.check(
            rows > 0 and columns > 0 and columns % stored.elements == 0,
            f"[{rows}, {columns}] is no matrix of {stored.name} blocks of {stored.elements}",
        )
        return stored, rows, columns

    def lower(self, call: Call, out: Lowering) -> None:
        blocks = call.tensor("blocks")
        stored, rows, columns = self._matrix(call)
        layout = LAYOUTS[stored.name]
        if layout.scales == "none":
            units = _Units(rows, columns * BITS[layout.codes] // 8, 4 * layout.row_words(columns))
            self._convert(out, blocks, call.out(), units, {"kind": 0})
            return
        count = rows * columns // stored.elements
        code_bytes = stored.elements * BITS[layout.codes] // 8
        constants = {
            "kind": KINDS.index(stored.name),
            "block_bytes": stored.nbytes,
            "block_words": code_bytes // 4,
            "codes_at": CODES_AT[stored.name],
            "aligned": stored.nbytes % 4 == 0,
        }
        self._convert(out, blocks, call.out(0), _Units(count, stored.nbytes, code_bytes), constants)
        records = _Units(count, stored.nbytes, RECORD_BYTES[layout.scales])
        self._convert(out, blocks, call.out(1), records, {**constants, "records": 1})

    def _convert(
        self,
        out: Lowering,
        blocks: TensorRef,
        result: TensorRef,
        units: _Units,
        constants: dict[str, int],
    ) -> None:
        limit = out.limits.max_storage_buffer_binding_size
        for first, count in _cuts(units, blocks, result, limit):
            source: Operand = blocks
            target: Operand = result
            offset = 0
            if count < units.count:
                start = first * units.source
                offset = start % SLACK
                nbytes = min(count * units.source + offset + 4, blocks.numel - start + offset)
                source = Slice(blocks, start - offset, nbytes)
                target = Slice(result, first * units.result, count * units.result)
            words = ceil_div(count * units.result, 4)
            width = fitting_width(64, words, out.limits)
            out.dispatch(
                "repack",
                {"source": source, "y": target},
                {
                    "words": words,
                    "blocks": count,
                    "offset": offset,
                    "row_bytes": units.source,
                    "row_words": max(1, units.result // 4),
                },
                ceil_div(words, width),
                {**constants, "wg_size": width},
            )

    def reference(self, call: Call, blocks: np.ndarray) -> list[np.ndarray]:  # type: ignore[override]
        stored, rows, columns = self._matrix(call)
        done = repack(stored.name, blocks.reshape(-1), rows, columns)
        return [done.codes] if not done.scales.size else [done.codes, done.scales]


def _cuts(
    units: _Units, blocks: TensorRef, result: TensorRef, limit: int
) -> Iterator[tuple[int, int]]:
    """(first, count) of runs of units whose bindings stay within the limit."""
    if max(blocks.max_spec.nbytes, result.max_spec.nbytes) <= limit:
        yield 0, units.count
        return
    most = (limit - SLACK - 4) // max(units.source, units.result)
    step = max(SLICE_UNITS, most // SLICE_UNITS * SLICE_UNITS)
    for first in range(0, units.count, step):
        yield first, min(step, units.count - first)
