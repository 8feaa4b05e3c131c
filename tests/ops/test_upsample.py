"""aten.upsample_nearest2d and upsample_bilinear2d: cell by cell, odd ratios, live sizes, errors."""

from itertools import product
from math import floor

import numpy as np
import pytest

from ops.opcase import In, OpCase, check, check_all, distinct
from webgpu_py import DtypeError, ShapeError, UnsupportedOperator

NEAREST = "aten.upsample_nearest2d.vec"
BILINEAR = "aten.upsample_bilinear2d.vec"
WIDTHS = [{"max_compute_invocations_per_workgroup": w} for w in (1, 32, 64, 128)]
SMALL_GRID = {"max_compute_workgroups_per_dimension": 4}


def neighbours(at, size, results, align):
    """Two cells and the second one's share."""
    if align:
        place = at * (size - 1) / (results - 1) if results > 1 else 0.0
    else:
        place = max((at + 0.5) * size / results - 0.5, 0.0)
    low = min(floor(place), size - 1)
    return low, min(low + 1, size - 1), place - low


def resized(x, size, align=None):
    out = np.zeros((*x.shape[:2], *size))
    x = x.astype(np.float64)
    for i, j in product(*map(range, size)):
        if align is None:
            out[..., i, j] = x[..., i * x.shape[2] // size[0], j * x.shape[3] // size[1]]
            continue
        top, bottom, down = neighbours(i, x.shape[2], size[0], align)
        left, right, across = neighbours(j, x.shape[3], size[1], align)
        out[..., i, j] = (1 - down) * (
            (1 - across) * x[..., top, left] + across * x[..., top, right]
        ) + down * ((1 - across) * x[..., bottom, left] + across * x[..., bottom, right])
    return out


def upsample(dims, size=None, factors=None, align=None, live=(), limits=None):
    x = distinct(dims, 1)

    def expected(x):
        scaled = [floor(s * f) for s, f in zip(x.shape[2:], factors or (1, 1), strict=True)]
        return resized(x, size or scaled, align)

    middle = [] if align is None else [align]
    args = [In("x", x, dims if live else None), size and list(size), *middle]
    args.append(factors and list(factors))
    runs = [{"x": distinct(d, i)} for i, d in enumerate(live)]
    runs = [(r, [expected(r["x"])]) for r in runs]
    op = NEAREST if align is None else BILINEAR
    return OpCase(op, args, [expected(x)], runs, limits=limits)


def beside_nan():
    """A NaN or an infinity stays in its own cells."""
    x = distinct((1, 1, 2, 3), 1)
    x[0, 0, 1] = [np.nan, np.inf, 5]
    return OpCase(NEAREST, [In("x", x), [4, 3], None], [resized(x, (4, 3))])


CASES = [
    beside_nan(),
    *(upsample((1, 2, 5, 5), factors=(1.6, 1.6), align=a) for a in (None, False, True)),
    *(upsample((2, 3, 4, 7), factors=(2.0, 2.0), align=a) for a in (None, False, True)),
    *(upsample((1, 2, 6, 5), (4, 11), align=a) for a in (None, False, True)),
    *(upsample((1, 2, 3, 4), (1, 1), align=a) for a in (None, False, True)),
    *(upsample((1, 1, 1, 1), (3, 2), align=a) for a in (None, False, True)),
    *(upsample((1, 2, 6, 4), factors=(0.5, 2.5), align=a) for a in (None, False, True)),
    upsample((1, 2, 8, 8), (16, 16), align=False, limits={**SMALL_GRID, **WIDTHS[1]}),
    *(upsample((1, 2, 4, 4), (7, 9), align=False, limits=w) for w in WIDTHS),
    *(
        upsample((2, 1, 6, 5), factors=(1.5, 2.0), align=a, live=((1, 1, 1, 2), (2, 1, 6, 5)))
        for a in (None, False, True)
    ),
    upsample((1, 1, 6, 5), (4, 8), align=True, live=((1, 1, 2, 1), (1, 1, 6, 5))),
]


@pytest.mark.parametrize("c", CASES, ids=str)
def test_cpu(c):
    check(c)


def test_browser(gpu):
    check_all(CASES, gpu)


@pytest.mark.parametrize(
    ("args", "kind", "text"),
    [
        ([np.ones((1, 1, 2, 2), np.int32), [4, 4], None], DtypeError, "x is int32"),
        ([distinct((1, 2, 2)), [4, 4], None], ShapeError, r"must be \[N, C, H, W\]"),
        ([distinct((1, 1, 2, 2)), [4], None], ShapeError, r"output size \[4\]"),
        ([distinct((1, 1, 2, 2)), [0, 4], None], ShapeError, r"output size \[0, 4\]"),
        ([distinct((1, 1, 2, 2)), None, [0.1, 2.0]], ShapeError, r"output size \[0, 4\]"),
        ([distinct((1, 1, 2, 2)), None, [2.0]], ShapeError, r"scale_factors \[2.0\]"),
        ([distinct((1, 1, 2, 2)), None, None], ShapeError, r"scale_factors \[\]"),
        ([distinct((1, 1, 2, 2)), None, "2"], UnsupportedOperator, "a list of numbers"),
    ],
)
def test_refused_before_any_buffer(args, kind, text):
    with pytest.raises(kind, match=text) as caught:
        check(OpCase(NEAREST, [In("x", args[0]), *args[1:]], []))
    assert "[buffers created: 0]" in str(caught.value)
