"""What hypothesis draws: dims at the edges of vectors and workgroups, numbers of every kind.

Hypothesis chooses dims, the kind of numbers, a seed and a few numbers of its own; NumPy makes the
rest of an array from them, so that arrays of thousands cost no thousands of draws.
"""

from dataclasses import dataclass
from math import inf, nan, prod

import numpy as np
from hypothesis import strategies as st

from ops.opcase import Const

EDGES = (1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 33, 63, 64, 65, 100, 127, 129, 255, 257, 600, 1025)
LARGEST = float(np.finfo(np.float32).max)
NORMAL = 2.0**-126
"""The smallest float32 with all its bits: a GPU may take smaller ones for 0."""

PATTERNS = np.frombuffer(
    # NaNs of float32 quiet and signalling, of pairs of float16, of bfloat16; infinities; the
    # smallest denormals; -0; all nibbles; all bits.
    bytearray.fromhex(
        "7FC00001 7F800001 FFC00000 FFFFFFFF 7E007E00 7C01FC01 FE00FDFF 7F817F81"
        "7F800000 FF800000 00000001 80000001 80000000 76543210 FEDCBA98"
    ),
    ">u4",
).astype(np.uint32)


class FloatWords(Const):
    """A constant whose words are the bits of float32 numbers."""


def dims(draw, least=0, most=4, numel=2048):
    """Dims of rank `least` to `most`, together at most `numel` elements."""
    found = []
    for _ in range(draw(st.integers(least, most))):
        room = numel // prod(found)
        found.append(draw(st.sampled_from([e for e in EDGES if e <= room])))
    return tuple(draw(st.permutations(found)))


def edge(draw, most=EDGES[-1]):
    """One size from 1 to `most`."""
    return draw(st.sampled_from([e for e in EDGES if e <= most]))


def rng_of(draw):
    """A generator for what hypothesis leaves open."""
    return np.random.default_rng(draw(st.integers(0, 2**32 - 1)))


@dataclass(frozen=True)
class Floats:
    """float32 of magnitude 2^low up to 2^(high + 1), zeros, and where allowed other ones.

    `special` are planted now and then, `denormal` says that numbers below 2^-126 are.
    """

    low: int = -126
    high: int = 127
    positive: bool = False
    special: tuple = (nan, inf, -inf, -0.0)
    denormal: bool = True

    def __str__(self):
        size = "any" if (self.low, self.high) == (-126, 127) else f"2^{self.low} to 2^{self.high}"
        names = {nan: "NaN", inf: "±inf", 0.0: "0", -LARGEST: "-FLT_MAX"}
        extra = [
            names.get(v, f"{v:g}") for v in self.special if v != -inf or inf not in self.special
        ]
        extra += ["denormal"] if self.denormal else []
        sign = "positive " if self.positive else ""
        return ", ".join([f"{sign}{size}", *filter(None, extra)])

    def __call__(self, draw, shape):
        """An array: all of one kind, a few of hypothesis' own among them."""
        rng = rng_of(draw)
        kind = draw(st.sampled_from(("near", "wide", "equal", "edges", "special", "denormal")))
        n = prod(shape)
        low, high = self.low, self.high
        if kind != "wide":
            low, high = max(low, -3), min(high, 3)
        x = np.exp2(rng.uniform(low, high + 1, n))
        if kind == "equal":
            x[:] = x[:1]
        elif kind == "edges":
            x = rng.choice(self._edges(), n)
        if not self.positive:
            x *= rng.choice([-1.0, 1.0], n) if kind != "equal" else 1
        if kind == "special" and self.special:
            x = np.where(rng.random(n) < 0.2, rng.choice(self.special, n), x)
        if kind == "denormal" and self.denormal:
            tiny = rng.uniform(0, NORMAL, n) * (1 if self.positive else rng.choice([-1, 1], n))
            x = np.where(rng.random(n) < 0.3, tiny, x)
        for value in draw(st.lists(self._own(), max_size=3)):
            x[rng.integers(n)] = value
        most = (2 - 2.0**-23) * 2.0**self.high
        x = np.where(np.isfinite(x), x.clip(-most, most), x)
        return x.astype(np.float32).reshape(shape)

    def _edges(self):
        ones = np.array([1, 1 + 2.0**-23, 1 - 2.0**-24, 0.5, 1.5, 2.5, 3, 7, 0.1, 1 / 3])
        ends = np.array([2.0**self.low, (2 - 2.0**-23) * 2.0**self.high])
        found = np.concatenate([ones, ends])
        return found[(found >= 2.0**self.low) & (found < 2.0 ** (self.high + 1))]

    def _own(self):
        most = (2 - 2.0**-23) * 2.0**self.high
        least = 2.0**self.low if self.positive else -most
        drawn = st.floats(least, most, width=32, allow_subnormal=self.denormal and least < 0)
        return drawn.map(lambda v: v if self._holds(abs(v)) else 0.0)

    def _holds(self, size):
        return size >= 2.0**self.low or (self.denormal and size < NORMAL)


ANY = Floats()
MILD = Floats(-20, 20, special=(-0.0,), denormal=False)
"""Products and sums of thousands of these stay far from overflow and underflow."""


def ints(draw, shape, dtype="int32"):
    """Integers of a dtype: over all of its range, small ones, or its ends; for bool truths."""
    rng, n = rng_of(draw), prod(shape)
    if dtype == "bool":
        return rng.integers(0, 2, n).astype(bool).reshape(shape)
    info = np.iinfo(dtype)
    kind = draw(st.sampled_from(("small", "all", "ends", "equal")))
    if kind == "ends":
        x = rng.choice([info.min, info.max, 0, 1, max(info.min, -1), info.max - 1], n)
    elif kind == "small":
        x = rng.integers(max(info.min, -9), 10, n)
    else:
        x = rng.integers(info.min, info.max, n, endpoint=True, dtype=np.int64)
        x = x if kind == "all" else np.full(n, x[0])
    return x.astype(dtype).reshape(shape)


def bits(draw, shape, dtype):
    """Any bits at all as a dtype, those of PATTERNS among them."""
    if dtype == "bool":
        return ints(draw, shape, dtype)
    rng, n = rng_of(draw), prod(shape)
    nbytes = n * np.dtype(dtype).itemsize
    words = rng.integers(0, 2**32, -(-nbytes // 4), np.uint32)
    words = np.where(rng.random(len(words)) < 0.5, rng.choice(PATTERNS, len(words)), words)
    return words.view(np.uint8)[:nbytes].view(dtype).reshape(shape)


DTYPES = ("float32", "int32", "int8", "uint8", "bool")
STORED = (*DTYPES, "uint32")
"""Packed words are moved as well, but nothing is computed with them."""


def anything(draw, shape):
    """Any bits of any dtype."""
    return bits(draw, shape, draw(st.sampled_from(STORED)))
