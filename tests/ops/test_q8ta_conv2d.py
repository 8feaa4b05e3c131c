"""et_vk.q8ta_conv2d, _pw, _dw, _transposed: bytes exact, padding, groups, tails, live sizes."""

import numpy as np
import pytest

from ops.naive import convolved
from ops.opcase import Const, In, OpCase, check, check_all, distinct
from webgpu_py import DtypeError, ShapeError, UnsupportedOperator

PLAIN = "et_vk.q8ta_conv2d.default"
PW = "et_vk.q8ta_conv2d_pw.default"
DW = "et_vk.q8ta_conv2d_dw.default"
TRANSPOSED = "et_vk.q8ta_conv2d_transposed.default"
f32 = np.float32
SCALE, ZERO, OUT_SCALE, OUT_ZERO = 0.0234, -12, 0.09, 7


def codes(dims, seed=0):
    return np.random.default_rng(seed).integers(-128, 128, dims, np.int8)


def requantized(sums, scales, bias, activation="none"):
    each = (slice(sums.shape[1]), None, None)
    values = sums.astype(f32) * f32(SCALE) * scales[each]
    values = values if bias is None else values + bias[each]
    values = np.maximum(values, f32(0)) if activation == "relu" else values
    steps = [round(float(v)) for v in (values * f32(1 / OUT_SCALE)).reshape(-1)]
    return np.array([min(max(s + OUT_ZERO, -128), 127) for s in steps], np.int8).reshape(sums.shape)


def conv(
    dims,
    oc,
    kernel,
    stride=(1, 1),
    pad=(0, 0),
    dilation=(1, 1),
    groups=1,
    op=PLAIN,
    out_pad=(0, 0),
    bias=True,
    row_pad=0,
    activation="none",
    live=(),
    limits=None,
):
    x, per_in = codes(dims, 1), dims[1] // groups
    w = codes((oc, *kernel, per_in), 2)
    scales = distinct((oc + row_pad,), 3, 0.001, 0.01)
    c = distinct((oc + row_pad,), 4) if bias else None
    if op == DW:
        weight = np.moveaxis(w[..., 0], 0, -1)
    else:
        weight = np.pad(w.reshape(oc, -1), [(0, 0), (0, row_pad)], constant_values=99)

    def expected(x):
        shifted = x.astype(np.int64) - ZERO
        taps = np.moveaxis(w, -1, 1).astype(np.int64)
        window = (stride, pad, dilation, groups, out_pad, op == TRANSPOSED)
        return requantized(convolved(shifted, taps, *window), scales, c, activation)

    args = [
        In("x", x, dims if live else None),
        SCALE,
        ZERO,
        Const(np.ascontiguousarray(weight)),
        Const(np.zeros(oc, np.int32)),
        Const(scales),
        OUT_SCALE,
        OUT_ZERO,
        Const(c) if bias else None,
        list(kernel),
        list(stride),
        list(pad),
        *([list(out_pad)] if op == TRANSPOSED else []),
        list(dilation),
        groups,
        activation,
    ]
    runs = [({"x": codes((*dims[:2], *size), size[0])},) for size in live]
    runs = [(r, [expected(r["x"])]) for (r,) in runs]
    return OpCase(op, args, [expected(x)], runs, limits=limits)


CASES = [
    conv((1, 8, 8, 8), 8, (3, 3), pad=(1, 1)),
    conv((2, 4, 5, 7), 6, (3, 3), (2, 2), (1, 1)),
    conv((1, 3, 8, 8), 8, (3, 5), (1, 1), (1, 2), row_pad=3),
    conv((1, 2, 9, 9), 3, (3, 3), (1, 2), (2, 2), (2, 2), bias=False),
    conv((1, 6, 4, 5), 4, (2, 2), groups=2, activation="relu"),
    conv((1, 1, 1, 1), 1, (1, 1)),
    conv((2, 5, 6, 3), 8, (1, 1), op=PW),
    conv((1, 8, 4, 4), 4, (1, 1), op=PW, bias=False),
    conv((2, 8, 7, 7), 8, (3, 3), pad=(1, 1), groups=8, op=DW),
    conv((1, 5, 8, 6), 5, (3, 2), (2, 1), (2, 1), (2, 1), groups=5, op=DW),
    conv((1, 8, 4, 4), 8, (2, 2), (2, 2), op=TRANSPOSED),
    conv((2, 3, 4, 5), 6, (3, 3), (2, 2), (1, 1), op=TRANSPOSED, out_pad=(1, 1), row_pad=1),
    conv((1, 4, 3, 3), 2, (3, 2), (1, 3), (1, 0), (2, 1), 2, TRANSPOSED, bias=False),
    conv((1, 3, 8, 6), 5, (3, 3), pad=(1, 1), live=((1, 1), (8, 6), (3, 5), (8, 6))),
    conv((1, 4, 6, 5), 5, (1, 1), op=PW, live=((1, 1), (6, 5), (2, 3))),
    conv((1, 4, 6, 5), 4, (3, 3), pad=(1, 1), groups=4, op=DW, live=((1, 1), (6, 5), (2, 3))),
    conv((1, 3, 4, 4), 5, (3, 3), (2, 2), op=TRANSPOSED, live=((1, 2), (4, 4), (3, 1))),
    conv((1, 2, 9, 10), 5, (3, 3), limits={"max_compute_workgroups_per_dimension": 4}),
    *(
        conv((1, 2, 5, 5), 3, (3, 3), limits={"max_compute_invocations_per_workgroup": w})
        for w in (1, 32, 64, 128)
    ),
]


@pytest.mark.parametrize("c", CASES, ids=str)
def test_cpu(c):
    check(c)


def test_browser(gpu):
    check_all(CASES, gpu)


@pytest.mark.parametrize(
    ("change", "kind", "text"),
    [
        ({0: In("x", distinct((1, 4, 6, 6)))}, DtypeError, "x is float32"),
        ({0: In("x", codes((4, 6, 6)))}, ShapeError, r"must be \[N, C, H, W\]"),
        ({0: In("x", codes((1, 5, 6, 6)))}, ShapeError, "groups=2, must divide 5"),
        ({0: In("x", codes((1, 6, 6, 6)))}, ShapeError, r"weight .*, must hold \[6, 27\]"),
        ({0: In("x", codes((1, 4, 1, 6)))}, ShapeError, "1 x 6 gives -1 x 4"),
        ({5: Const(distinct((5,)))}, ShapeError, "weight_scales .* must hold 6"),
        ({8: Const(distinct((5,)))}, ShapeError, "bias .* must hold 6"),
        ({9: [3, 3, 3]}, ShapeError, "kernel_size .* one or two"),
        ({10: [0, 1]}, ShapeError, r"stride \[0, 1\], must be at least 1"),
        ({11: [-1, 0]}, ShapeError, r"padding \[-1, 0\], must be at least 0"),
        ({13: 0}, ShapeError, "groups=0"),
        ({14: "elu"}, UnsupportedOperator, "'none' and 'relu'"),
        ({6: 0.0}, UnsupportedOperator, "output_scale=0"),
    ],
)
def test_refused_before_any_buffer(change, kind, text):
    c = conv((1, 4, 6, 6), 6, (3, 3), groups=2)
    for i, value in change.items():
        c.args[i] = value
    with pytest.raises(kind, match=text) as caught:
        check(c)
    assert "[buffers created: 0]" in str(caught.value)


def test_too_many_products_for_an_int32_sum():
    c = conv((1, 4, 6, 6), 6, (3, 3), groups=2)
    c.args[3] = Const(np.zeros((6, 320000), np.int8))
    c.args[9], c.args[11] = [400, 400], [300, 300]
    with pytest.raises(ShapeError, match="320000 products a result, allowed are 65793"):
        check(c)


def test_depthwise_weight_must_match():
    c = conv((1, 4, 6, 6), 4, (3, 3), groups=4, op=DW)
    c.args[13] = 2
    with pytest.raises(ShapeError, match=r"groups=2, must be \[3, 3, 4\] and 4") as caught:
        check(c)
    assert "[buffers created: 0]" in str(caught.value)
