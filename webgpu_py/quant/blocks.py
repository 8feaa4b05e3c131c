"""GGUF's blocks taken apart: codes in element order, and the scale record of `layouts`.

Each function takes blocks U8 [B, nbytes] and gives codes int8 [B, elements] and records
U8 [B, R]. What a block holds, in bytes (d, m, dmin are float16; nibbles go low before high):

| type | block | code of element j |
|---|---|---|
| Q4_0 | d 2, q 16 | low nibble of q[j], high nibble of q[j-16] |
| Q4_1 | d 2, m 2, q 16 | the same |
| Q5_0 | d 2, h 4, q 16 | the same, bit j of h is the fifth bit; minus 16 |
| Q5_1 | d 2, m 2, h 4, q 16 | the same, without the minus |
| Q8_0 | d 2, q 32 | signed byte q[j] |
| Q4_K | d 2, dmin 2, s 12, q 128 | of 64 elements, low nibbles of 32 bytes, then the high ones |
| Q5_K | d 2, dmin 2, s 12, h 32, q 128 | the same, bit j/32 of h[j%32] is the fifth bit |
| Q6_K | ql 128, qh 64, s 16, d 2 | see `_q6_k` |

The 12 bytes s of a K block hold eight 6-bit scales and eight 6-bit minima, see `_six_bits`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .layouts import U8

I8: TypeAlias = NDArray[np.int8]
Split: TypeAlias = tuple[I8, U8]


def _nibbles(q: U8, run: int) -> U8:
    """Of every `run` bytes the low nibbles, then the high ones: [B, n] to [B, 2n]."""
    runs = q.reshape(len(q), -1, 1, run)
    both = np.concatenate((runs & np.uint8(15), runs >> np.uint8(4)), axis=2)
    return both.reshape(len(q), -1)


def _fifth_bits(h: U8) -> U8:
    """Bit j of four little-endian bytes as 0 or 16, [B, 4] to [B, 32]."""
    return np.unpackbits(h, axis=1, bitorder="little") << np.uint8(4)


def _q4_0(blocks: U8) -> Split:
    return _nibbles(blocks[:, 2:], 16).view(np.int8), blocks[:, :2]


def _q4_1(blocks: U8) -> Split:
    return _nibbles(blocks[:, 4:], 16).view(np.int8), blocks[:, :4]


def _q5_0(blocks: U8) -> Split:
    codes = _nibbles(blocks[:, 6:], 16) | _fifth_bits(blocks[:, 2:6])
    return codes.view(np.int8) - np.int8(16), blocks[:, :2]


def _q5_1(blocks: U8) -> Split:
    codes = _nibbles(blocks[:, 8:], 16) | _fifth_bits(blocks[:, 4:8])
    return codes.view(np.int8), blocks[:, :4]


def _q8_0(blocks: U8) -> Split:
    return blocks[:, 2:].view(np.int8), blocks[:, :2]


def _six_bits(s: U8) -> tuple[U8, U8]:
    """Scales and minima 0..63, both [B, 8], of 12 bytes [B, 12].

    Bytes 0-3 and 4-7 hold scales and minima 0-3 in their low six bits. The low nibbles of bytes
    8-11 are the low bits of scales 4-7, the high nibbles those of minima 4-7; their upper two
    bits are the top bits of bytes 0-3 and 4-7.
    """
    first, second, third = s[:, :4], s[:, 4:8], s[:, 8:]
    four, six, two_up = np.uint8(4), np.uint8(6), np.uint8(63)
    scales = (first & two_up, (third & np.uint8(15)) | ((first >> six) << four))
    minima = (second & two_up, (third >> four) | ((second >> six) << four))
    return np.concatenate(scales, axis=1), np.concatenate(minima, axis=1)


def _k_min_records(blocks: U8) -> U8:
    records = np.empty((len(blocks), 20), np.uint8)
    records[:, :4] = blocks[:, :4]
    records[:, 4::2], records[:, 5::2] = _six_bits(blocks[:, 4:16])
    return records


def _q4_k(blocks: U8) -> Split:
    return _nibbles(blocks[:, 16:], 32).view(np.int8), _k_min_records(blocks)


def _q5_k(blocks: U8) -> Split:
    codes = _nibbles(blocks[:, 48:], 32)
    high = np.unpackbits(blocks[:, 16:48, None], axis=2, bitorder="little")
    codes |= high.transpose(0, 2, 1).reshape(len(blocks), -1) << np.uint8(4)
    return codes.view(np.int8), _k_min_records(blocks)


def _q6_k(blocks: U8) -> Split:
    """Two halves of 128 elements, each four runs of 32.

    Runs 0 to 3 of a half take the low nibbles of ql[0:32], of ql[32:64], then the high nibbles
    of both, and bits 0-1, 2-3, 4-5, 6-7 of qh[0:32] as bits 4 and 5; minus 32.
    """
    count = len(blocks)
    low = _nibbles(blocks[:, :128], 64).reshape(count, 2, 4, 32)
    shifts = np.array([0, 2, 4, 6], np.uint8)[:, None]
    high = (blocks[:, 128:192].reshape(count, 2, 1, 32) >> shifts) & np.uint8(3)
    codes = (low | (high << np.uint8(4))).reshape(count, -1).view(np.int8) - np.int8(32)
    records = np.zeros((count, 20), np.uint8)
    records[:, :2] = blocks[:, 208:]
    records[:, 4:] = blocks[:, 192:208]
    return codes, records


SPLIT: dict[str, Callable[[U8], Split]] = {
    "Q4_0": _q4_0,
    "Q4_1": _q4_1,
    "Q5_0": _q5_0,
    "Q5_1": _q5_1,
    "Q8_0": _q8_0,
    "Q4_K": _q4_k,
    "Q5_K": _q5_k,
    "Q6_K": _q6_k,
}
"""Stored block type to the function that takes its blocks apart."""
