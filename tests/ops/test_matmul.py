"""aten.mm, bmm, linear, addmm: both kernels, edge sizes, widths, live shapes, errors."""

import numpy as np
import pytest

from ops.opcase import Const, In, OpCase, check, check_all, distinct
from ops.routes import hardware_routes
from webgpu_py import DtypeError, ShapeError

SIZES = [(1, 1, 1), (1, 5, 33), (8, 1, 8), (9, 1, 9), (7, 5, 3), (31, 15, 33), (33, 17, 5)]
WIDTHS = [{"max_compute_invocations_per_workgroup": w} for w in (1, 32, 64, 128)]
SMALL_GRID = {"max_compute_workgroups_per_dimension": 4}


def loops(a, b):
    """sum_k a[m, k] b[k, n], one k at a time in float64."""
    total = np.zeros((a.shape[0], b.shape[1]))
    for k in range(a.shape[1]):
        total += np.outer(a[:, k].astype(np.float64), b[k].astype(np.float64))
    return total


def mm(m, k, n, limits=None):
    a, b = distinct((m, k), 1), distinct((k, n), 2)
    return OpCase("aten.mm.default", [In("a", a), In("b", b)], [loops(a, b)], limits=limits)


def bmm(batch, m, k, n, limits=None):
    a, b = distinct((batch, m, k), 1), distinct((batch, k, n), 2)
    wide = np.stack([loops(i, j) for i, j in zip(a, b, strict=True)])
    return OpCase("aten.bmm.default", [In("a", a), In("b", b)], [wide], limits=limits)


def linear(x_dims, n, bias=True, limits=None):
    x, w, c = distinct(x_dims, 1), distinct((n, x_dims[-1]), 2), distinct((n,), 3)
    wide = loops(x.reshape(-1, x_dims[-1]), w.T).reshape(*x_dims[:-1], n)
    args = [In("x", x), Const(w, prepack=True), Const(c) if bias else None]
    return OpCase("aten.linear.default", args, [wide + c if bias else wide], limits=limits)


def addmm(m, k, n, c_dims, beta=1, alpha=1, limits=None):
    a, b, c = distinct((m, k), 1), distinct((k, n), 2), distinct(c_dims, 3)
    wide = alpha * loops(a, b) + (beta * c.astype(np.float64) if beta else 0)
    args = [In("c", c), In("a", a), In("b", b), beta, alpha]
    return OpCase("aten.addmm.default", args, [wide], limits=limits)


def live_linear(k):
    w, c = distinct((32, k), 2), distinct((32,), 3)
    first = distinct((128, k), 1)
    runs = []
    for m in (1, 32, 9, 128):
        x = distinct((m, k), m)
        runs.append(({"x": x}, [loops(x, w.T) + c]))
    args = [In("x", first, (128, k)), Const(w), Const(c)]
    return OpCase("aten.linear.default", args, [loops(first, w.T) + c], runs)


def live_mm():
    shapes = [(20, 6, 30), (1, 2, 30), (20, 6, 3), (20, 6, 30)]
    cases = [mm(*s) for s in shapes]
    c = cases[0]
    for arg in c.args:
        arg.max_dims = arg.array.shape
    c.runs = [({a.name: a.array for a in d.args}, d.expected) for d in cases[1:]]
    return c


def live_addmm():
    shapes = [(20, 6, 30), (1, 2, 30), (20, 6, 3), (20, 6, 30)]
    cases = [addmm(*s, (s[0], 1), 0.5, 2) for s in shapes]
    c = cases[0]
    for arg in c.args[:3]:
        arg.max_dims = arg.array.shape
    c.runs = [({a.name: a.array for a in d.args[:3]}, d.expected) for d in cases[1:]]
    return c


def live_bmm():
    a, b = distinct((2, 20, 12), 1), distinct((2, 12, 24), 2)
    runs = []
    for m, k, n in ((1, 3, 24), (20, 12, 5), (9, 11, 10), (20, 12, 24)):
        x, y = distinct((2, m, k), m), distinct((2, k, n), n)
        runs.append(
            ({"a": x, "b": y}, [np.stack([loops(i, j) for i, j in zip(x, y, strict=True)])])
        )
    wide = np.stack([loops(i, j) for i, j in zip(a, b, strict=True)])
    args = [In("a", a, (2, 20, 12)), In("b", b, (2, 12, 24))]
    return OpCase("aten.bmm.default", args, [wide], runs)


CASES = [
    *(mm(*s) for s in SIZES),
    mm(64, 64, 64),
    mm(128, 32, 16),
    mm(40, 3, 520),
    mm(300, 20, 2),
    *(bmm(2, *s) for s in SIZES),
    bmm(5, 1, 7, 1),
    bmm(2, 40, 9, 70, SMALL_GRID),
    bmm(9, 2, 9, 3, SMALL_GRID),
    linear((4, 64), 32),
    linear((4, 64), 32, bias=False),
    linear((64,), 5),
    linear((2, 3, 5, 7), 9),
    linear((1, 1025), 3),
    linear((3, 70), 33, limits={"max_storage_buffer_binding_size": 8960}),
    linear((9, 70), 33, limits={"max_storage_buffer_binding_size": 8960}),
    linear((40, 9), 70, limits=SMALL_GRID),
    addmm(4, 15, 32, (32,)),
    addmm(16, 16, 32, (16, 32), 0.5, -2),
    addmm(9, 5, 17, (9, 1), 2.0),
    addmm(300, 5, 2, (300, 1), 2.0, 3),
    addmm(3, 5, 17, (1, 17), 1, 0.25),
    addmm(9, 5, 17, (), 3),
    addmm(9, 5, 17, (17,), 0),
    *(mm(m, 18, 20, w) for w in WIDTHS for m in (3, 20)),
    *(linear((m, 18), 20, limits=w) for w in WIDTHS for m in (3, 20)),
    live_linear(64),
    live_linear(63),
    live_bmm(),
    live_mm(),
    live_addmm(),
]

TILES = [
    *(mm(*s) for s in SIZES),
    mm(70, 40, 130),
    *(bmm(2, *s) for s in SIZES[-2:]),
    bmm(2, 40, 9, 70, SMALL_GRID),
    bmm(9, 2, 9, 3, SMALL_GRID),
    linear((3, 70), 33, limits={"max_storage_buffer_binding_size": 8960}),
    linear((9, 70), 33, limits={"max_storage_buffer_binding_size": 8960}),
    addmm(16, 16, 32, (16, 32), 0.5, -2),
    addmm(3, 5, 17, (1, 17), 1, 0.25),
    addmm(300, 5, 2, (300, 1), 2.0, 3),
    *(linear((m, 18), 20, limits=w) for w in WIDTHS[:1] for m in (3, 20)),
    live_linear(63),
    live_bmm(),
]


@pytest.mark.parametrize("c", CASES, ids=str)
def test_cpu(c):
    check(c)


def test_browser(gpu):
    check_all(CASES, gpu)


def test_browser_hardware_routes(gpu):
    with hardware_routes(gpu):
        check_all(TILES, gpu)


@pytest.mark.slow
def test_browser_full_grid(gpu):
    """Enough tiles for the widest ones, and a depth that fills every lane."""
    with hardware_routes(gpu):
        for c in (mm(700, 33, 770), linear((3, 2048), 70), mm(2, 2000, 300), *CASES):
            c.atol = 1e-4
            check(c, gpu)


def test_input_is_not_read_when_beta_is_zero():
    c = addmm(2, 3, 4, (4,), 0)
    c.args[0].array[:] = np.nan
    check(c)


def test_input_is_not_read_when_beta_is_zero_in_browser(gpu):
    for m in (2, 20):
        c = addmm(m, 3, 4, (4,), 0)
        c.args[0].array[:] = np.nan
        check(c, gpu)


@pytest.mark.parametrize(
    ("op", "shapes", "kind", "text"),
    [
        ("aten.mm.default", [(3, 4), (5, 6)], ShapeError, r"a \[3, 4\] and b \[5, 6\]"),
        ("aten.mm.default", [(3,), (3, 6)], ShapeError, r"must be \[M, K\]"),
        ("aten.bmm.default", [(2, 3, 4), (3, 4, 5)], ShapeError, r"must be \[B, M, K\]"),
        ("aten.bmm.default", [(3, 4), (4, 5)], ShapeError, r"must be \[B, M, K\]"),
        ("aten.linear.default", [(2, 4), (3, 5)], ShapeError, r"must be \[..., K\]"),
        ("aten.linear.default", [(), (3, 5)], ShapeError, r"must be \[..., K\]"),
        ("aten.linear.default", [(2, 5), (3, 5), (4,)], ShapeError, r"bias \[4\], must be \[3\]"),
        ("aten.addmm.default", [(3,), (2, 5), (5, 4)], ShapeError, "does not broadcast"),
        ("aten.addmm.default", [(1, 2, 4), (2, 5), (5, 4)], ShapeError, "does not broadcast"),
        ("aten.addmm.default", [(4,), (2, 5), (4, 4)], ShapeError, "mat2"),
    ],
)
def test_refused_before_any_buffer(op, shapes, kind, text):
    args = [In(f"t{i}", distinct(s, i)) for i, s in enumerate(shapes)]
    with pytest.raises(kind, match=text) as caught:
        check(OpCase(op, args, []))
    assert "[buffers created: 0]" in str(caught.value)


@pytest.mark.parametrize("op", ["aten.mm.default", "aten.linear.default"])
def test_integers_are_refused(op):
    args = [In("a", np.ones((2, 2), np.int32)), In("b", distinct((2, 2)))]
    with pytest.raises(DtypeError, match="int32, must be float32") as caught:
        check(OpCase(op, args, []))
    assert "[buffers created: 0]" in str(caught.value)
