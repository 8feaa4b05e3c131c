"""linear_q8ta_q8csw, q8ta_linear, q8ta_linear_gemv: exact sums, rows at any byte, live rows."""

import numpy as np
import pytest

from ops.opcase import Const, In, OpCase, check, check_all, distinct
from ops.routes import hardware_routes
from webgpu_py import DtypeError, ShapeError, UnsupportedOperator

FLOAT = "et_vk.linear_q8ta_q8csw.default"
INT8 = "et_vk.q8ta_linear.default"
GEMV = "et_vk.q8ta_linear_gemv.default"
WIDTHS = [{"max_compute_invocations_per_workgroup": w} for w in (1, 32, 64, 128)]
SMALL_GRID = {"max_compute_workgroups_per_dimension": 4}
f32 = np.float32


def codes(dims, seed=0):
    return np.random.default_rng(seed).integers(-128, 128, dims, np.int8)


def values_of(x, zero, scale, w, scales, bias):
    """Sums in int64, then float32 scalars one step at a time."""
    sums = np.einsum("...k,nk->...n", x.astype(np.int64) - zero, w.astype(np.int64))
    values = sums.astype(f32) * f32(scale) * scales[: w.shape[0]]
    return values if bias is None else values + bias[: w.shape[0]]


def int8_of(values, out_scale, out_zero):
    inverse = f32(1 / out_scale)
    found = [min(max(round(float(v * inverse)) + out_zero, -128), 127) for v in values.reshape(-1)]
    return np.array(found, np.int8).reshape(values.shape)


def parts(dims, n, bias, pad=0, seed=1):
    k = dims[-1]
    x, w = codes(dims, seed), codes((n, k), seed + 1)
    scales = distinct((n + pad,), seed + 2, 0.001, 0.01)
    return x, w, scales, distinct((n + pad,), seed + 3) if bias else None


def linear(dims, n, op=INT8, bias=True, limits=None, pad=0, activation="none", live=None):
    x, w, scales, c = parts(dims, n, bias, pad)
    zero, scale, out_zero, out_scale = -5, 0.0123, 7, 0.03 * dims[-1] ** 0.5

    def expected(x):
        values = values_of(x, zero, scale, w, scales, c)
        if op == FLOAT:
            return values
        kept = np.maximum(values, 0) if activation == "relu" else values
        return int8_of(kept, out_scale, out_zero)

    given = In("x", x, live and dims)
    weight = [Const(w, prepack=True), Const(np.zeros(n, np.int32)), Const(scales)]
    last = Const(c) if bias else None
    if op == FLOAT:
        args = [given, scale, zero, *weight, last]
    else:
        args = [given, scale, zero, *weight, out_scale, out_zero, last, activation]
    runs = [({"x": codes((m, dims[-1]), m)},) for m in live or ()]
    return OpCase(
        op,
        args,
        [expected(x)],
        [(r, [expected(r["x"])]) for (r,) in runs],
        limits=limits,
    )


SHAPES = [((1, 16), 8), ((4, 32), 16), ((1, 1), 1), ((3, 7), 5), ((9, 33), 8), ((5, 6), 6)]

CASES = [
    *(linear(dims, n, op) for op in (FLOAT, INT8) for dims, n in SHAPES),
    linear((1, 1027), 4, GEMV),
    linear((1, 48), 12, GEMV, bias=False),
    linear((8, 32), 4, FLOAT, bias=False),
    linear((2, 3, 5), 4, INT8, pad=3),
    linear((17,), 8, INT8),
    linear((6, 20), 12, INT8, activation="relu"),
    linear((28, 9), 8, INT8, limits={**SMALL_GRID, **WIDTHS[0]}),
    linear((2, 9), 20, INT8, limits=SMALL_GRID),
    *(linear((m, 70), 8, INT8, limits=w) for w in WIDTHS for m in (1, 7)),
    linear((20, 13), 8, INT8, live=(1, 20, 3, 6, 20)),
    linear((20, 13), 6, FLOAT, live=(1, 20, 3)),
    linear((3, 13), 8, GEMV, live=(1, 3, 2)),
]


@pytest.mark.parametrize("c", CASES, ids=str)
def test_cpu(c):
    check(c)


def test_browser(gpu):
    check_all(CASES, gpu)


def test_browser_hardware_routes(gpu):
    with hardware_routes(gpu):
        check_all((*CASES[: 2 * len(SHAPES) + 3], *CASES[-3:]), gpu)


def test_browser_many_columns(gpu):
    """Thousands of requantized sums: a fused multiply-add would change some of the bytes."""
    check(linear((8, 40), 2000), gpu)


@pytest.mark.parametrize(
    ("change", "kind", "text"),
    [
        ({0: In("x", distinct((2, 8)))}, DtypeError, "x is float32"),
        ({3: In("w", distinct((4, 8)))}, DtypeError, "weight is float32"),
        ({0: In("x", codes((2, 9)))}, ShapeError, r"must be \[..., K\] and \[N, K\]"),
        ({0: In("x", codes(()))}, ShapeError, r"must be \[..., K\] and \[N, K\]"),
        ({5: Const(distinct((3,)))}, ShapeError, "weight_scales .* must hold 4"),
        ({8: Const(distinct((3,)))}, ShapeError, "bias .* must hold 4"),
        ({1: 0.0}, UnsupportedOperator, "input_scale=0"),
        ({2: 200}, UnsupportedOperator, "input_zero_point=200"),
        ({6: -1.0}, UnsupportedOperator, "output_scale=-1"),
        ({9: "gelu"}, UnsupportedOperator, "'none' and 'relu'"),
        (
            {0: In("x", codes((1, 65794))), 3: Const(codes((4, 65794)))},
            ShapeError,
            "K=65794, allowed are 65793",
        ),
    ],
)
def test_refused_before_any_buffer(change, kind, text):
    c = linear((2, 8), 4)
    for i, value in change.items():
        c.args[i] = value
    with pytest.raises(kind, match=text) as caught:
        check(c)
    assert "[buffers created: 0]" in str(caught.value)
