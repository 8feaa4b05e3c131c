"""aten.grid_sampler_2d and et_vk.grid_priors: every mode, places outside, live sizes, errors."""

from itertools import product
from math import floor

import numpy as np
import pytest

from ops.opcase import In, OpCase, check, check_all, distinct
from webgpu_py import DtypeError, ShapeError, UnsupportedOperator

SAMPLE = "aten.grid_sampler_2d.default"
PRIORS = "et_vk.grid_priors.default"
WIDTHS = [{"max_compute_invocations_per_workgroup": w} for w in (1, 32, 64, 128)]
SMALL_GRID = {"max_compute_workgroups_per_dimension": 4}


def place_of(value, size, padding, align):
    at = (value + 1) / 2 * (size - 1) if align else ((value + 1) * size - 1) / 2
    if padding == 2:
        low, high = (0, size - 1) if align else (-0.5, size - 0.5)
        if low == high:
            return 0.0
        while not low <= at <= high:
            at = 2 * low - at if at < low else 2 * high - at
    return at if padding == 0 else min(max(at, 0), size - 1)


def sampled(x, grid, mode, padding, align):
    n, c, height, width = x.shape
    out = np.zeros((n, c, *grid.shape[1:3]))
    for b, i, j in product(range(n), *map(range, grid.shape[1:3])):
        across = place_of(float(grid[b, i, j, 0]), width, padding, align)
        down = place_of(float(grid[b, i, j, 1]), height, padding, align)
        if mode == 1:
            shares = [(round(down), round(across), 1.0)]
        else:
            top, left = floor(down), floor(across)
            fh, fw = down - top, across - left
            shares = [
                (top + a, left + e, (fh if a else 1 - fh) * (fw if e else 1 - fw))
                for a, e in product((0, 1), (0, 1))
            ]
        for h, w, share in shares:
            if 0 <= h < height and 0 <= w < width:
                out[b, :, i, j] += share * x[b, :, h, w].astype(np.float64)
    return out


def sample(dims, size, mode=0, padding=1, align=True, reach=1.0, live=(), limits=None):
    x, grid = distinct(dims, 1), distinct((dims[0], *size, 2), 2, -reach, reach)
    args = [In("x", x, dims if live else None), In("grid", grid, grid.shape if live else None)]
    runs = []
    for i, (a, b) in enumerate(live):
        y, at = distinct(a, i + 5), distinct((a[0], *b, 2), i + 9, -reach, reach)
        runs.append(({"x": y, "grid": at}, [sampled(y, at, mode, padding, align)]))
    expected = sampled(x, grid, mode, padding, align)
    return OpCase(SAMPLE, [*args, mode, padding, align], [expected], runs, limits=limits)


def priors_of(height, width, stride, offset):
    return [
        [(w + offset) * stride, (h + offset) * stride] for h in range(height) for w in range(width)
    ]


def priors(dims, stride, offset, live=(), limits=None):
    runs = [({"x": distinct(d)}, [np.array(priors_of(*d[-2:], stride, offset))]) for d in live]
    args = [In("x", distinct(dims), dims if live else None), stride, offset]
    expected = np.array(priors_of(*dims[-2:], stride, offset))
    return OpCase(PRIORS, args, [expected], runs, limits=limits)


CORNERS = np.array([[[-1, -1], [1, 1], [-1, 1], [0, 0], [0.5, -0.25], [3, -7]]], np.float32)[None]
X = distinct((1, 2, 3, 5), 3)

CASES = [
    sample((1, 2, 4, 4), (3, 3)),
    sample((1, 1, 3, 5), (4, 4)),
    sample((2, 3, 4, 4), (2, 6), reach=1.7),
    *(
        sample((1, 2, 4, 5), (3, 4), mode, padding, align, reach=2.3)
        for mode in (0, 1)
        for padding in (0, 1, 2)
        for align in (False, True)
    ),
    *(sample((1, 1, 1, 1), (2, 2), padding=p, align=a, reach=3) for p in (0, 2) for a in (0, 1)),
    OpCase(SAMPLE, [In("x", X), In("g", CORNERS), 0, 1, True], [sampled(X, CORNERS, 0, 1, True)]),
    OpCase(
        SAMPLE,
        [In("x", X), In("g", CORNERS + np.float32(1e30)), 0, 0, True],
        [np.zeros((1, 2, 1, 6))],
    ),
    sample((1, 2, 4, 4), (8, 16), limits={**SMALL_GRID, **WIDTHS[1]}),
    *(sample((1, 2, 4, 4), (5, 7), limits=w) for w in WIDTHS),
    sample(
        (2, 2, 5, 4),
        (3, 6),
        live=(((1, 2, 1, 3), (2, 1)), ((2, 2, 5, 4), (3, 6)), ((2, 1, 2, 2), (1, 5))),
    ),
    priors((1, 3, 8, 10), 8, 0.5),
    priors((1, 3, 4, 4), 16, 0.0),
    priors((1, 1), 4, 0),
    priors((2, 16, 8), 4, 0.25, limits={**SMALL_GRID, **WIDTHS[1]}),
    priors((1, 1, 5, 7), 4, 0.0, live=((1, 1, 1, 2), (1, 1, 5, 7), (1, 1, 4, 3))),
]


@pytest.mark.parametrize("c", CASES, ids=str)
def test_cpu(c):
    check(c)


def test_browser(gpu):
    check_all(CASES, gpu)


@pytest.mark.parametrize(
    ("args", "kind", "text"),
    [
        ([np.ones((1, 1, 2, 2), np.int32), distinct((1, 2, 2, 2)), 0, 1, True], DtypeError, "x is"),
        ([distinct((1, 2, 2)), distinct((1, 2, 2, 2)), 0, 1, True], ShapeError, "must be"),
        ([distinct((1, 1, 2, 2)), distinct((1, 2, 2, 3)), 0, 1, True], ShapeError, "must be"),
        ([distinct((1, 1, 2, 2)), distinct((2, 2, 2, 2)), 0, 1, True], ShapeError, "must be"),
        (
            [distinct((1, 1, 2, 2)), distinct((1, 2, 2, 2)), 2, 1, True],
            UnsupportedOperator,
            "interpolation_mode=2, allowed are 0 to 1",
        ),
        (
            [distinct((1, 1, 2, 2)), distinct((1, 2, 2, 2)), 0, 3, True],
            UnsupportedOperator,
            "padding_mode=3, allowed are 0 to 2",
        ),
    ],
)
def test_refused_before_any_buffer(args, kind, text):
    made = [In(f"t{i}", a) if isinstance(a, np.ndarray) else a for i, a in enumerate(args)]
    with pytest.raises(kind, match=text) as caught:
        check(OpCase(SAMPLE, made, []))
    assert "[buffers created: 0]" in str(caught.value)


def test_priors_need_two_dims():
    with pytest.raises(ShapeError, match=r"must be \[..., H, W\]") as caught:
        check(OpCase(PRIORS, [In("x", distinct((4,))), 8, 0.5], []))
    assert "[buffers created: 0]" in str(caught.value)
