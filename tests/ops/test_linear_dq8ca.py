"""torchao.choose_qparams_affine and et_vk.linear_dq8ca_q4gsw: any rows, live shapes, errors."""

import numpy as np
import pytest

from ops.opcase import Const, In, OpCase, check, check_all, distinct
from ops.q4case import packed, quantized, transposed
from webgpu_py import DtypeError, ShapeError, UnsupportedOperator

CHOOSE = "torchao.choose_qparams_affine.default"
LINEAR = "et_vk.linear_dq8ca_q4gsw.default"
SMALL = np.float32(6.1e-5)


def chosen(row):
    """One row in float32, step by step as the definition reads."""
    low, high = min(row.min(), np.float32(0)), max(row.max(), np.float32(0))
    scale = np.float32((high - low) / np.float32(255))
    if scale == 0:
        scale = np.float32(0.1)
    if scale < SMALL:
        old, scale = scale, SMALL
        if low == 0:
            high = SMALL * np.float32(255)
        elif high == 0:
            low = -SMALL * np.float32(255)
        else:
            low, high = low * (SMALL / old), high * (SMALL / old)
    from_low = np.float32(-128) - low / scale
    from_high = np.float32(127) - high / scale
    if abs(-128) - abs(low / scale) < 127 - abs(high / scale):
        zero = from_low
    else:
        zero = from_high
    return scale, np.int8(np.rint(np.clip(zero, -128, 127)))


def qparams(x):
    rows = [chosen(r) for r in x.reshape(-1, x.shape[-1])]
    scale = np.array([r[0] for r in rows], np.float32).reshape(x.shape[:-1])
    return scale, np.array([r[1] for r in rows], np.int8).reshape(x.shape[:-1])


def rows_of_all_kinds(m, k):
    """Wide, tiny, one-sided, all-zero and constant rows in turn."""
    x = distinct((m, k), m)
    for i in range(m):
        kind = i % 7
        if kind == 1:
            x[i] *= 1e-3
        elif kind == 2:
            x[i] = np.abs(x[i])
        elif kind == 3:
            x[i] = -np.abs(x[i]) * 1e-4
        elif kind == 4:
            x[i] = 0
        elif kind == 5:
            x[i] = np.abs(x[i]) * 1e-4
        elif kind == 6:
            x[i] = 3
    return x


def arguments(x, keepdim=None):
    block = [1] * (x.ndim - 1) + [x.shape[-1]]
    found = ["ASYMMETRIC", block, None, -128, 127, None, None, None]
    return found if keepdim is None else [*found, keepdim]


def choose_case(x, keepdim=None, limits=None):
    scale, zero = qparams(x)
    if keepdim:
        scale, zero = scale[..., None], zero[..., None]
    args = [In("x", x), *arguments(x, keepdim)]
    return OpCase(CHOOSE, args, [scale, zero], limits=limits, atol=0, rtol=1e-6)


def live_choose_case():
    xs = [rows_of_all_kinds(m, 20) for m in (9, 4, 1, 9)]
    runs = [({"x": x}, list(qparams(x))) for x in xs[1:]]
    args = [In("x", xs[0], (9, 20)), *arguments(xs[0])]
    return OpCase(CHOOSE, args, list(qparams(xs[0])), runs, atol=0, rtol=1e-6)


def linear_case(m, k, n, group, bias=False, x=None, live=None):
    codes, scales = quantized(n, k, group, seed=m)
    args, runs, wants = None, [], []
    for rows in live or (m,):
        x = distinct((rows, k), rows) if x is None or live else x
        flat = x.reshape(-1, k)
        scale, zero = qparams(flat)
        q = np.clip(np.rint(flat / scale[:, None]).astype(int) + zero[:, None], -128, 127)
        w = (codes.astype(np.float64) - 8) * scales[:, np.arange(k) // group]
        want = scale[:, None] * ((q - zero[:, None].astype(int)) @ w.T)
        if args is None:
            sums = np.full((scales.shape[1], -(-n // 8) * 8), 123, np.int32)
            most = [(m, k), (m,)] if live else [None, None]
            args = [
                In("x", x, most[0]),
                In("s", scale, most[1]),
                In("z", zero, most[1]),
                Const(packed(codes)),
                Const(sums),
                Const(transposed(scales)),
                group,
                *([Const(distinct((n,), 3))] if bias else []),
            ]
        if bias:
            want = want + args[-1].array
        wants.append([want.reshape(*x.shape[:-1], n)])
        runs.append({"x": x, "s": scale, "z": zero})
    later = list(zip(runs[1:], wants[1:], strict=True))
    return OpCase(LINEAR, args, wants[0], later, atol=1e-4, rtol=1e-4)


CASES = [
    choose_case(rows_of_all_kinds(15, 40)),
    choose_case(rows_of_all_kinds(1, 1)),
    choose_case(rows_of_all_kinds(3, 129), keepdim=True),
    choose_case(rows_of_all_kinds(21, 64).reshape(3, 7, 64), keepdim=False),
    choose_case(distinct((33,), 1)),
    *(
        choose_case(rows_of_all_kinds(6, 70), limits={"max_compute_invocations_per_workgroup": w})
        for w in (1, 32, 64)
    ),
    choose_case(rows_of_all_kinds(50, 5), limits={"max_compute_workgroups_per_dimension": 4}),
    live_choose_case(),
    linear_case(4, 64, 16, 32),
    linear_case(1, 64, 16, 32, bias=True),
    linear_case(2, 128, 8, 32),
    linear_case(3, 64, 32, 32),
    linear_case(6, 96, 20, 32, x=distinct((2, 3, 96), 2)),
    linear_case(7, 33, 5, 8, bias=True),
    linear_case(40, 64, 12, 64, live=(40, 5, 1, 40)),
]


@pytest.mark.parametrize("c", CASES, ids=str)
def test_cpu(c):
    check(c)


def test_browser(gpu):
    check_all(CASES, gpu)


@pytest.mark.parametrize(
    ("x", "changed", "kind", "text"),
    [
        (np.zeros((2, 8), np.int32), {}, DtypeError, "x is int32"),
        (np.float32(1), {}, ShapeError, "x has rank 0"),
        (np.zeros((2, 8), np.float32), {0: "SYMMETRIC"}, UnsupportedOperator, "only ASYMMETRIC"),
        (np.zeros((2, 8), np.float32), {1: [1, 4]}, ShapeError, "must be a row"),
        (np.zeros((2, 8), np.float32), {1: [2, 8]}, ShapeError, "must be a row"),
        (np.zeros((2, 8), np.float32), {3: 0}, UnsupportedOperator, r"must be \(-128, 127\)"),
        (np.zeros((2, 8), np.float32), {4: 255}, UnsupportedOperator, r"must be \(-128, 127\)"),
    ],
)
def test_choose_refused_before_any_buffer(x, changed, kind, text):
    x = np.asarray(x)
    args = arguments(x) if x.ndim else ["ASYMMETRIC", [1], None, -128, 127, None, None, None]
    for at, value in changed.items():
        args[at] = value
    with pytest.raises(kind, match=text) as caught:
        check(OpCase(CHOOSE, [In("x", x), *args], []))
    assert "[buffers created: 0]" in str(caught.value)


@pytest.mark.parametrize(
    ("changed", "kind", "text"),
    [
        ({1: In("s", np.ones(3, np.float32))}, ShapeError, "input_scale has 3 elements"),
        ({2: In("z", np.ones(5, np.int8))}, ShapeError, "input_zero_point has 5 elements"),
        ({2: In("z", np.ones(4, np.int32))}, DtypeError, "input_zero_point is int32"),
        ({3: Const(np.zeros((16, 31), np.uint8))}, ShapeError, "31 bytes"),
        ({5: Const(np.zeros((1, 16), np.float32))}, ShapeError, "G >= 2"),
        ({6: 0}, UnsupportedOperator, "must be positive"),
        ({7: Const(np.zeros(15, np.float32))}, ShapeError, "bias has 15"),
    ],
)
def test_linear_refused_before_any_buffer(changed, kind, text):
    args = [*linear_case(4, 64, 16, 32).args, None]
    for at, value in changed.items():
        args[at] = value
    with pytest.raises(kind, match=text) as caught:
        check(OpCase(LINEAR, args, []))
    assert "[buffers created: 0]" in str(caught.value)
