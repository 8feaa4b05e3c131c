"""quantize_per_tensor and dequantize_per_tensor: ties, saturation, tails, live shapes, errors."""

import numpy as np
import pytest

from ops.opcase import Const, In, OpCase, check, check_all, distinct
from webgpu_py import DtypeError, UnsupportedOperator

QUANTIZE = "quantized_decomposed.quantize_per_tensor.default"
DEQUANTIZE = "quantized_decomposed.dequantize_per_tensor.default"
WIDTHS = [{"max_compute_invocations_per_workgroup": w} for w in (1, 32, 64, 128)]
SMALL_GRID = {"max_compute_workgroups_per_dimension": 4}


def codes_of(x, scale, zero_point, low=-128, high=127):
    """One element at a time: a float32 product, then Python's round, which is half to even."""
    inverse = np.float32(1 / scale)
    steps = [round(float(np.float32(v) * inverse)) for v in x.reshape(-1)]
    codes = [min(max(s + zero_point, low), high) for s in steps]
    return np.array(codes, np.int8).reshape(x.shape)


def quantize(x, scale, zero_point, *bounds, limits=None):
    expected = codes_of(x, scale, zero_point, *bounds)
    args = [In("x", x), scale, zero_point, *(bounds or (-128, 127)), None]
    return OpCase(QUANTIZE, args, [expected], limits=limits)


def values_of(q, scale, zero_point):
    return ((q.astype(np.float64) - zero_point) * float(np.float32(scale))).astype(np.float32)


def dequantize(q, scale, zero_point, limits=None):
    args = [Const(q, prepack=True), scale, zero_point, -128, 127, None, None]
    return OpCase(
        DEQUANTIZE, args, [values_of(q, scale, zero_point)], limits=limits, atol=0, rtol=0
    )


def live_dequantize():
    runs = [({"q": every_code(n)}, [values_of(every_code(n), 0.07, 3)]) for n in (1, 30, 7)]
    args = [In("q", every_code(30), (30,)), 0.07, 3]
    return OpCase(DEQUANTIZE, args, [values_of(every_code(30), 0.07, 3)], runs, atol=0, rtol=0)


def live_case():
    x = distinct((8, 5), 1)
    runs = []
    for n in (1, 8, 3):
        y = distinct((n, 5), n)
        runs.append(({"x": y}, [codes_of(y, 0.01, 3)]))
    return OpCase(QUANTIZE, [In("x", x, (8, 5)), 0.01, 3, -128, 127], [codes_of(x, 0.01, 3)], runs)


def every_code(n=256):
    return (np.arange(n) % 256 - 128).astype(np.int8)


CASES = [
    quantize(distinct((4, 8), 1), 0.05, 0),
    quantize(distinct((2, 2, 4), 2), 0.1, 5),
    quantize(distinct((16,), 3), 0.02, -13),
    quantize((np.arange(16, dtype=np.float32) - 8) * np.float32(0.025), 0.05, 0),
    quantize(np.array([1e30, -1e30, 3.4e38, -0.0, 127.5, -128.5], np.float32), 1, -7),
    quantize(distinct((37,), 4), 0.004, 2, -127, 100),
    quantize(np.float32(0.3), 0.01, 1),
    *(quantize(distinct((n,), n), 0.007, -1) for n in (1, 2, 3, 1023, 1024, 1025, 1026)),
    quantize(distinct((999,), 5), 0.0031, 9, limits={**WIDTHS[2], **SMALL_GRID}),
    *(quantize(distinct((301,), 6), 0.0031, 9, limits=w) for w in WIDTHS),
    live_case(),
    live_dequantize(),
    *(dequantize(every_code(), s, z) for s, z in ((0.05, 0), (0.1, 7), (0.3, -128), (1e-20, 127))),
    *(dequantize(every_code(n), 0.07, 3) for n in (1, 5, 1023, 1025)),
    *(dequantize(every_code(301), 0.07, 3, w) for w in WIDTHS),
]


@pytest.mark.parametrize("c", CASES, ids=str)
def test_cpu(c):
    check(c)


def test_browser(gpu):
    check_all(CASES, gpu)


@pytest.mark.parametrize(
    ("op", "x", "scalars", "kind", "text"),
    [
        (QUANTIZE, np.int32([1]), (0.1, 0, -128, 127), DtypeError, "x is int32"),
        (DEQUANTIZE, np.uint8([1]), (0.1, 0, -128, 127), DtypeError, "x is uint8"),
        (QUANTIZE, distinct((2,)), (0.0, 0, -128, 127), UnsupportedOperator, "scale=0"),
        (QUANTIZE, distinct((2,)), (1e-40, 0, -128, 127), UnsupportedOperator, "exceeds"),
        (DEQUANTIZE, np.int8([1]), (-1.0, 0, -128, 127), UnsupportedOperator, "scale=-1"),
        (DEQUANTIZE, np.int8([1]), (float("nan"), 0), UnsupportedOperator, "scale=nan"),
        (QUANTIZE, distinct((2,)), (0.1, 128, -128, 127), UnsupportedOperator, "-128 to 127"),
        (QUANTIZE, distinct((2,)), (0.1, 0.5, -128, 127), UnsupportedOperator, "an integer"),
        (QUANTIZE, distinct((2,)), (0.1, 0, 128, 255), UnsupportedOperator, "no int8"),
    ],
)
def test_refused_before_any_buffer(op, x, scalars, kind, text):
    with pytest.raises(kind, match=text) as caught:
        check(OpCase(op, [In("x", x), *scalars], []))
    assert "[buffers created: 0]" in str(caught.value)
