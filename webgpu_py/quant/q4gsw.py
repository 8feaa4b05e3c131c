"""Quantize to 4-bit group-wise symmetric codes: `value = (c - 8) * scale`, c in 0..15.

A weight of N rows (output channels, or vocabulary entries) and K columns has G = ceil(K / group)
scales a row; the last group may be shorter. `c = clamp(RNE(w / scale) + 8, 0, 15)`, all in
float32; RNE rounds half to even. Scales:

`"absmax"`: `max|w| / 7.5` over the group, what ExecuTorch's exporters use.
`"least_squares"`: of several scales near `max|w| / 8` (the sign may flip, as codes reach -8 but
only +7), each refined to `<w, q> / <q, q>`, the one with the smallest squared error.

Layouts of the scales, both float32:

`"transposed"`: [G, Npad], Npad = N rounded up to a multiple of 4, zeros in the padding:
`linear_q4gsw`. `"row"`: [N, G]: `embedding_q4gsw` and our own packed layouts.

Weights are read and written in row blocks, so the memory beside input and result stays within a
few MiB whatever their size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError, ShapeError
from .nibbles import U8, NibbleOrder, pack_nibbles, unpack_nibbles
from .snr import Snr

F32: TypeAlias = NDArray[np.float32]
ScaleRule: TypeAlias = Literal["absmax", "least_squares"]
ScaleLayout: TypeAlias = Literal["transposed", "row"]

BLOCK_ELEMENTS = 1 << 16
"""Elements that are looked at together: about 2 MiB of temporaries."""

# Where a group's extreme value may land. -8 uses the whole range of codes; smaller targets clip
# the extreme to spend finer steps on the rest, larger ones leave the outer codes unused.
TARGETS = (*(-8 + step / 4 for step in range(-4, 13)), 7.5, 7.0, 6.5)


class Rows(Protocol):
    """A matrix that gives its rows by slice: an array, a memory map, a decoder of a file."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(N, K)."""
        ...

    def __getitem__(self, rows: slice, /) -> Any:
        """Rows as a floating-point array [R, K]."""
        ...


@dataclass(frozen=True, slots=True)
class Q4Weight:
    """A quantized matrix: `packed` U8 [N, ceil(K/2)], `scales` in `scale_layout`, and its loss."""

    packed: U8
    scales: F32
    k: int
    group_size: int
    nibbles: NibbleOrder
    scale_layout: ScaleLayout
    snr_db: float


def quantize_q4gsw(
    weights: Rows,
    group_size: int = 32,
    *,
    rule: ScaleRule = "absmax",
    nibbles: NibbleOrder = "even_low",
    scale_layout: ScaleLayout = "transposed",
) -> Q4Weight:
    """Quantize floating-point [N, K]; the defaults give what `linear_q4gsw` takes.

    Raises:
        ShapeError: not a non-empty matrix, or a group size outside 8..256 or not a multiple of 8.
        FormatError: a NaN or infinity among the weights; names its row and column.
    """
    if not (8 <= group_size <= 256 and group_size % 8 == 0):
        raise ShapeError(
            f"quantize_q4gsw: group size {group_size} — use a multiple of 8 from 8 to 256"
        )
    n, k = _matrix("quantize_q4gsw", weights)
    groups = -(-k // group_size)
    packed = np.empty((n, (k + 1) // 2), np.uint8)
    transposed = scale_layout == "transposed"
    scales = np.zeros((groups, -(-n // 4) * 4) if transposed else (n, groups), np.float32)
    by_row = scales.T if transposed else scales
    snr = _quantize_into(packed, by_row, weights, group_size, rule, nibbles)
    return Q4Weight(packed, scales, k, group_size, nibbles, scale_layout, snr)


def quantize_qcs4w(weights: Rows) -> Q4Weight:
    """Quantize [N, K] with one scale a row, as `linear_qcs4w` takes it.

    `packed` is in even-high order, `scales` float32 [N]. Raises as `quantize_q4gsw`.
    """
    n, k = _matrix("quantize_qcs4w", weights)
    packed = np.empty((n, (k + 1) // 2), np.uint8)
    scales = np.empty(n, np.float32)
    snr = _quantize_into(packed, scales[:, None], weights, k, "absmax", "even_high")
    return Q4Weight(packed, scales, k, k, "even_high", "row", snr)


def dequantize_q4gsw(
    packed: U8,
    scales: F32,
    k: int,
    group_size: int,
    nibbles: NibbleOrder = "even_low",
    scale_layout: ScaleLayout = "transposed",
) -> F32:
    """Packed codes [N, ceil(K/2)] and scales to float32 [N, K]; one rounding an element.

    Raises:
        ShapeError: the scales are too few for N rows of ceil(K / group_size) groups.
    """
    n, groups = packed.shape[0], -(-k // group_size)
    by_row = scales.T if scale_layout == "transposed" else scales.reshape(n, -1)
    if by_row.shape[0] < n or by_row.shape[1] < groups:
        raise ShapeError(
            f"dequantize_q4gsw: scales {list(scales.shape)} in {scale_layout} layout do not cover "
            f"{n} rows of {groups} groups"
        )
    out = np.empty((n, k), np.float32)
    for rows in row_blocks(n, k):
        codes = unpack_nibbles(packed[rows], k, nibbles)
        out[rows] = dequantize_rows(codes, by_row[rows, :groups], group_size)
    return out


def quantize_rows(
    rows: F32, group_size: int, rule: ScaleRule = "absmax", first_row: int = 0
) -> tuple[U8, F32]:
    """Codes U8 [R, K] and scales float32 [R, G] of a row block; what a GPU kernel must match.

    `first_row` only serves the message about a NaN or infinity.
    """
    count, k = rows.shape
    if not np.isfinite(rows).all():
        row, column = np.argwhere(~np.isfinite(rows))[0]
        raise FormatError(
            f"weight [{first_row + row}, {column}] is {rows[row, column]} — "
            "only finite weights can be quantized"
        )
    groups = -(-k // group_size)
    if groups * group_size != k:
        rows = np.pad(rows, ((0, 0), (0, groups * group_size - k)))
    grouped = rows.reshape(count, groups, group_size)
    scales = _absmax(grouped) if rule == "absmax" else _least_squares(grouped)
    codes = (_round(grouped, scales) + 8).astype(np.uint8)
    return codes.reshape(count, -1)[:, :k], scales


def dequantize_rows(codes: U8, scales: F32, group_size: int) -> F32:
    """`(c - 8) * scale` of unpacked codes [R, K] and scales [R, G]."""
    values = codes.astype(np.float32)
    values -= 8
    values *= np.repeat(scales, group_size, axis=1)[:, : codes.shape[1]]
    return values


def row_blocks(n: int, k: int, elements: int = BLOCK_ELEMENTS) -> Iterator[slice]:
    """Slices that cover n rows of k elements, each at most `elements` (but at least one row)."""
    step = max(1, elements // k)
    for start in range(0, n, step):
        yield slice(start, min(n, start + step))


def _quantize_into(
    packed: U8,
    by_row: F32,
    weights: Rows,
    group_size: int,
    rule: ScaleRule,
    nibbles: NibbleOrder,
) -> float:
    """Fill `packed` [N, Kp] and `by_row` [>= N, G] block by block; the SNR in dB."""
    snr = Snr()
    for rows in row_blocks(*weights.shape):
        block = np.ascontiguousarray(weights[rows], np.float32)
        codes, scales = quantize_rows(block, group_size, rule, first_row=rows.start)
        packed[rows] = pack_nibbles(codes, nibbles)
        by_row[rows] = scales
        snr.add(block, dequantize_rows(codes, scales, group_size))
    return snr.db


def _absmax(grouped: F32) -> F32:
    largest: F32 = np.abs(grouped).max(axis=2)
    return largest / np.float32(7.5)


def _round(grouped: F32, scales: F32) -> F32:
    """Signed codes -8..7 as float32; 0 where the scale is 0."""
    nonzero = scales != 0
    divisor = scales.copy()
    divisor[~nonzero] = 1
    # A group of subnormal numbers may overflow the quotient; the clamp makes that 7 or -8.
    with np.errstate(over="ignore"):
        quotient = grouped / divisor[:, :, None]
    np.rint(quotient, out=quotient)
    np.clip(quotient, -8, 7, out=quotient)
    quotient *= nonzero[:, :, None]
    return quotient


def _least_squares(grouped: F32) -> F32:
    at = np.abs(grouped).argmax(axis=2, keepdims=True)
    extreme: F32 = np.take_along_axis(grouped, at, axis=2)
    # Relative to the extreme value, so that no square of a weight can overflow or vanish.
    unit: F32 = np.divide(grouped, extreme, out=np.zeros_like(grouped), where=extreme != 0)
    best = np.full(unit.shape[:2], 1 / 7.5, np.float32)
    gain = np.zeros_like(best)
    for target in TARGETS:
        codes = _round(unit, np.full_like(best, 1 / target))
        dot = np.einsum("rgk,rgk->rg", unit, codes)
        norm = np.einsum("rgk,rgk->rg", codes, codes)
        # With the scale dot / norm the squared error is |w|^2 - dot^2 / norm.
        scale = dot / np.maximum(norm, np.float32(1))
        better = dot * scale > gain
        best[better] = scale[better]
        gain[better] = (dot * scale)[better]
    return best * extreme[:, :, 0]


def _matrix(who: str, weights: Rows) -> tuple[int, int]:
    if len(weights.shape) != 2 or 0 in weights.shape:
        raise ShapeError(
            f"{who}: weights have dimensions {list(weights.shape)} — pass a non-empty matrix [N, K]"
        )
    n, k = weights.shape
    return n, k
