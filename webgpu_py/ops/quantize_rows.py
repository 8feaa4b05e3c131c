"""Stored float matrices to packed 4-bit or 8-bit weights, once and on the device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from ..errors import UnsupportedModel, UnsupportedOperator
from ..graph.call import Call
from ..graph.dims import ceil_div
from ..graph.lowering import Lowering, Operand, Slice
from ..graph.operator import Operator, operator
from ..graph.values import TensorSpec
from ..quant.float_rows import FLOAT_TYPES, GROUP, RULES, quantize_stored
from ..quant.ggml import BY_NAME
from ..quant.layouts import LAYOUTS, Layout

PARTS = 64
"""Partial sums of a matrix's losses: as many workgroups quantize it."""

LOSSES = 3
"""Sum of squared weights, sum of squared errors, number of bad groups."""

SLICE_ROWS = 128
"""Rows, whatever their length, that end on a 256-byte boundary of the weight and its results."""


@operator(
    "webgpu_py.quantize_rows(weight, type, rows, columns, bits, losses!, index) -> [codes, scales]"
)
class QuantizeRows(Operator):
    """A stored matrix [rows, columns] of F32, F16 or BF16 as codes of 4 or 8 bits, scales float16.

    Shapes: weight uint8 of any dims, the tensor's bytes; codes uint32 [rows, W], scales uint32
    [words], laid out as Q4_0 (bits=4) or Q8_0 (bits=8) in `quant.layouts`. losses float32
    [T, PARTS, 3]: what was lost is added to losses[index], as partial sums of w^2 and of the
    squared errors, and numbers of groups that cannot be quantized (see `quant.float_rows`).
    Done once at build; bit for bit `quant.float_rows.quantize_stored`.
    Errors: UnsupportedModel (type), UnsupportedOperator (bits), ShapeError, DtypeError.
    """

    once: ClassVar[bool] = True

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        weight, losses = call.tensor("weight", "uint8"), call.tensor("losses", "float32")
        stored, bits = call.string("type"), call.int("bits")
        rows, columns = call.int("rows"), call.int("columns")
        call.check(
            stored in FLOAT_TYPES,
            f"a {stored} matrix can't be quantized, only {', '.join(FLOAT_TYPES)}",
            UnsupportedModel,
        )
        call.check(bits in RULES, f"bits={bits}, allowed are 4 and 8", UnsupportedOperator)
        call.check(rows > 0 and columns > 0, f"[{rows}, {columns}] is no matrix")
        expected = rows * columns * BY_NAME[stored].nbytes
        call.check(
            weight.numel == expected,
            f"{stored} [{rows}, {columns}] takes {expected} bytes, weight has {weight.numel}",
        )
        call.check(
            losses.dims[1:] == (PARTS, LOSSES) and 0 <= call.int("index") < losses.dims[0],
            f"losses is {list(losses.dims)}, must be [more than {call.int('index')}, {PARTS}, "
            f"{LOSSES}]",
        )
        layout = self._layout(call)
        return [
            TensorSpec("uint32", (rows, layout.row_words(columns))),
            TensorSpec("uint32", (layout.scale_words(rows, columns),)),
        ]

    def _layout(self, call: Call) -> Layout:
        return LAYOUTS[RULES[call.int("bits")].layout]

    def lower(self, call: Call, out: Lowering) -> None:
        weight, codes, scales = call.tensor("weight"), call.out(0), call.out(1)
        rows, columns, stored = call.int("rows"), call.int("columns"), call.string("type")
        row_groups, row_words = ceil_div(columns, GROUP), codes.dims[1]
        nbytes = columns * BY_NAME[stored].nbytes, 4 * row_words, 2 * row_groups
        limit = out.limits.max_storage_buffer_binding_size
        for first, count in _cuts(rows, max(nbytes), limit):
            parts: list[Operand] = [weight, codes, scales]
            if count < rows:
                parts = [
                    Slice(t, first * n, count * n)
                    for t, n in zip((weight, codes, scales), nbytes, strict=True)
                ]
            width = out.width(256)
            groups = count * row_groups
            workgroups = min(PARTS, ceil_div(groups, 2 * width))
            out.dispatch(
                "quantize_rows",
                {
                    "source": parts[0],
                    "codes": parts[1],
                    "scales": parts[2],
                    "losses": call.tensor("losses"),
                },
                {
                    "groups": groups,
                    "columns": columns,
                    "row_groups": row_groups,
                    "row_words": row_words,
                    "parts": workgroups,
                    "losses_at": call.int("index") * PARTS * LOSSES,
                },
                workgroups,
                {
                    "stored_kind": FLOAT_TYPES.index(stored),
                    "bits": call.int("bits"),
                    "wg_size": width,
                },
            )

    def reference(  # type: ignore[override]
        self, call: Call, weight: np.ndarray, losses: np.ndarray
    ) -> list[np.ndarray]:
        done, snr, bad = quantize_stored(
            call.string("type"),
            weight.reshape(-1),
            call.int("rows"),
            call.int("columns"),
            call.int("bits"),
        )
        losses[call.int("index"), 0] += (snr.signal, snr.noise, bad)
        return [done.codes, done.scales]


def _cuts(rows: int, row_nbytes: int, limit: int) -> Iterator[tuple[int, int]]:
    """(first, count) of runs of rows whose bindings stay within the limit."""
    step = rows
    if rows * row_nbytes > limit:
        step = max(SLICE_ROWS, limit // row_nbytes // SLICE_ROWS * SLICE_ROWS)
    for first in range(0, rows, step):
        yield first, min(step, rows - first)
