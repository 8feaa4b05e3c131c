"""Unary functions: formulas, edge sizes, special values, integers, live shapes, errors."""

import math

import numpy as np
import pytest

from ops.opcase import In, OpCase, check, check_all, distinct
from webgpu_py import DtypeError, UnsupportedOperator

FORMULAS = {
    "aten.abs.default": (abs, -6, 6),
    "aten.neg.default": (lambda v: -v, -6, 6),
    "aten.exp.default": (math.exp, -5, 5),
    "aten.sqrt.default": (math.sqrt, 0.05, 12),
    "aten.rsqrt.default": (lambda v: 1 / math.sqrt(v), 0.5, 12),
    "aten.sin.default": (math.sin, -6, 6),
    "aten.cos.default": (math.cos, -6, 6),
    "aten.round.default": (round, -6, 6),
    "aten.tanh.default": (math.tanh, -20, 20),
    "aten.sigmoid.default": (lambda v: 1 / (1 + math.exp(-v)), -12, 12),
    "aten.relu.default": (lambda v: max(v, 0), -6, 6),
    "aten.hardswish.default": (lambda v: v * min(max(v + 3, 0), 6) / 6, -6, 6),
}
INNER = math.sqrt(2 / math.pi)
WITH_SCALARS = [
    ("aten.clamp.default", [-2, 3.5], lambda v: min(max(v, -2), 3.5)),
    ("aten.clamp.default", [None, 3], lambda v: min(v, 3)),
    ("aten.clamp.default", [-1.5], lambda v: max(v, -1.5)),
    ("aten.clamp.default", [2, -2], lambda v: -2),
    ("aten.hardtanh.default", [], lambda v: min(max(v, -1), 1)),
    ("aten.hardtanh.default", [-2.0, 2], lambda v: min(max(v, -2), 2)),
    ("aten.pow.Tensor_Scalar", [2], lambda v: v**2),
    ("aten.pow.Tensor_Scalar", [-3.0], lambda v: v**-3),
    ("aten.pow.Tensor_Scalar", [21], lambda v: v**21),
    ("aten.pow.Tensor_Scalar", [0.5], lambda v: math.sqrt(v) if v >= 0 else math.nan),
    ("aten.pow.Tensor_Scalar", [-1.25], lambda v: v**-1.25 if v >= 0 else math.nan),
    ("aten.leaky_relu.default", [], lambda v: v if v > 0 else 0.01 * v),
    ("aten.leaky_relu.default", [0.2], lambda v: v if v > 0 else 0.2 * v),
    ("aten.gelu.default", [], lambda v: 0.5 * v * math.erfc(-v / math.sqrt(2))),
    ("aten.gelu.default", ["none"], lambda v: 0.5 * v * math.erfc(-v / math.sqrt(2))),
    (
        "aten.gelu.default",
        ["tanh"],
        lambda v: 0.5 * v * (1 + math.tanh(INNER * (v + 0.044715 * v**3))),
    ),
]


def golden(formula, x):
    return np.array([formula(float(v)) for v in x.ravel()]).reshape(x.shape)


def case(op, shape, limits=None):
    formula, low, high = FORMULAS[op]
    x = distinct(shape, 1, low, high)
    return OpCase(op, [In("x", x)], [golden(formula, x)], limits=limits)


def special(op, values, expected):
    x = np.array(values, np.float32)
    return OpCase(op, [In("x", x)], [np.array(expected, np.float64)], rtol=1e-5, atol=2e-5)


NAN, INF = math.nan, math.inf
LARGE = np.array([100, -1000.5, 8192, 4095.25, -31416.0, 99999], np.float32)
# Quarters of a turn that nearly cancel at 5e15 and 2^120; ends of the range.
FAR = np.array(
    [65536, -65537.5, 1e6, -3e9, 5.319372648326541e15, -1e20, 2.0**120, 3.4028235e38, INF, -INF],
    np.float32,
)
CASES = [
    *(case(op, (7, 41)) for op in FORMULAS),
    *(
        OpCase(
            op,
            [In("x", distinct((5, 30), 3, -6, 6)), *scalars],
            [golden(formula, distinct((5, 30), 3, -6, 6))],
            atol=2e-6,
        )
        for op, scalars, formula in WITH_SCALARS
    ),
    *(case("aten.sigmoid.default", (n,)) for n in (1, 2, 3, 4, 5, 1020, 1024, 1025)),
    case("aten.exp.default", ()),
    case("aten.abs.default", (6000,), {"max_compute_workgroups_per_dimension": 4}),
    *(
        case("aten.relu.default", (517,), {"max_compute_invocations_per_workgroup": w})
        for w in (1, 32, 64, 128)
    ),
    special("aten.round.default", [0.5, 1.5, 2.5, -0.5, -1.5, 2.4999], [0, 2, 2, 0, -2, 2]),
    special("aten.sigmoid.default", [200, -200, 1e30, -1e30, NAN], [1, 0, 1, 0, NAN]),
    special("aten.tanh.default", [200, -200, 1e30, 0], [1, -1, 1, 0]),
    special("aten.gelu.default", [50, -50, 1e6, -1e6, NAN], [50, 0, 1e6, 0, NAN]),
    special("aten.relu.default", [NAN, -INF, INF, -0.0], [NAN, 0, INF, 0]),
    special("aten.exp.default", [-200, 80, NAN], [0, math.exp(80), NAN]),
    OpCase(
        "aten.sigmoid.default",
        [In("x", np.array([-17.5, -36.457233, -80, 40], np.float32))],
        [[1 / (1 + math.exp(-float(v))) for v in np.float32([-17.5, -36.457233, -80, 40])]],
        atol=0,
        rtol=2e-5,
    ),
    special("aten.rsqrt.default", [0, -0.0, -1, INF, NAN], [INF, -INF, NAN, 0, NAN]),
    special("aten.hardswish.default", [3e38, -3e38, NAN, INF], [3e38, 0, NAN, INF]),
    *(
        OpCase("aten.pow.Tensor_Scalar", [In("x", np.array(x, np.float32)), y], [want])
        for x, y, want in [
            ([NAN, INF, -INF, 0], 0.0, [1, 1, 1, 1]),
            ([1, 2, NAN], NAN, [1, NAN, NAN]),
            ([1, -1, 2, -0.5, NAN], INF, [1, 1, INF, 0, NAN]),
            ([1, -1, 2, 0.5, NAN], -INF, [1, 1, 0, INF, NAN]),
        ]
    ),
    *(
        special(op, FAR, [NAN if math.isinf(v) else function(v) for v in FAR])
        for op, function in (("aten.sin.default", math.sin), ("aten.cos.default", math.cos))
    ),
    special("aten.sin.default", LARGE, [math.sin(v) for v in LARGE]),
    special("aten.cos.default", LARGE, [math.cos(v) for v in LARGE]),
    *(
        OpCase(op, [In("x", x), *scalars], [np.array(expected, np.int32)])
        for x in [np.array([3, -2, 0, 2**31 - 1, -7], np.int32)]
        for op, scalars, expected in [
            ("aten.abs.default", [], [3, 2, 0, 2**31 - 1, 7]),
            ("aten.neg.default", [], [-3, 2, 0, -(2**31) + 1, 7]),
            ("aten.relu.default", [], [3, 0, 0, 2**31 - 1, 0]),
            ("aten.clamp.default", [-2, 2.0], [2, -2, 0, 2, -2]),
            ("aten.clamp.default", [0], [3, 0, 0, 2**31 - 1, 0]),
        ]
    ),
]


def live_case(op="aten.sigmoid.default"):
    def run(n):
        x = distinct((n, 3), n, *FORMULAS[op][1:])
        return x, [golden(FORMULAS[op][0], x)]

    first, expected = run(5)
    runs = [({"x": x}, y) for x, y in map(run, (1, 8, 2, 8))]
    return OpCase(op, [In("x", first, (8, 3))], expected, runs)


@pytest.mark.parametrize("c", [*CASES, live_case()], ids=str)
def test_cpu(c):
    check(c)


def test_browser(gpu):
    check_all([*CASES, live_case()], gpu)


def test_more_groups_than_one_dimension_has(gpu):
    x = distinct((4 * 65535 + 1,), 0, -6, 6)
    one = {"max_compute_invocations_per_workgroup": 1}
    check(OpCase("aten.abs.default", [In("x", x)], [abs(x)], limits=one), gpu)


WHOLE = np.arange(4, dtype=np.int32)


@pytest.mark.parametrize(
    ("op", "args", "kind", "text"),
    [
        ("aten.exp.default", [WHOLE], DtypeError, "x is int32"),
        ("aten.abs.default", [WHOLE.astype(np.int8)], DtypeError, "x is int8"),
        ("aten.clamp.default", [WHOLE, 0.5], DtypeError, "bound 0.5"),
        ("aten.clamp.default", [distinct((3,)), "1"], UnsupportedOperator, "'low' is a String"),
        ("aten.gelu.default", [distinct((3,)), "fast"], UnsupportedOperator, "'fast'"),
    ],
)
def test_refused_before_any_buffer(op, args, kind, text):
    x, *scalars = args
    with pytest.raises(kind, match=text) as caught:
        check(OpCase(op, [In("x", x), *scalars], []))
    assert "[buffers created: 0]" in str(caught.value)
