"""Binary arithmetic: formulas, broadcasting, integers, edge sizes, live shapes, errors."""

import math

import numpy as np
import pytest

from ops.opcase import Const, In, OpCase, check, check_all, distinct
from webgpu_py import DtypeError, ShapeError, UnsupportedOperator

FORMULAS = {
    "aten.add.Tensor": lambda a, b, k: a + k * b,
    "aten.sub.Tensor": lambda a, b, k: a - k * b,
    "aten.mul.Tensor": lambda a, b, k: a * b,
}


def case(op, a_dims, b_dims, alpha=1, limits=None):
    a, b = distinct(a_dims, 1), distinct(b_dims, 2)
    wide = FORMULAS[op](a.astype(np.float64), b.astype(np.float64), alpha)
    scalars = [] if op == "aten.mul.Tensor" else [alpha]
    return OpCase(op, [In("a", a), In("b", b), *scalars], [wide], limits=limits)


def floor_case(mode, a, b):
    """Golden of the reference: the float32 quotient, floored; torch's own may differ by 1."""
    rounded = {"floor": np.floor, "trunc": np.trunc, None: lambda x: x}[mode]
    with np.errstate(all="ignore"):
        return OpCase("aten.div.Tensor_mode", [In("a", a), In("b", b), mode], [rounded(a / b)])


def other_cases():
    a, b = distinct((7, 11), 1, -8, 8), distinct((7, 11), 2, 0.5, 4)
    whole = np.arange(-40, 40, dtype=np.float32).reshape(8, 10)
    thirds = np.array([[3.0], [-7.0], [0.1], [10.0], [1.0], [7.0], [-3.0], [49.0]], np.float32)
    nan = np.array([1, np.nan, 3, -0.0], np.float32)
    other = np.array([np.nan, 2, 2, 5], np.float32)
    base = np.array([0.1, 2.5, 3, -2, -2, -2, -1.5, 0, 0, 1.5, -3, 2, 7.25, -0.5], np.float32)
    power = np.array([-2, 1.75, 3, 3, 2, -3, 0.5, 0, 2, 0.5, 0, -70.5, 1, 67], np.float32)
    powers = [
        math.nan if x < 0 and y % 1 else float(x) ** float(y)
        for x, y in zip(base, power, strict=True)
    ]
    return [
        OpCase("aten.div.Tensor", [In("a", a), In("b", b)], [a.astype(np.float64) / b]),
        OpCase("aten.div.Tensor", [In("a", a), In("b", b[:, :1])], [a / b[:, :1].astype(float)]),
        *(floor_case(mode, a, b) for mode in ("floor", "trunc", None)),
        *(floor_case(mode, whole * thirds, thirds) for mode in ("floor", "trunc")),
        *(
            floor_case(
                mode,
                np.array([-1.5, 1.5, 0, -np.inf, np.inf, 7, -7, np.nan], np.float32),
                np.array([[np.inf], [-np.inf], [2], [0], [np.nan]], np.float32),
            )
            for mode in ("floor", "trunc", None)
        ),
        OpCase("aten.minimum.default", [In("a", a), In("b", b)], [np.where(a < b, a, b)]),
        OpCase(
            "aten.minimum.default",
            [In("a", nan), In("b", other)],
            [np.array([np.nan, np.nan, 2, -0.0])],
        ),
        OpCase("aten.pow.Tensor_Tensor", [In("a", base), In("b", power)], [powers]),
        OpCase(
            "aten.pow.Tensor_Tensor",
            [
                In("a", np.array([np.nan, 1, -1, np.nan, 2], np.float32)),
                In("b", np.array([0, np.nan, -np.inf, -np.inf, np.nan], np.float32)),
            ],
            [np.array([1, 1, 1, np.nan, np.nan])],
        ),
    ]


def integer_cases():
    a = np.array([7, -7, 7, -7, 2**31 - 1, -(2**31), 6, 0, 5], np.int32)
    b = np.array([2, 2, -2, -2, 3, -1, 3, 4, 0], np.int32)
    wrap = lambda values: np.array([(v + 2**31) % 2**32 - 2**31 for v in values], np.int32)  # noqa: E731
    pairs = [(int(x), int(y)) for x, y in zip(a, b, strict=True)]
    floor = [0 if y == 0 else x // y for x, y in pairs]
    trunc = [0 if y == 0 else int(math.copysign(abs(x) // abs(y), x * y)) for x, y in pairs]
    exponents = np.array([3, 2, -1, 0, 2, 3, 13, 5, -2], np.int32)
    bases = np.array([-3, 2, -1, 9, 2**16, -7, 6, 0, 4], np.int32)
    powers = [-27, 4, -1, 1, 2**32, -343, 6**13, 0, 0]
    args = [In("a", a), In("b", b)]
    wide = [In("a", a), In("b", distinct((3, 1), 4, -2, 2))]
    return [
        OpCase("aten.add.Tensor", [*args, 3], [wrap([x + 3 * y for x, y in pairs])]),
        OpCase("aten.sub.Tensor", [*args, 2], [wrap([x - 2 * y for x, y in pairs])]),
        OpCase("aten.mul.Tensor", args, [wrap([x * y for x, y in pairs])]),
        OpCase("aten.minimum.default", args, [np.array([min(p) for p in pairs], np.int32)]),
        OpCase("aten.div.Tensor_mode", [*args, "floor"], [wrap(floor)]),
        OpCase("aten.div.Tensor_mode", [*args, "trunc"], [wrap(trunc)]),
        OpCase(
            "aten.div.Tensor",
            [In("a", a[:8]), In("b", b[:8])],
            [[x / y for x, y in pairs[:8]]],
        ),
        OpCase("aten.pow.Tensor_Tensor", [In("a", bases), In("b", exponents)], [wrap(powers)]),
        OpCase("aten.mul.Tensor", wide, [a.astype(float) * wide[1].array]),
    ]


WIDTHS = (1, 32, 64, 128)
CASES = [
    *(case(op, (37, 41), (37, 41), 3) for op in FORMULAS),
    *(case(op, (3, 5, 7, 11), (1, 5, 1, 11), 0.5) for op in FORMULAS),
    *other_cases(),
    *integer_cases(),
    case("aten.add.Tensor", (), ()),
    case("aten.add.Tensor", (), (3, 3)),
    case("aten.add.Tensor", (5, 8), (5, 1)),
    case("aten.sub.Tensor", (1, 8), (3, 1, 1)),
    case("aten.sub.Tensor", (2, 3, 8), (3, 1)),
    case("aten.mul.Tensor", (4,), (3, 4)),
    case("aten.mul.Tensor", (2, 12), (2, 1)),
    case("aten.add.Tensor", (2, 1, 2, 1, 2, 1, 2, 3), (1, 2, 1, 2, 1, 2, 2, 1)),
    *(case("aten.add.Tensor", (n,), (n,)) for n in (1, 3, 1020, 1023, 1024, 1025)),
    case("aten.add.Tensor", (5000,), (5000,), limits={"max_compute_workgroups_per_dimension": 4}),
    *(
        case("aten.mul.Tensor", (130, 3), (3,), limits={"max_compute_invocations_per_workgroup": w})
        for w in WIDTHS
    ),
]


def live_case():
    a, b = distinct((5, 4), 1), distinct((4,), 2)
    runs = []
    for n in (1, 8, 3, 8):
        x = distinct((n, 4), n)
        runs.append(({"a": x}, [x.astype(np.float64) + b]))
    return OpCase(
        "aten.add.Tensor",
        [In("a", a, (8, 4)), Const(b, prepack=True)],
        [a.astype(np.float64) + b],
        runs,
    )


@pytest.mark.parametrize("c", [*CASES, live_case()], ids=str)
def test_cpu(c):
    check(c)


def test_browser(gpu):
    check_all([*CASES, live_case()], gpu)


ADD = "aten.add.Tensor"
WHOLE = np.arange(4, dtype=np.int32)


@pytest.mark.parametrize(
    ("op", "args", "kind", "text"),
    [
        (ADD, [distinct((3, 4)), distinct((3,))], ShapeError, "do not broadcast"),
        (ADD, [distinct((1,) * 9), distinct((1,))], ShapeError, "rank 9"),
        (ADD, [WHOLE.astype(np.int8), distinct((4,))], DtypeError, "a is int8"),
        (ADD, [WHOLE, WHOLE, 0.5], UnsupportedOperator, "must be an integer"),
        ("aten.div.Tensor_mode", [WHOLE, WHOLE, "ceil"], UnsupportedOperator, "mode is 'ceil'"),
    ],
)
def test_refused_before_any_buffer(op, args, kind, text):
    a, b, *scalars = args
    with pytest.raises(kind, match=text) as caught:
        check(OpCase(op, [In("a", a), In("b", b), *scalars], []))
    assert "[buffers created: 0]" in str(caught.value)
