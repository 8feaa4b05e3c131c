"""Two 4-bit codes a byte, in the two orders that stored weights use.

`"even_low"`: byte j of a row holds code 2j in its low nibble and code 2j+1 in its high nibble:
`linear_q4gsw`, `embedding_q4gsw` with `is_linear_weight=True`, and our own packed layouts.
`"even_high"`: the other way round: `embedding_q4gsw` with `is_linear_weight=False`, `linear_qcs4w`.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import ShapeError

NibbleOrder: TypeAlias = Literal["even_low", "even_high"]
U8: TypeAlias = NDArray[np.uint8]

PAD_CODE = 8
"""What fills the last nibble of an odd row: the code whose value is 0."""


def pack_nibbles(codes: U8, order: NibbleOrder = "even_low") -> U8:
    """Codes 0..15 of shape [..., K] to bytes [..., ceil(K/2)].

    The half byte after an odd K holds `PAD_CODE`. Only the low four bits of a code count.
    """
    even = codes[..., 0::2] & np.uint8(15)
    odd = np.full_like(even, PAD_CODE)
    odd[..., : codes.shape[-1] // 2] = codes[..., 1::2] & np.uint8(15)
    low, high = (even, odd) if order == "even_low" else (odd, even)
    packed = high << np.uint8(4)
    packed |= low
    return packed


def unpack_nibbles(packed: U8, k: int, order: NibbleOrder = "even_low") -> U8:
    """Bytes [..., ceil(K/2)] to codes 0..15 of shape [..., K].

    Raises:
        ShapeError: the last dimension is not ceil(k/2).
    """
    if packed.shape[-1] != (k + 1) // 2:
        raise ShapeError(
            f"unpack_nibbles: rows of {packed.shape[-1]} bytes cannot hold {k} codes of 4 bits — "
            f"pass rows of {(k + 1) // 2} bytes"
        )
    codes = np.empty((*packed.shape[:-1], k), np.uint8)
    low, high = packed & np.uint8(15), packed >> np.uint8(4)
    even, odd = (low, high) if order == "even_low" else (high, low)
    codes[..., 0::2] = even
    codes[..., 1::2] = odd[..., : k // 2]
    return codes
