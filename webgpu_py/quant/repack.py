"""Stored tensors to float32 (`dequantize`) and to the packed layouts (`repack`), and back.

`repack` is what the GPU prepack kernels must reproduce bit for bit, and the cpu route. All of it
works in runs of blocks, so the memory beside input and result stays under two MiB.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np
from numpy.typing import NDArray

from ..errors import ShapeError, UnsupportedModel
from .blocks import SPLIT
from .ggml import BY_NAME, SUPPORTED, GGMLType
from .layouts import (
    BITS,
    F32,
    LAYOUTS,
    RECORD_BYTES,
    U8,
    U32,
    Layout,
    PackedWeight,
    apply_scales,
)
from .nibbles import pack_nibbles, unpack_nibbles

RUN_ELEMENTS = 1 << 16


def supported_type(kind: str) -> GGMLType:
    """The record of a tensor type that runs; UnsupportedModel, by name, for any other."""
    if kind not in SUPPORTED:
        raise UnsupportedModel(
            f"tensor type {kind} does not run here — use a file with one of {', '.join(SUPPORTED)}"
        )
    return BY_NAME[kind]


def dequantize(kind: str, data: bytes | U8, dims: tuple[int, ...]) -> F32:
    """The values of a stored tensor as float32 of shape `dims` (last dimension innermost).

    Raises:
        UnsupportedModel: a type outside `SUPPORTED`.
        ShapeError: rows that are not whole blocks, or bytes that do not match the dimensions.
    """
    raw = _stored_bytes(kind, data, dims)
    layout = LAYOUTS[kind]
    if layout.scales == "none":
        return _widen(layout, raw).reshape(dims)
    out = np.empty(dims, np.float32)
    flat = out.reshape(-1, BY_NAME[kind].elements)
    for run, blocks in _runs(kind, raw):
        codes, records = SPLIT[kind](blocks)
        flat[run] = apply_scales(codes, np.ascontiguousarray(records), layout)
    return out


def repack(kind: str, data: bytes | U8, n: int, k: int) -> PackedWeight:
    """A stored matrix of n rows and k columns in its packed layout, bit for bit lossless.

    Raises as `dequantize`.
    """
    raw = _stored_bytes(kind, data, (n, k))
    layout = LAYOUTS[kind]
    if layout.scales == "none":
        rows = raw.reshape(n, -1)
        return PackedWeight(layout, n, k, _words(rows, layout.row_words(k)), np.empty(0, np.uint32))
    count = n * k // BY_NAME[kind].elements
    codes = np.empty((count, BY_NAME[kind].elements * BITS[layout.codes] // 8), np.uint8)
    records = np.zeros((count, RECORD_BYTES[layout.scales]), np.uint8)
    for run, blocks in _runs(kind, raw):
        elements, records[run] = SPLIT[kind](blocks)
        unsigned = elements.view(np.uint8)
        codes[run] = pack_nibbles(unsigned) if layout.codes == "u4" else unsigned
    scales = _words(records.reshape(1, -1), layout.scale_words(n, k))[0]
    return PackedWeight(layout, n, k, codes.view("<u4").reshape(n, -1), scales)


def pack_q4gsw(packed: U8, scales: F32, k: int, group_size: int) -> PackedWeight:
    """Even-low q4gsw codes U8 [N, ceil(k/2)] and row scales float32 [N, G] as a packed weight.

    Where k is a multiple of 8 the result shares the memory of both.
    """
    layout = Layout("u4", "f32", group_size)
    n = len(packed)
    codes = _words(packed, layout.row_words(k), fill=0x88)
    return PackedWeight(layout, n, k, codes, np.ascontiguousarray(scales).view("<u4").reshape(-1))


def unpack(weight: PackedWeight) -> F32:
    """The values of a packed weight, float32 [n, k]; equal to `dequantize` bit for bit."""
    layout, n, k = weight.layout, weight.n, weight.k
    rows = weight.codes.view(np.uint8).reshape(n, -1)
    if layout.scales == "none":
        return _widen(layout, rows[:, : k * BITS[layout.codes] // 8]).reshape(n, k)
    span = layout.record_elements
    per_row = -(-k // span)
    nbytes = n * per_row * RECORD_BYTES[layout.scales]
    records = weight.scales.view(np.uint8)[:nbytes].reshape(n, per_row, -1)
    out = np.empty((n, k), np.float32)
    step = max(1, RUN_ELEMENTS // k)
    for start in range(0, n, step):
        part = rows[start : start + step]
        codes = np.zeros((len(part), per_row * span), np.int8)
        if layout.codes == "u4":
            codes[:, :k] = unpack_nibbles(part[:, : (k + 1) // 2], k)
        else:
            codes[:, :k] = part[:, :k].view(np.int8)
        run = records[start : start + step].reshape(len(part) * per_row, -1)
        values = apply_scales(codes.reshape(-1, span), run, layout)
        out[start : start + step] = values.reshape(len(part), -1)[:, :k]
    return out


def bf16_to_f32(halves: NDArray[np.uint16]) -> F32:
    """bfloat16 bits to float32, exactly: they are the upper half of it."""
    return np.left_shift(halves, 16, dtype=np.uint32).view(np.float32)


def _stored_bytes(kind: str, data: bytes | U8, dims: tuple[int, ...]) -> U8:
    """The tensor's bytes, flat, checked against its type and dimensions."""
    stored = supported_type(kind)
    raw = np.frombuffer(data, np.uint8)
    if dims[-1] % stored.elements:
        raise ShapeError(
            f"{kind} tensor {list(dims)}: rows of {dims[-1]} elements are not whole blocks of "
            f"{stored.elements}"
        )
    expected = prod(dims) // stored.elements * stored.nbytes
    if raw.nbytes != expected:
        raise ShapeError(
            f"{kind} tensor {list(dims)} takes {expected} bytes, {raw.nbytes} were passed"
        )
    return raw


def _runs(kind: str, raw: U8) -> Iterator[tuple[slice, U8]]:
    """Runs of blocks [B, nbytes] with their place among all blocks."""
    stored = BY_NAME[kind]
    blocks = raw.reshape(-1, stored.nbytes)
    step = RUN_ELEMENTS // stored.elements
    for start in range(0, len(blocks), step):
        yield slice(start, start + step), blocks[start : start + step]


def _widen(layout: Layout, raw: U8) -> F32:
    """Float elements of any width to a new float32 array."""
    raw = np.ascontiguousarray(raw)
    if layout.codes == "f32":
        return raw.view("<f4").astype(np.float32)
    if layout.codes == "f16":
        return raw.view("<f2").astype(np.float32)
    return bf16_to_f32(raw.view("<u2"))


def _words(rows: U8, words: int, fill: int = 0) -> U32:
    """Byte rows [R, n] as u32 [R, words], padded with `fill`; a view where nothing is added."""
    missing = words * 4 - rows.shape[1]
    if missing:
        rows = np.pad(rows, ((0, 0), (0, missing)), constant_values=fill)
    return np.ascontiguousarray(rows).view("<u4")
