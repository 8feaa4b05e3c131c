"""Bounds on errors, and the rows of the table that state them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from numerics.values import NORMAL

OVERFLOW = 2.0**128
"""What an infinity counts as beside a finite number: the next float32 there would be."""


@dataclass(frozen=True)
class Bound:
    """`text` for people; `slack(want, size)` in float64, or None where bits must be equal.

    `size` is what the sample measures errors by: for a sum, the sum of its terms' magnitudes. A
    `loose` bound lets NaN and infinities stand for each other.
    """

    text: str
    slack: Callable[[np.ndarray, Any], Any] | None = None
    flushes: bool = True
    loose: bool = False

    def wrong(self, got, want, size=None):
        """Which elements are outside of the bound."""
        if self.slack is None:
            shape = (*got.shape, got.itemsize)
            a, b = (np.ascontiguousarray(x).reshape(-1).view(np.uint8) for x in (got, want))
            return (a != b).reshape(shape).any(axis=-1)
        if got.dtype.kind != "f":
            return abs(got.astype(np.int64) - want.astype(np.int64)) > self.slack(want, size)
        with np.errstate(invalid="ignore"):
            a, b = (x.astype(np.float64).clip(-OVERFLOW, OVERFLOW) for x in (got, want))
            slack = self.slack(abs(b), size) + (NORMAL if self.flushes else 0)
            good = (a == b) | (abs(a - b) <= slack) | (np.isnan(a) & np.isnan(b))
        if self.loose:
            good |= ~np.isfinite(got) & ~np.isfinite(want)
        return ~good


def _ulp(size):
    """The distance of a float32 to the next; of numbers below 2^-126 that of 2^-126."""
    return np.exp2(np.floor(np.log2(np.maximum(size, NORMAL))) - 23)


BITS = Bound("bit for bit", flushes=False)
EXACT = Bound("exact", lambda want, _: 0)


def ulps(n):
    """Units in the last place of the true value."""
    return Bound(f"{n:g} ulp", lambda want, _: n * _ulp(want))


def ulps_by(text):
    """As many units in the last place as the sample's size says."""
    return Bound(f"{text} ulp", lambda want, size: size * _ulp(want))


def near(absolute, text=""):
    """An absolute error."""
    return Bound(text or f"{absolute:g}", lambda want, _: absolute)


def share(n, of, loose=False):
    """So many 2^-24 of a size that the sample gives."""
    times = "" if n == 1 else f"{n:g}·"
    return Bound(f"{times}2^-24 ({of})", lambda _, size: n * 2.0**-24 * size, loose=loose)


def codes(n):
    """Integers that may be so many off."""
    return Bound(f"{n} code" + "s" * (n > 1), lambda want, _: n)


@dataclass
class Sample:
    """One graph: the operator's arguments, and what its errors are measured by.

    `size` is an array, or one a result. `outputs`, `mutated` and `then` as in OpCase.
    """

    args: list[Any]
    size: Any = None
    outputs: tuple | None = None
    mutated: tuple = ()
    then: tuple = ()


@dataclass(frozen=True)
class Row:
    """What operators promise: `sample(draw, op)` draws a graph, `bound` holds for its results.

    `bound` may be one a result. `values` and `specials` say which numbers, and what becomes of NaN,
    infinities and denormals, for people.
    """

    ops: tuple[str, ...]
    sample: Callable[[Any, str], Sample]
    bound: Any
    values: str
    specials: str
    note: str = field(default="")

    def bounds(self, count):
        """The bound of each result."""
        return self.bound if isinstance(self.bound, tuple) else (self.bound,) * count
