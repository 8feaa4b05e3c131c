"""aten.avg_pool2d and max_pool2d_with_indices: every window cell by cell, ceil mode, live sizes."""

from itertools import product
from math import ceil, floor

import numpy as np
import pytest

from ops.opcase import In, OpCase, check, check_all, distinct
from webgpu_py import DtypeError, ShapeError

AVG = "aten.avg_pool2d.default"
MAX = "aten.max_pool2d_with_indices.default"
WIDTHS = [{"max_compute_invocations_per_workgroup": w} for w in (1, 32, 64, 128)]
SMALL_GRID = {"max_compute_workgroups_per_dimension": 4}


def count(size, kernel, stride, pad, dilation, ceil_mode):
    room = size + 2 * pad - dilation * (kernel - 1) - 1
    found = (ceil if ceil_mode else floor)(room / stride) + 1
    return found - 1 if ceil_mode and (found - 1) * stride >= size + pad else found


def averaged(x, k, s, p, ceil_mode, include_pad, divisor):
    height, width = x.shape[-2:]
    size = [count(x.shape[i - 2], k[i], s[i], p[i], 1, ceil_mode) for i in (0, 1)]
    out = np.zeros((*x.shape[:-2], *size))
    for i, j in product(*map(range, size)):
        top, left = i * s[0] - p[0], j * s[1] - p[1]
        bottom, right = min(top + k[0], height + p[0]), min(left + k[1], width + p[1])
        padded = (bottom - top) * (right - left)
        rows = slice(max(top, 0), max(min(bottom, height), 0))
        part = x[..., rows, max(left, 0) : max(min(right, width), 0)]
        cells = part.shape[-1] * part.shape[-2]
        if cells:
            whole = divisor or (padded if include_pad else cells)
            out[..., i, j] = part.astype(np.float64).sum((-2, -1)) / whole
    return out


def largest(x, k, s, p, d, ceil_mode):
    height, width = x.shape[-2:]
    size = [count(x.shape[i - 2], k[i], s[i], p[i], d[i], ceil_mode) for i in (0, 1)]
    values = np.zeros((*x.shape[:-2], *size), np.float32)
    indices = np.zeros(values.shape, np.int32)
    for at in product(*map(range, values.shape)):
        *lead, i, j = at
        best = None
        for a, b in product(range(k[0]), range(k[1])):
            h, w = i * s[0] - p[0] + a * d[0], j * s[1] - p[1] + b * d[1]
            if 0 <= h < height and 0 <= w < width:
                value = x[(*lead, h, w)]
                if best is None or value > best or np.isnan(value):
                    best = value
                    indices[at] = h * width + w
        values[at] = best
    return values, indices


def avg(dims, k, s=(), p=(0, 0), *, ceil_mode=False, pad=True, divisor=None, live=(), limits=None):
    x = distinct(dims, 1)

    def expected(x):
        return averaged(x, k, s or k, p, ceil_mode, pad, divisor)

    args = [In("x", x, dims if live else None)]
    args += [list(k), list(s), list(p), ceil_mode, pad, divisor]
    runs = [{"x": distinct(size, i)} for i, size in enumerate(live)]
    return OpCase(AVG, args, [expected(x)], [(r, [expected(r["x"])]) for r in runs], limits=limits)


def maximum(dims, k, s=(), p=(0, 0), d=(1, 1), *, ceil_mode=False, x=None, live=(), limits=None):
    x = distinct(dims, 1) if x is None else x

    def expected(x):
        return list(largest(x, k, s or k, p, d, ceil_mode))

    args = [In("x", x, dims if live else None), list(k), list(s), list(p), list(d), ceil_mode]
    runs = [{"x": distinct(size, i)} for i, size in enumerate(live)]
    return OpCase(MAX, args, expected(x), [(r, expected(r["x"])) for r in runs], limits=limits)


TIES = np.array([[1, 3, 3, 1], [3, 3, 0, 0], [0, 0, 2, 2], [0, 0, 2, 2]], np.float32)[None, None]
NANS = np.where(distinct((1, 2, 6, 6), 5) > 0.6, np.float32(np.nan), distinct((1, 2, 6, 6), 6))
LOWEST = np.full((1, 1, 4, 4), -np.inf, np.float32)

CASES = [
    avg((1, 2, 4, 4), (2, 2), (2, 2)),
    avg((1, 2, 5, 5), (3, 3), (2, 2), (1, 1)),
    avg((1, 2, 5, 5), (3, 3), (2, 2), (1, 1), pad=False),
    avg((2, 3, 5, 7), (3, 2), (2, 3), (1, 1)),
    avg((1, 1, 4, 4), (2, 2), divisor=3),
    avg((1, 1, 5, 5), (2, 2), ceil_mode=True),
    avg((1, 2, 5, 5), (3, 3), (2, 2), ceil_mode=True, pad=False),
    avg((3, 6, 7), (4, 3), (3, 3), (2, 1), ceil_mode=True),
    avg((1, 1, 2, 2), (1, 1), (1, 1), (3, 2)),
    avg((1, 1, 1, 1), (1, 1)),
    avg((1, 4, 18, 18), (3, 3), (1, 1), limits=SMALL_GRID),
    *(avg((1, 2, 7, 7), (2, 2), (1, 1), limits=w) for w in WIDTHS),
    avg((2, 2, 9, 8), (3, 3), (2, 2), (1, 1), live=((1, 2, 3, 3), (2, 2, 9, 8), (2, 1, 1, 2))),
    maximum((1, 8, 12, 12), (2, 2)),
    maximum((1, 4, 5, 5), (2, 2), (2, 2)),
    maximum((1, 8, 7, 7), (3, 3), (2, 2), (1, 1)),
    maximum((3, 7, 9), (3, 2), (2, 1), (1, 1), (2, 1), ceil_mode=True),
    maximum((1, 1, 5, 6), (2, 2), (2, 2), ceil_mode=True),
    maximum((1, 1, 4, 4), (2, 2), x=TIES),
    maximum((1, 1, 4, 4), (3, 3), (1, 1), (1, 1), x=LOWEST),
    maximum((1, 2, 6, 6), (3, 3), (1, 1), (1, 1), x=NANS),
    maximum((1, 1, 4, 4), (2, 2), x=-abs(distinct((1, 1, 4, 4), 2)) - 5),
    *(maximum((1, 2, 7, 7), (2, 2), (1, 1), limits=w) for w in WIDTHS),
    maximum((2, 2, 9, 8), (3, 3), (2, 2), (1, 1), live=((1, 2, 3, 3), (2, 2, 9, 8), (2, 1, 2, 5))),
]


@pytest.mark.parametrize("c", CASES, ids=str)
def test_cpu(c):
    check(c)


def test_browser(gpu):
    check_all(CASES, gpu)


@pytest.mark.parametrize(
    ("op", "x", "args", "kind", "text"),
    [
        (AVG, np.ones((1, 1, 4, 4), np.int32), [[2, 2]], DtypeError, "x is int32"),
        (AVG, distinct((4, 4)), [[2, 2]], ShapeError, r"\[C, H, W\] or \[N, C, H, W\]"),
        (AVG, distinct((1, 1, 4, 4)), [[5, 2]], ShapeError, "4 x 4 gives 0 x 2"),
        (AVG, distinct((1, 1, 4, 4)), [[2, 2], [0, 1]], ShapeError, "stride .* at least 1"),
        (AVG, distinct((1, 1, 4, 4)), [[2, 2], [], [], False, True, 0], ShapeError, "divisor"),
        (MAX, distinct((1, 1, 4, 4)), [[2, 2], [], [2, 0]], ShapeError, "half of the kernel"),
        (MAX, distinct((1, 1, 4, 4)), [[0, 2]], ShapeError, "kernel_size .* at least 1"),
        (MAX, distinct((1, 1, 4, 4)), [[2, 2], [], [], [0, 1]], ShapeError, "dilation"),
    ],
)
def test_refused_before_any_buffer(op, x, args, kind, text):
    with pytest.raises(kind, match=text) as caught:
        check(OpCase(op, [In("x", x), *args], []))
    assert "[buffers created: 0]" in str(caught.value)
