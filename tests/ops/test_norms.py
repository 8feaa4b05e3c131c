"""Layer, group and batch normalization: all results, affine or not, edge sizes, live shapes."""

import numpy as np
import pytest

from ops.opcase import Const, In, OpCase, check, check_all, distinct
from webgpu_py import ShapeError

LAYER = "aten.native_layer_norm.default"
GROUP = "aten.native_group_norm.default"
BATCH = "aten._native_batch_norm_legit_no_training.default"
EPS = 1e-5


def normal(x, axes):
    """x normalized over axes, mean and 1/deviation, from sums of squares."""
    x = x.astype(np.float64)
    mean = x.mean(axis=axes, keepdims=True)
    rstd = 1 / np.sqrt((x * x).mean(axis=axes, keepdims=True) - mean**2 + EPS)
    return (x - mean) * rstd, mean, rstd


def layer_case(dims, n=1, affine=True, limits=None):
    x = distinct(dims, 1, -2, 5)
    shape = list(dims[-n:])
    y, mean, rstd = normal(x, tuple(range(len(dims) - n, len(dims))))
    w, b = distinct(shape, 2, 0.5, 1.5), distinct(shape, 3)
    args = [In("x", x), shape, *([Const(w), Const(b)] if affine else [None, None]), EPS]
    return OpCase(LAYER, args, [y * w + b if affine else y, mean, rstd], limits=limits, rtol=1e-4)


def group_case(dims, groups, affine=True):
    x = distinct(dims, 4, -1, 3)
    n, c, *rest = dims
    y, mean, rstd = normal(x.reshape(n, groups, -1), 2)
    w, b = distinct((c,), 5, 0.5, 1.5), distinct((c,), 6)
    shape = (1, c, *[1] * len(rest))
    y = y.reshape(dims)
    y = y * w.reshape(shape) + b.reshape(shape) if affine else y
    tail = [n, c, int(np.prod(rest)), groups, EPS]
    args = [In("x", x), *([Const(w), Const(b)] if affine else [None, None]), *tail]
    return OpCase(GROUP, args, [y, mean[..., 0], rstd[..., 0]], rtol=1e-4)


def batch_case(dims, affine=True):
    x, c = distinct(dims, 7, -3, 3), dims[1]
    w, b, mean, var = (distinct((c,), k, 0.5, 1.5) for k in range(4))
    shape = (1, c, *[1] * (len(dims) - 2))
    wide = [a.astype(np.float64).reshape(shape) for a in (w, b, mean, var)]
    y = (x - wide[2]) / np.sqrt(wide[3] + EPS)
    y = y * wide[0] + wide[1] if affine else y
    given = [Const(w), Const(b)] if affine else [None, None]
    args = [In("x", x), *given, Const(mean), Const(var), 0.1, EPS]
    return OpCase(BATCH, args, [y], outputs=(0,), rtol=1e-4)


def level_case():
    """Rows of equal numbers: their bias, and nothing of a mean's rounding."""
    heights = np.array([0.1, -3.3, 1e4, 12345.678, 1e6], np.float32)
    x = np.repeat(heights[:, None], 100, axis=1)
    b = distinct((100,), 3)
    stats = [heights[:, None], np.full((5, 1), 1 / np.sqrt(EPS))]
    args = [In("x", x), [100], Const(distinct((100,), 2)), Const(b), EPS]
    return OpCase(LAYER, args, [np.tile(b, (5, 1)), *stats], rtol=1e-6, atol=0)


def high_case():
    """Numbers about 1 around 10000: their mean costs them none of the bits they have."""
    x = distinct((3, 90), 9, -1, 1) + np.float32(1e4)
    y, mean, rstd = normal(x - 1e4, 1)
    return OpCase(LAYER, [In("x", x), [90], None, None, EPS], [y, mean + 1e4, rstd])


def live_layer_case():
    w, b = distinct((6,), 2, 0.5, 1.5), distinct((6,), 3)

    def step(n):
        x = distinct((n, 6), n, -2, 5)
        y, mean, rstd = normal(x, 1)
        return {"x": x}, [y * w + b, mean, rstd]

    first, want = step(5)
    args = [In("x", first["x"], (5, 6)), [6], Const(w), Const(b), EPS]
    return OpCase(LAYER, args, want, [step(1), step(5), step(3)], rtol=1e-4)


CASES = [
    *(layer_case((3, k)) for k in (2, 63, 64, 65, 130, 600)),
    layer_case((4, 128), affine=False),
    level_case(),
    high_case(),
    layer_case((2, 3, 4, 5), n=2),
    layer_case((20, 7), limits={"max_compute_workgroups_per_dimension": 5}),
    *(layer_case((3, 70), limits={"max_compute_invocations_per_workgroup": w}) for w in (1, 32)),
    live_layer_case(),
    group_case((2, 4, 3, 5), 2),
    group_case((1, 6, 2, 2), 3),
    group_case((1, 4, 3, 3), 1, affine=False),
    group_case((2, 6, 7), 6),
    batch_case((1, 8, 5, 5)),
    batch_case((2, 3, 7), affine=False),
    batch_case((3, 5)),
]


@pytest.mark.parametrize("c", CASES, ids=str)
def test_cpu(c):
    check(c)


def test_browser(gpu):
    check_all(CASES, gpu)


X = distinct((2, 4, 3))


@pytest.mark.parametrize(
    ("op", "args", "text"),
    [
        (LAYER, [In("x", X), [4], None, None, EPS], r"normalized_shape \[4\] must be the last"),
        (LAYER, [In("x", X), [3], Const(distinct((4,))), None, EPS], "weight has 4 elements"),
        (GROUP, [In("x", X), None, None, 2, 4, 3, 3, EPS], "4 channels do not divide into 3"),
        (
            BATCH,
            [In("x", X), None, None, Const(distinct((3,))), Const(distinct((4,))), 0.1, EPS],
            "mean must have 4 elements",
        ),
    ],
)
def test_refused_before_any_buffer(op, args, text):
    with pytest.raises(ShapeError, match=text) as caught:
        check(OpCase(op, args, []))
    assert "[buffers created: 0]" in str(caught.value)
