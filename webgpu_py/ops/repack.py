"""Stored GGUF blocks to packed weights, on the device and before the first run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from ..graph.call import Call
from ..graph.dims import ceil_div
from ..graph.limits import Limits, padded
from ..graph.lowering import Lowering, Operand, Slice
from ..graph.operator import Operator, operator
from ..graph.values import TensorSpec
from ..quant.ggml import GGMLType
from ..quant.layouts import BITS, LAYOUTS, RECORD_BYTES
from ..quant.repack import repack, supported_type
from .packed_kernels import fitting_width

KINDS = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K")
"""Block types by the kernel's `kind`, from 1."""

VECTOR_BYTES = 16
"""Of the codes that an invocation makes."""

WIDTH = 128
"""Of a workgroup: on an H200 one of 64 takes 1.7 to 2.1 times as long, and one of 256 as long."""

SLICE_UNITS = 128
"""Blocks, or rows, of an even number of bytes that end where a binding may begin."""


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
        stored, rows, columns = self._matrix(call)
        layout = LAYOUTS[stored.name]
        code_bytes = stored.elements * BITS[layout.codes] // 8
        if layout.scales == "none":
            self._rows(call, out, rows, columns * code_bytes)
            return
        constants = {
            "kind": KINDS.index(stored.name) + 1,
            "block_bytes": stored.nbytes,
            "vectors": code_bytes // VECTOR_BYTES,
        }
        sizes = (stored.nbytes, code_bytes, RECORD_BYTES[layout.scales])
        count = rows * columns // stored.elements
        for blocks, (source, codes, records) in _cuts(call, count, sizes, out.limits):
            invocations = blocks * constants["vectors"]
            width = fitting_width(WIDTH, invocations, out.limits)
            out.dispatch(
                "repack",
                {"source": source, "wide": source, "codes": codes, "records": records},
                {"blocks": blocks},
                ceil_div(invocations, width),
                {**constants, "wg_size": width},
            )

    def _rows(self, call: Call, out: Lowering, rows: int, row_bytes: int) -> None:
        """Rows of floats, each to whole words."""
        row_words = ceil_div(row_bytes, 4)
        for count, (source, y) in _cuts(call, rows, (row_bytes, 4 * row_words), out.limits):
            words = count * row_words
            width = fitting_width(64, words, out.limits)
            out.dispatch(
                "repack_rows",
                {"source": source, "y": y},
                {"words": words, "row_bytes": row_bytes, "row_words": row_words},
                ceil_div(words, width),
                {"wg_size": width},
            )

    def reference(self, call: Call, blocks: np.ndarray) -> list[np.ndarray]:  # type: ignore[override]
        stored, rows, columns = self._matrix(call)
        done = repack(stored.name, blocks.reshape(-1), rows, columns)
        return [done.codes] if not done.scales.size else [done.codes, done.scales]


def _cuts(
    call: Call, units: int, sizes: Sequence[int], limits: Limits
) -> Iterator[tuple[int, Sequence[Operand]]]:
    """Runs of units whose bindings stay within the limit: how many, and what is stored and made.

    `sizes` are the bytes of a unit in each of those.
    """
    tensors = (call.tensor("blocks"), *map(call.out, range(len(sizes) - 1)))
    limit = limits.max_storage_buffer_binding_size
    if all(padded(t.max_spec.nbytes) <= limit for t in tensors):
        yield units, tensors
        return
    step = max(1, limit // max(sizes) // SLICE_UNITS) * SLICE_UNITS
    for first in range(0, units, step):
        count = min(step, units - first)
        pairs = zip(tensors, sizes, strict=True)
        yield count, [Slice(t, first * nbytes, count * nbytes) for t, nbytes in pairs]
