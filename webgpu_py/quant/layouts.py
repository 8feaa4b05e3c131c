"""The packed layouts that `webgpu_py.linear_*` and `webgpu_py.embedding_*` read on the GPU.

A weight [N, K] is one u32 array of codes and one u32 array of scale records, lossless against
what the file stores. A `Layout` names both; kernels take them as override constants.

Codes, row-major u32 [N, W], element k of row n (words of a row padded with zero values):

| codes | W | element k of a row | code c |
|---|---|---|---|
| `u4` | ceil(K/8) | `(word[k/8] >> 4*(k%8)) & 15` (even-low byte order) | 0..15 |
| `i8` | ceil(K/4) | byte k%4 of `word[k/4]` | signed -128..127 |
| `f16` | ceil(K/2) | half k%2 of `word[k/2]`, `unpack2x16float` | the value itself |
| `bf16` | ceil(K/2) | half k%2; `bitcast<f32>(half << 16)` | the value itself |
| `f32` | K | `bitcast<f32>(word[k])` | the value itself |

Scale records, for G = K/group groups a row, g = n*G + k/group the group's flat index, and
s = n*K/256 + k/256 the flat index of a super-block of 256 elements:

| scales | words | scale | minimum |
|---|---|---|---|
| `none` | 0 | 1 | - |
| `f16` | ceil(N*G/2) | half g%2 of `word[g/2]` | - |
| `f16_min` | N*G | low half of `word[g]` | high half of `word[g]` |
| `f32` | N*G | `bitcast<f32>(word[g])` | - |
| `k_min` | 5 a super-block | d * sc | -(dmin * m) |
| `k` | 5 a super-block | d * sc | - |

`k_min` (8 groups of 32): `word[5s]` holds f16 d low and f16 dmin high; 16-bit half j%2 of
`word[5s+1+j/2]` is `sc | m << 8` of group j, both 0..63. `k` (16 groups of 16): the low half of
`word[5s]` is f16 d, the high half 0; byte j%4 of `word[5s+1+j/4]` is sc of group j, signed.

    value = (c - zero) * scale              zero = 8 for u4, 0 for i8
    value = c * scale + minimum             where the scales have minima (then zero = 0)

All products above are exact in float32 (significands of 11 + 7 + 5 bits at most), so a fused
multiply-add and separate operations give the same bits, and `unpack` equals `dequantize` exactly.

| stored type | codes | scales | group | bytes against stored |
|---|---|---|---|---|
| Q4_0 | u4 | f16 | 32 | 1.00 |
| Q4_1 | u4 | f16_min | 32 | 1.00 |
| Q5_0 | i8 (c - 16) | f16 | 32 | 1.55 |
| Q5_1 | i8 | f16_min | 32 | 1.50 |
| Q8_0 | i8 | f16 | 32 | 1.00 |
| Q4_K | u4 | k_min | 32 | 1.03 |
| Q5_K | i8 | k_min | 32 | 1.57 |
| Q6_K | i8 (c - 32) | k | 16 | 1.31 |
| F16, BF16, F32 | f16, bf16, f32 | none | - | 1.00 |
| q4gsw | u4 | f32 | any | 1.00 |

F16, BF16 and F32 rows of whole words are the file's own bytes. bfloat16 is not exact in float16,
hence its own code kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

U8: TypeAlias = NDArray[np.uint8]
U32: TypeAlias = NDArray[np.uint32]
F32: TypeAlias = NDArray[np.float32]

CodeKind: TypeAlias = Literal["u4", "i8", "f16", "bf16", "f32"]
ScaleKind: TypeAlias = Literal["none", "f16", "f16_min", "f32", "k_min", "k"]

SUPER_BLOCK = 256
BITS: dict[CodeKind, int] = {"u4": 4, "i8": 8, "f16": 16, "bf16": 16, "f32": 32}
RECORD_BYTES: dict[ScaleKind, int] = {
    "none": 0,
    "f16": 2,
    "f16_min": 4,
    "f32": 4,
    "k_min": 20,
    "k": 20,
}
"""Bytes of one scale record: a group's, or a super-block's for the two `k` kinds."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How a weight lies on the GPU: kind of codes, kind of scales, elements a scale covers."""

    codes: CodeKind
    scales: ScaleKind = "none"
    group: int = 0

    @property
    def zero(self) -> int:
        """What is subtracted from a code before the scale."""
        return 8 if self.codes == "u4" and not self.minima else 0

    @property
    def minima(self) -> bool:
        """Whether every group has a minimum that is added."""
        return self.scales.endswith("_min")

    @property
    def record_elements(self) -> int:
        """Elements of a row that one scale record covers."""
        return SUPER_BLOCK if self.scales.startswith("k") else self.group

    def row_words(self, k: int) -> int:
        """u32 words of codes a row."""
        return -(-k * BITS[self.codes] // 32)

    def scale_words(self, n: int, k: int) -> int:
        """u32 words of all scale records."""
        if self.scales == "none":
            return 0
        return -(-n * -(-k // self.record_elements) * RECORD_BYTES[self.scales] // 4)

    def nbytes(self, n: int, k: int) -> int:
        """GPU bytes of an [n, k] weight: codes and scale records."""
        return 4 * (n * self.row_words(k) + self.scale_words(n, k))


LAYOUTS: dict[str, Layout] = {
    "F32": Layout("f32"),
    "F16": Layout("f16"),
    "BF16": Layout("bf16"),
    "Q4_0": Layout("u4", "f16", 32),
    "Q4_1": Layout("u4", "f16_min", 32),
    "Q5_0": Layout("i8", "f16", 32),
    "Q5_1": Layout("i8", "f16_min", 32),
    "Q8_0": Layout("i8", "f16", 32),
    "Q4_K": Layout("u4", "k_min", 32),
    "Q5_K": Layout("i8", "k_min", 32),
    "Q6_K": Layout("i8", "k", 16),
}
"""The layout of every stored type that runs."""


@dataclass(frozen=True, slots=True)
class PackedWeight:
    """A weight [n, k] in `layout`: `codes` u32 [n, row_words], `scales` u32 [scale_words]."""

    layout: Layout
    n: int
    k: int
    codes: U32
    scales: U32


def expand_records(kind: ScaleKind, records: U8) -> tuple[F32, F32 | None]:
    """Scale records U8 [B, R] to scales float32 [B, groups] and minima of the same shape."""
    if kind == "f32":
        return records.view("<f4"), None
    head = records.view("<f2").astype(np.float32)
    if kind == "f16":
        return head, None
    if kind == "f16_min":
        return head[:, :1], head[:, 1:]
    if kind == "k":
        return head[:, :1] * records[:, 4:].view(np.int8), None
    return head[:, :1] * records[:, 4::2], -(head[:, 1:2] * records[:, 5::2])


def apply_scales(codes: NDArray[np.int8], records: U8, layout: Layout) -> F32:
    """`(c - zero) * scale + minimum` of codes [B, E] with one record each, float32 [B, E]."""
    scales, minima = expand_records(layout.scales, records)
    values = codes.astype(np.float32).reshape(*scales.shape, -1)
    values -= layout.zero
    values *= scales[:, :, None]
    if minima is not None:
        values += minima[:, :, None]
    return values.reshape(codes.shape)
