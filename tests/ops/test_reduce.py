"""Reductions: every dim, keepdim, ties, NaN, edge sizes, live shapes, errors."""

import numpy as np
import pytest

from ops.opcase import In, OpCase, check, check_all, distinct
from webgpu_py import DtypeError, ShapeError

NUMPY = {
    "aten.sum.dim_IntList": np.sum,
    "aten.mean.dim": np.mean,
    "aten.amax.default": np.max,
    "aten.amin.default": np.min,
}
ARG = {"aten.argmax.default": np.argmax, "aten.argmin.default": np.argmin}


def case(op, x, dims, keep=False, limits=None):
    wide = x.astype(np.float64)
    want = NUMPY[op](wide, axis=tuple(dims) if dims else None, keepdims=keep)
    extra = [None] if op in ("aten.sum.dim_IntList", "aten.mean.dim") else []
    return OpCase(op, [In("x", x), dims, keep, *extra], [np.asarray(want)], limits=limits)


def arg_case(op, x, dim, keep=False, limits=None):
    want = ARG[op](x, axis=dim, keepdims=keep)
    return OpCase(op, [In("x", x), dim, keep], [np.asarray(want, np.int32)], limits=limits)


def live_case(op):
    def step(a, b):
        x = distinct((a, 3, b), a * 10 + b)
        return {"x": x}, [NUMPY[op](x.astype(np.float64), axis=(0, 2))]

    first, expected = step(5, 7)
    runs = [step(1, 2), step(3, 7), step(5, 7)]
    extra = [None] if op in ("aten.sum.dim_IntList", "aten.mean.dim") else []
    return OpCase(op, [In("x", first["x"], (5, 3, 7)), [0, 2], False, *extra], expected, runs)


TIES = np.array([[1, 3, 3, 0], [2, 2, 2, 2], [-1, -3, -3, -1]], np.float32)
ODD = np.array([[1, np.nan, 3], [np.nan, np.nan, -np.inf], [np.inf, -np.inf, 0]], np.float32)

CASES = [
    *(case(op, distinct((3, 5, 7), 1), [1]) for op in NUMPY),
    *(case(op, distinct((3, 5, 7), 2), [-1, 0], True) for op in NUMPY),
    *(case(op, distinct((2, 3, 2, 5), 3), []) for op in NUMPY),
    *(case(op, distinct((), 3), []) for op in NUMPY),
    *(case("aten.sum.dim_IntList", distinct((2, n), n), [1]) for n in (1, 63, 64, 65, 300)),
    *(case("aten.amax.default", -1 - distinct((n, 3), n, 0, 1), [0]) for n in (1, 64, 257)),
    # Equal numbers, whose rounding does not even out; the second more than lavapipe's loops take.
    *(
        case("aten.sum.dim_IntList", np.full((2, n), 1 / 3, np.float32), [1])
        for n in (4000, 90_000)
    ),
    case("aten.amax.default", distinct((1, 90_000), 5), [1]),
    case("aten.amax.default", ODD, [1]),
    case("aten.amin.default", ODD, [0]),
    case("aten.mean.dim", distinct((2,) * 8, 5), [1, 3, 6]),
    case(
        "aten.sum.dim_IntList",
        distinct((99, 5), 6),
        [1],
        limits={"max_compute_workgroups_per_dimension": 10},
    ),
    *(
        case(
            "aten.mean.dim",
            distinct((6, 70), 7),
            [1],
            limits={"max_compute_invocations_per_workgroup": w},
        )
        for w in (1, 32, 128)
    ),
    *(arg_case(op, distinct((3, 5, 7), 8), 1) for op in ARG),
    *(arg_case(op, distinct((3, 5, 7), 8), -1, True) for op in ARG),
    *(arg_case(op, distinct((3, 5, 7), 9), None) for op in ARG),
    *(arg_case(op, TIES, 1) for op in ARG),
    *(arg_case(op, ODD, 1) for op in ARG),
    *(arg_case("aten.argmax.default", distinct((2, n), n), 1) for n in (1, 64, 65, 257)),
    *(live_case(op) for op in NUMPY),
]


@pytest.mark.parametrize("c", CASES, ids=str)
def test_cpu(c):
    check(c)


def test_browser(gpu):
    check_all(CASES, gpu)


@pytest.mark.parametrize(
    ("op", "x", "dims", "kind", "text"),
    [
        ("aten.sum.dim_IntList", distinct((2, 3)), [2], ShapeError, "dim=2, allowed are -2 to 1"),
        ("aten.mean.dim", distinct((2, 3)), [1, -1], ShapeError, "twice"),
        ("aten.amax.default", distinct((1,) * 9), [0], ShapeError, "rank 9"),
        ("aten.amin.default", np.zeros((2, 2), np.int32), [0], DtypeError, "x is int32"),
        ("aten.argmax.default", distinct((2, 3)), 5, ShapeError, "dim=5"),
    ],
)
def test_refused_before_any_buffer(op, x, dims, kind, text):
    with pytest.raises(kind, match=text) as caught:
        check(OpCase(op, [In("x", x), dims], []))
    assert "[buffers created: 0]" in str(caught.value)
