"""Comparisons, logic, bitwise, where: dtypes, broadcasting, tails, live shapes, errors."""

import operator

import numpy as np
import pytest

from ops.opcase import In, OpCase, Sym, check, check_all, distinct
from webgpu_py import DtypeError, ShapeError, UnsupportedOperator

RELATIONS = {k: getattr(operator, k) for k in ("eq", "ne", "lt", "le", "gt", "ge")}
AND, OR, NOT = "aten.logical_and.default", "aten.logical_or.default", "aten.logical_not.default"
BIT_AND, BIT_OR, BIT_NOT = (f"aten.bitwise_{k}" for k in ("and.Tensor", "or.Tensor", "not.default"))
WHERE = "aten.where.self"
DTYPES = ("float32", "int32", "int8", "uint8", "bool")


def array(shape, dtype="float32", seed=0):
    """Small numbers, so that many are equal; negative ones where the dtype has them."""
    whole = np.random.default_rng(seed).integers(-3, 4, shape)
    if dtype == "uint8":
        whole = whole % 256
    return np.asarray(whole).astype(dtype)


def each(route, *arrays):
    """One element after the other, in Python's own numbers."""
    wide = np.broadcast_arrays(*arrays)
    found = [
        route(*(a.item() for a in one)) for one in zip(*(w.ravel() for w in wide), strict=True)
    ]
    return np.array(found).reshape(wide[0].shape)


def pair(op, route, a_dims, b_dims, a_dtype="float32", b_dtype=None, limits=None):
    a, b = array(a_dims, a_dtype, 1), array(b_dims, b_dtype or a_dtype, 2)
    return OpCase(op, [In("a", a), In("b", b)], [each(route, a, b)], limits=limits)


def compare(name, a_dims, b_dims=None, *dtypes, limits=None):
    dims = a_dims if b_dims is None else b_dims
    return pair(f"aten.{name}.Tensor", RELATIONS[name], a_dims, dims, *dtypes, limits=limits)


def scalar(name, value, dtype="float32", shape=(3, 5)):
    x = array(shape, dtype)
    expected = each(lambda v: RELATIONS[name](v, value), x)
    return OpCase(f"aten.{name}.Scalar", [In("x", x), value], [expected])


def whole(route, a, b):
    """Bits of two integers of one dtype."""
    found = [route(int(u), int(v)) for u, v in np.nditer([a, b])]
    return np.array(found).astype(a.dtype).reshape(np.broadcast_shapes(a.shape, b.shape))


def bits(op, route, a_dims, b_dims, dtype):
    a, b = array(a_dims, dtype, 1), array(b_dims, dtype, 2)
    return OpCase(op, [In("a", a), In("b", b)], [whole(route, a, b)])


def inverted(shape, dtype):
    x = array(shape, dtype)
    top = {"bool": 1, "uint8": 255, "int8": -1, "int32": -1}[dtype]
    return OpCase(BIT_NOT, [In("x", x)], [each(lambda v: top - v, x).astype(dtype)])


def where(c_dims, a_dims, b_dims, dtype="float32", limits=None):
    c = array(c_dims, "bool", 3)
    a, b = array(a_dims, dtype, 1), array(b_dims, dtype, 2)
    expected = each(lambda k, u, v: u if k else v, c, a, b).astype(dtype)
    args = [In("condition", c), In("a", a), In("b", b)]
    return OpCase(WHERE, args, [expected], limits=limits)


def nan_cases():
    a = np.array([np.nan, 1, np.nan, np.inf, -0.0], np.float32)
    b = np.array([np.nan, np.nan, 1, np.inf, 0.0], np.float32)
    equal = np.array([False, False, False, True, True])
    args = [In("a", a), In("b", b)]
    return [
        OpCase("aten.eq.Tensor", args, [equal]),
        OpCase("aten.ne.Tensor", args, [~equal]),
        OpCase("aten.lt.Tensor", args, [np.zeros(5, bool)]),
        OpCase("aten.ge.Tensor", args, [equal]),
        OpCase(NOT, [In("x", a)], [np.array([False, False, False, False, True])]),
    ]


def truth(route):
    return lambda u, v: route(bool(u), bool(v))


both, either = truth(operator.and_), truth(operator.or_)
BIG = np.array([2**31 - 1, -(2**31), 2**24 + 1, 0, 7], np.int32)
WIDTHS = [{"max_compute_invocations_per_workgroup": w} for w in (1, 32, 64, 128)]
FOLD = {"max_compute_workgroups_per_dimension": 4}
CASES = [
    *(compare(name, (n,)) for name in RELATIONS for n in (1, 67)),
    *(compare("lt", (4, 9), None, d) for d in DTYPES),
    *(compare("ge", (3, 4), (4,), d, e) for d, e in zip(DTYPES, DTYPES[::-1], strict=True)),
    compare("eq", (2, 1, 8), (3, 1)),
    compare("eq", (2, 3, 8), (3, 1), "int8"),
    compare("gt", (), (5,)),
    compare("le", (3, 1, 5), (1, 7, 1), "bool", "int32"),
    compare("eq", (4001,), limits=FOLD),
    *(compare("ne", (9, 61), limits=limits) for limits in WIDTHS),
    *(scalar(name, 1.0) for name in RELATIONS),
    *(scalar(name, v, "int32") for name in RELATIONS for v in (1, -2.5, 2**40)),
    *(scalar("eq", 1, d, (2, 4, 9)) for d in DTYPES),
    scalar("lt", -1, "int8", (7,)),
    scalar("gt", np.inf, "int32"),
    scalar("gt", -(2**40), "int32"),
    OpCase("aten.eq.Scalar", [In("x", BIG), 2**24], [np.zeros(5, bool)]),
    OpCase("aten.eq.Scalar", [In("x", np.float32([0.1, 0.2])), 0.1], [np.array([True, False])]),
    *(
        OpCase(f"aten.{k}.Tensor", [In("a", BIG), In("b", BIG[::-1].copy())], [r(BIG, BIG[::-1])])
        for k, r in RELATIONS.items()
    ),
    *(
        pair(op, route, dims, dims, "bool")
        for op, route in ((AND, both), (OR, either))
        for dims in ((4, 8), (252,), (257,), (1,))
    ),
    pair(AND, both, (3, 4), (4,), "int8", "float32"),
    pair(OR, either, (3, 1), (5,), "bool"),
    *(
        OpCase(NOT, [In("x", array((3, 7), d))], [each(lambda v: not v, array((3, 7), d))])
        for d in DTYPES
    ),
    *(
        bits(op, route, dims, dims, d)
        for op, route in ((BIT_AND, operator.and_), (BIT_OR, operator.or_))
        for d, dims in (("bool", (2, 3, 9)), ("int8", (17,)), ("uint8", (64,)), ("int32", (3, 3)))
    ),
    bits(BIT_AND, operator.and_, (3, 4), (4,), "bool"),
    bits(BIT_OR, operator.or_, (3, 1), (2, 1, 5), "int8"),
    bits(BIT_OR, operator.or_, (3, 1), (8,), "int32"),
    *(inverted((n,), d) for d in ("bool", "uint8", "int8", "int32") for n in (1, 4, 33)),
    where((4, 8), (4, 8), (4, 8)),
    where((4, 1), (4, 8), (1, 8)),
    where((8,), (4, 8), (4, 8)),
    where((3, 5), (1,), ()),
    where((2, 1, 3), (5, 1), (2, 5, 3), "int32"),
    where((3, 5), (3, 5), (5,), "int8"),
    where((7,), (7,), (7,), "bool"),
    where((2, 8), (1, 8), (2, 1), "uint8"),
    where((4001,), (4001,), (4001,), limits=FOLD),
    *(where((9, 7), (7,), (9, 1), "int8", limits) for limits in WIDTHS),
    *nan_cases(),
]


def live(op, route, dtype="float32"):
    def run(n):
        a, b = array((n, 3), dtype, n), array((3,), dtype, 50)
        return a, b, [each(route, a, b)]

    first, b, expected = run(5)
    runs = [({"a": a}, y) for a, _, y in map(run, (1, 8, 2, 8))]
    return OpCase(op, [In("a", first, (8, 3)), In("b", b)], expected, runs)


def live_where():
    def run(n):
        c, a = array((n, 1), "bool", n), array((n, 3), "float32", n)
        b = array((3,), "float32", 9)
        return {"condition": c, "a": a, "b": b}, [np.where(c, a, b)]

    (first, expected), *runs = map(run, (5, 1, 8, 2, 8))
    most = {"condition": (8, 1), "a": (8, 3)}
    args = [In(k, v, most.get(k)) for k, v in first.items()]
    return OpCase(WHERE, args, expected, runs)


def live_scalar(dtype):
    x = array((9,), dtype)
    runs = [({"v": v}, [x < v]) for v in (2, -1, 3)]
    return OpCase("aten.lt.Scalar", [In("x", x), Sym("v", 0)], [x < 0], runs)


LIVE = [
    live("aten.lt.Tensor", operator.lt),
    live(AND, both, "bool"),
    live(BIT_OR, operator.or_, "bool"),
    live_where(),
    live_scalar("float32"),
    live_scalar("int32"),
]


@pytest.mark.parametrize("c", [*CASES, *LIVE], ids=str)
def test_cpu(c):
    check(c)


def test_browser(gpu):
    check_all([*CASES, *LIVE], gpu)


X, B = distinct((3, 4)), np.ones((3, 4), bool)


@pytest.mark.parametrize(
    ("op", "args", "kind", "text"),
    [
        ("aten.eq.Tensor", [X, distinct((3,))], ShapeError, "do not broadcast"),
        ("aten.eq.Tensor", [X, X.astype(np.uint32)], DtypeError, "b is uint32"),
        (AND, [B, np.ones(5, bool)], ShapeError, "do not broadcast"),
        (BIT_AND, [X, X], DtypeError, "a is float32"),
        (BIT_AND, [B, B.astype(np.int8)], DtypeError, "must be equal"),
        (BIT_NOT, [X], DtypeError, "x is float32"),
        (WHERE, [X, X, X], DtypeError, "condition is float32"),
        (WHERE, [B, X, X.astype(np.int32)], DtypeError, "must be equal"),
        (WHERE, [B, X, distinct((3,))], ShapeError, "do not broadcast"),
    ],
)
def test_refused_before_any_buffer(op, args, kind, text):
    with pytest.raises(kind, match=text) as caught:
        check(OpCase(op, [In(f"x{k}", a) for k, a in enumerate(args)], []))
    assert "[buffers created: 0]" in str(caught.value)


def test_nan_for_integers():
    with pytest.raises(UnsupportedOperator, match="value is NaN"):
        check(OpCase("aten.eq.Scalar", [In("x", BIG), np.nan], []))
