"""aten.convolution and et_vk.conv_with_clamp: every route, signals and images, live sizes."""

import numpy as np
import pytest

from ops.naive import convolved
from ops.opcase import Const, In, OpCase, check, check_all, distinct
from ops.routes import hardware_routes
from webgpu_py import DtypeError, ShapeError

PLAIN = "aten.convolution.default"
CLAMP = "et_vk.conv_with_clamp.default"
WIDTHS = [{"max_compute_invocations_per_workgroup": w} for w in (1, 32, 64, 128)]
SMALL_GRID = {"max_compute_workgroups_per_dimension": 4}


def conv(
    dims,
    oc,
    kernel,
    stride=1,
    pad=0,
    dilation=1,
    groups=1,
    transposed=False,
    out_pad=0,
    bias=True,
    bounds=None,
    live=(),
    limits=None,
):
    rank = len(dims) - 2
    window = [v if isinstance(v, tuple) else (v,) * rank for v in (stride, pad, dilation, out_pad)]
    x, c = distinct(dims, 1), distinct((oc,), 3)
    w = distinct((oc, dims[1] // groups, *kernel), 2)

    def expected(x):
        image, taps = x.astype(np.float64), w.astype(np.float64)
        stride, pad, dilation, out_pad = window
        if rank == 1:
            image, taps = image[:, :, None], taps[:, :, None]
            stride, pad, dilation, out_pad = (1, *stride), (0, *pad), (1, *dilation), (0, *out_pad)
        y = convolved(image, taps, stride, pad, dilation, groups, out_pad, transposed)
        y = y + c.reshape(-1, 1, 1) if bias else y
        if bounds is not None:
            low, high = bounds
            y = y if low is None else np.maximum(y, low)
            y = y if high is None else np.minimum(y, high)
        return y[:, :, 0] if rank == 1 else y

    if transposed:
        # [OC, IC / g, ...] to [IC, OC / g, ...], group by group.
        parts = w.reshape(groups, oc // groups, dims[1] // groups, *kernel).swapaxes(1, 2)
        weight = np.ascontiguousarray(parts.reshape(dims[1], oc // groups, *kernel))
    else:
        weight = w
    stride, pad, dilation, out_pad = map(list, window)
    args = [In("x", x, dims if live else None), Const(weight, prepack=True)]
    args += [Const(c) if bias else None, stride, pad, dilation, transposed, out_pad, groups]
    runs = [{"x": distinct(size, i)} for i, size in enumerate(live)]
    return OpCase(
        CLAMP if bounds is not None else PLAIN,
        [*args, *(bounds or ())],
        [expected(x)],
        [(r, [expected(r["x"])]) for r in runs],
        limits=limits,
    )


IMAGES = [
    conv((1, 8, 9, 7), 16, (3, 3), pad=1),
    conv((1, 3, 32, 32), 20, (16, 16), 16),
    conv((2, 3, 9, 8), 8, (3, 3), 2, 1),
    conv((2, 3, 7, 9), 5, (2, 3), (1, 2), (1, 0), (2, 1)),
    conv((1, 8, 6, 6), 8, (3, 3), pad=1, groups=8),
    conv((2, 8, 5, 6), 10, (3, 3), pad=1, groups=2),
    conv((1, 8, 6, 6), 8, (3, 3), pad=1, groups=4, bias=False),
    conv((2, 5, 4, 3), 7, (1, 1)),
    conv((1, 5, 4, 3), 7, (1, 1), 2, bias=False),
    conv((1, 1, 1, 1), 1, (1, 1)),
    conv((1, 4, 4, 4), 4, (2, 2), 2, transposed=True),
    conv((2, 6, 3, 5), 4, (3, 2), (2, 3), (1, 0), groups=2, transposed=True, out_pad=(1, 2)),
    conv((1, 2, 4, 3), 3, (3, 3), 1, 2, 2, transposed=True, bias=False),
    conv((1, 6, 12, 12), 9, (3, 3), limits=SMALL_GRID),
    conv((1, 2, 18, 18), 2, (3, 3), limits={**SMALL_GRID, **WIDTHS[1]}),
    *(conv((1, 3, 4, 5), oc, (3, 3), pad=1, limits=w) for w in WIDTHS for oc in (2, 6)),
]
SIGNALS = [
    conv((1, 4, 10), 6, (3,)),
    conv((1, 2, 11), 3, (3,), 1, 2, 2),
    conv((2, 3, 8), 9, (3,), 2, 1, bias=False),
    conv((1, 5, 7), 5, (5,), groups=5),
    conv((2, 6, 9), 4, (3,), groups=2),
    conv((2, 3, 5), 4, (1,)),
    conv((1, 3, 300), 1, (1,)),
    conv((1, 4, 6), 6, (4,), 3, 1, groups=2, transposed=True, out_pad=2),
]
BEYOND = OpCase(
    CLAMP,
    [
        In("x", np.full((1, 1, 1, 1), 3e38, np.float32)),
        Const(np.array([2, -2, 0.5], np.float32).reshape(3, 1, 1, 1)),
        *(None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1, 0.0, None),
    ],
    [np.array([np.inf, 0, 1.5e38]).reshape(1, 3, 1, 1)],
)
"""A bound that is absent bounds nothing."""

CLAMPED = [
    conv((1, 4, 8, 8), 8, (3, 3), pad=1, bounds=(0, 0.6)),
    conv((1, 3, 5, 5), 6, (1, 1), bounds=(-0.2, None), bias=False),
    conv((2, 3, 6, 6), 5, (3, 3), pad=2, dilation=2, bounds=(None, 0.25)),
    conv((1, 4, 3, 3), 4, (2, 2), 2, transposed=True, bounds=(0, 6)),
    conv((1, 3, 5, 5), 6, (2, 2), bounds=(None, None)),
    BEYOND,
]
LIVE = [
    conv((2, 3, 6, 6), 6, (3, 3), bounds=(0, 6), live=((1, 3, 3, 4), (2, 3, 6, 6), (1, 3, 5, 3))),
    conv((1, 3, 16), 4, (3,), 2, 1, 2, live=((1, 3, 9), (1, 3, 5), (1, 3, 16))),
    conv((2, 3, 8, 6), 9, (3, 3), pad=1, live=((1, 3, 1, 1), (2, 3, 8, 6), (2, 3, 3, 5))),
    conv((2, 3, 8, 6), 9, (1, 1), live=((1, 3, 1, 1), (2, 3, 8, 6), (2, 3, 3, 5))),
    conv((1, 3, 4, 4), 2, (3, 3), 2, transposed=True, live=((1, 3, 1, 2), (1, 3, 4, 4))),
]
CASES = [*IMAGES, *SIGNALS, *CLAMPED, *LIVE]


@pytest.mark.parametrize("c", CASES, ids=str)
def test_cpu(c):
    check(c)


def test_browser(gpu):
    check_all(CASES, gpu)


def test_browser_hardware_routes(gpu):
    with hardware_routes(gpu):
        check_all((*IMAGES[:6], *SIGNALS[:3], SIGNALS[4], CLAMPED[0], CLAMPED[2], *LIVE[:2]), gpu)


@pytest.mark.parametrize(
    ("change", "kind", "text"),
    [
        ({0: In("x", np.ones((1, 4, 6, 6), np.int32))}, DtypeError, "x is int32"),
        ({0: In("x", distinct((4, 6, 6)))}, ShapeError, "both have rank 3 or 4"),
        ({0: In("x", distinct((1, 5, 6, 6)))}, ShapeError, "groups=2, must divide 5 input"),
        ({0: In("x", distinct((1, 6, 6, 6)))}, ShapeError, "x has 6 channels, weight .* takes 4"),
        ({0: In("x", distinct((1, 4, 2, 6)))}, ShapeError, "2 x 6 gives 0 x 4"),
        ({2: Const(distinct((5,)))}, ShapeError, r"bias \[5\], must be \[6\]"),
        ({3: [1, 1, 1]}, ShapeError, "stride .* one or two"),
        ({3: [0, 1]}, ShapeError, "stride .* at least 1"),
        ({4: [-1]}, ShapeError, "padding .* at least 0"),
        ({5: [0]}, ShapeError, "dilation .* at least 1"),
        ({7: [1, 0]}, ShapeError, "output_padding .* transposed=False"),
        ({8: 0}, ShapeError, "groups=0"),
        ({6: True, 8: 1, 7: [1, 1]}, ShapeError, "x has 4 channels, weight .* takes 6"),
    ],
)
def test_refused_before_any_buffer(change, kind, text):
    c = conv((1, 4, 6, 6), 6, (3, 3), groups=2)
    for i, value in change.items():
        c.args[i] = value
    with pytest.raises(kind, match=text) as caught:
        check(c)
    assert "[buffers created: 0]" in str(caught.value)


def test_output_padding_must_be_below_the_stride():
    c = conv((1, 4, 4, 4), 4, (2, 2), 2, transposed=True)
    c.args[7] = [2, 0]
    with pytest.raises(ShapeError, match=r"output_padding \[2, 0\], allowed are at most \[1, 1\]"):
        check(c)
