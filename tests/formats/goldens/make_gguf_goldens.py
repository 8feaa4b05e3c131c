"""Writes gguf_blocks.npz: stored blocks of every type that runs, decoded by the `gguf` package.

    python tests/formats/goldens/make_gguf_goldens.py      # needs: pip install gguf==0.19.0

For each type `<type>_blocks` is U8 [3, bytes of a row] and `<type>_values` float32 [3, K]. Codes
are drawn so that no two elements of a 32-element block are equal where the type has enough codes,
and each half of it is a permutation of all 16 nibbles otherwise; 256-element blocks are random.
Over the blocks of a type every two positions differ, so a swap of any two elements shows.
"""

from pathlib import Path

import gguf
import numpy as np

ROWS = 3
rng = np.random.default_rng(20240607)


def f16(low: float, high: float, count: int) -> np.ndarray:
    """Distinct float16 numbers of both signs, as bytes [count, 2]."""
    numbers = rng.uniform(low, high, count) * rng.choice([-1, 1], count)
    return numbers.astype("<f2").view(np.uint8).reshape(count, 2)


def nibbles() -> np.ndarray:
    """16 bytes whose low nibbles are a permutation of 0..15, and whose high ones are another."""
    return (rng.permutation(16) | rng.permutation(16) << 4).astype(np.uint8)


def fifth_bits(q: np.ndarray) -> np.ndarray:
    """A bit per element that makes all 32 five-bit codes of a block differ."""
    codes = np.concatenate((q & 15, q >> 4))
    bits = np.zeros(32, np.uint8)
    for code in range(16):
        pair = np.flatnonzero(codes == code)
        bits[rng.choice(pair)] = 1
    return np.packbits(bits, bitorder="little")


def block(kind: str) -> np.ndarray:
    d, m = f16(0.01, 0.2, 2)
    q = nibbles()
    if kind == "Q4_0":
        return np.concatenate((d, q))
    if kind == "Q4_1":
        return np.concatenate((d, m, q))
    if kind == "Q5_0":
        return np.concatenate((d, fifth_bits(q), q))
    if kind == "Q5_1":
        return np.concatenate((d, m, fifth_bits(q), q))
    if kind == "Q8_0":
        return np.concatenate((d, rng.permutation(256)[:32].astype(np.uint8)))
    random = rng.integers(0, 256, 224, dtype=np.uint8)
    if kind == "Q4_K":
        return np.concatenate((d, m, random[:140]))
    if kind == "Q5_K":
        return np.concatenate((d, m, random[:172]))
    return np.concatenate((random[:208], d))


def main() -> None:
    arrays = {}
    for kind in ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K"):
        per_row = 2 if kind.endswith("K") else 3
        rows = [np.concatenate([block(kind) for _ in range(per_row)]) for _ in range(ROWS)]
        arrays[f"{kind}_blocks"] = np.stack(rows)
    arrays["F16_blocks"] = f16(1e-7, 60000, ROWS * 7).reshape(ROWS, -1)
    arrays["BF16_blocks"] = (
        (rng.standard_normal(ROWS * 7).astype("<f4") * 1e30).view("<u2")[1::2].copy().view(np.uint8)
    ).reshape(ROWS, -1)
    arrays["F32_blocks"] = rng.standard_normal(ROWS * 7).astype("<f4").view(np.uint8).reshape(3, -1)
    for name in list(arrays):
        kind = name.removesuffix("_blocks")
        decoded = gguf.dequantize(arrays[name], gguf.GGMLQuantizationType[kind])
        assert np.isfinite(decoded).all()
        arrays[f"{kind}_values"] = decoded.astype("<f4")
    np.savez_compressed(Path(__file__).with_name("gguf_blocks.npz"), **arrays)


if __name__ == "__main__":
    main()
