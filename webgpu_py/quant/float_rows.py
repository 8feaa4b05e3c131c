"""Stored float rows to 4-bit or 8-bit codes with a float16 scale for every 32 elements of a row.

    4 bits: scale = float16(e / -8), q = clamp(RNE(w / scale), -8, 7)
    8 bits: scale = float16(|e| / 127), q = clamp(RNE(w / scale), -128, 127)

and value = q * scale, where e is the weight of the largest magnitude, of equal ones the first. With
four bits the scale takes its sign, as there is a code for -8 and none for 8: that is worth 0.85 dB.
The quotients are float32 quotients, both conversions round to nearest even, and a group whose
scale rounds to 0 has 0, not -0, and only codes of value 0. The results lie as those of the GGUF
types Q4_0 and Q8_0 do (`quant.layouts`); the last group of a row may be shorter.

A group with a NaN, an infinity or a scale beyond float16 is bad: it is counted and set to 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .layouts import F32, LAYOUTS, U8, PackedWeight
from .nibbles import pack_nibbles
from .q4gsw import row_blocks
from .repack import dequantize
from .snr import Snr

GROUP = 32
FLOAT_TYPES = ("F32", "F16", "BF16")
"""What can be quantized, in the order of the kernel's `stored_kind`."""


@dataclass(frozen=True, slots=True)
class Rule:
    """How many bits become what: the packed layout's type, and the range of codes.

    `steps` is the extreme weight in steps of the scale, negative where the scale takes its sign.
    """

    layout: str
    steps: float
    lowest: int
    highest: int


RULES = {4: Rule("Q4_0", -8.0, -8, 7), 8: Rule("Q8_0", 127.0, -128, 127)}


def quantize_stored(
    stored: str, data: bytes | U8, n: int, k: int, bits: int
) -> tuple[PackedWeight, Snr, int]:
    """A stored matrix of n rows and k columns, quantized; what was lost; and its bad groups.

    Raises:
        UnsupportedModel, ShapeError: as `dequantize`.
    """
    rule, groups = RULES[bits], -(-k // GROUP)
    layout = LAYOUTS[rule.layout]
    raw = np.frombuffer(data, np.uint8)
    row_nbytes = raw.nbytes // n
    codes = np.empty((n, layout.row_words(k)), np.uint32)
    scales = np.zeros(n * groups + n * groups % 2, np.float16)
    snr, bad = Snr(), 0
    for rows in row_blocks(n, k):
        part = raw[rows.start * row_nbytes : rows.stop * row_nbytes]
        exact = dequantize(stored, part, (rows.stop - rows.start, k))
        steps, found, wrong = _rows(exact, rule)
        scales[rows.start * groups : rows.stop * groups] = found.reshape(-1)
        codes[rows] = _packed(steps[:, :k], rule, codes.shape[1])
        with np.errstate(invalid="ignore"):
            snr.add(exact, (steps * np.repeat(found.astype(np.float32), GROUP, axis=1))[:, :k])
        bad += wrong
    return PackedWeight(layout, n, k, codes, scales.view(np.uint32)), snr, bad


def _rows(exact: F32, rule: Rule) -> tuple[F32, np.ndarray, int]:
    """Signed codes as float32 [R, G * GROUP], scales float16 [R, G], and the number of bad ones."""
    padded = np.pad(exact, ((0, 0), (0, -exact.shape[1] % GROUP)))
    grouped = padded.reshape(len(exact), -1, GROUP)
    with np.errstate(all="ignore"):
        at = np.abs(grouped).argmax(axis=2, keepdims=True)
        extreme = np.take_along_axis(grouped, at, axis=2)[:, :, 0]
        extreme = extreme if rule.steps < 0 else np.abs(extreme)
        scales = (extreme / np.float32(rule.steps)).astype(np.float16)
        wrong = ~np.isfinite(scales)
        scales[wrong | (scales == 0)] = 0
        quotients = grouped / scales.astype(np.float32)[:, :, None]
    quotients[scales == 0] = 0
    steps = np.clip(np.rint(quotients), rule.lowest, rule.highest)
    return steps.reshape(len(exact), -1), scales, int(wrong.sum())


def _packed(steps: F32, rule: Rule, words: int) -> np.ndarray:
    """Signed codes [R, k] as u32 words [R, words]."""
    if rule.layout == "Q4_0":
        unsigned = np.full((len(steps), 8 * words), 8, np.uint8)
        unsigned[:, : steps.shape[1]] = steps + 8
        return pack_nibbles(unsigned).view(np.uint32)
    signed = np.zeros((len(steps), 4 * words), np.int8)
    signed[:, : steps.shape[1]] = steps
    return signed.view(np.uint32)
