"""et_vk.q8ta_add, q8ta_relu, q8ta_pixel_shuffle: bytes exact, every pair of codes, errors."""

from itertools import product

import numpy as np
import pytest

from ops.opcase import Const, In, OpCase, check, check_all, distinct
from webgpu_py import DtypeError, ShapeError, UnsupportedOperator

ADD = "et_vk.q8ta_add.default"
RELU = "et_vk.q8ta_relu.default"
SHUFFLE = "et_vk.q8ta_pixel_shuffle.default"
WIDTHS = [{"max_compute_invocations_per_workgroup": w} for w in (1, 32, 64, 128)]
SMALL_GRID = {"max_compute_workgroups_per_dimension": 4}
f32 = np.float32


def code_of(value, inverse, zero_point):
    return min(
        max(
            round(float(f32(value) * f32(inverse))) + zero_point,
            -128,
        ),
        127,
    )


def added(a, b, sa, za, sb, zb, so, zo, alpha):
    """Every pair of the broadcast codes, one at a time with float32 scalars."""
    inverse = f32(1 / so)
    found = []
    for i, j in np.broadcast(a, b):
        left = f32(int(i) - za) * f32(sa)
        right = f32(int(j) - zb) * f32(sb)
        found.append(code_of(left + f32(alpha) * right, inverse, zo))
    return np.array(found, np.int8).reshape(np.broadcast_shapes(a.shape, b.shape))


def codes(dims, seed=0):
    return np.random.default_rng(seed).integers(-128, 128, dims, np.int8)


def add(a, b, scalars=(0.05, 0, 0.1, 3, 0.08, -2, 1.0), limits=None):
    expected = added(a, b, *scalars)
    return OpCase(ADD, [In("a", a), Const(b), *scalars], [expected], limits=limits)


def relu(x, scalars, limits=None):
    scale, zero, out_scale, out_zero = scalars
    inverse = f32(1 / out_scale)
    values = [max(f32(int(i) - zero) * f32(scale), f32(0)) for i in x.reshape(-1)]
    expected = np.array([code_of(v, inverse, out_zero) for v in values], np.int8)
    return OpCase(RELU, [In("x", x), *scalars], [expected.reshape(x.shape)], limits=limits)


def shuffled(x, scale, zero, inverse, out_zero, r):
    c = x.shape[-3] // (r * r)
    h, w = x.shape[-2:]
    lead = x.shape[:-3]
    expected = np.zeros((*lead, c, h * r, w * r), np.int8)
    for at in product(*map(range, expected.shape)):
        *batch, k, i, j = at
        code = x[(*batch, k * r * r + (i % r) * r + j % r, i // r, j // r)]
        expected[at] = code_of(f32(int(code) - zero) * f32(scale), inverse, out_zero)
    return expected


def shuffle(x, scalars, r, limits=None):
    expected = shuffled(x, *scalars, r)
    return OpCase(SHUFFLE, [In("x", x), *scalars, r], [expected], limits=limits)


def live_shuffle():
    scalars = (0.05, -3, 12.5, 5)
    first = codes((1, 4, 5, 3), 9)
    runs = []
    for h in (1, 5, 2):
        x = codes((1, 4, h, 3), h)
        runs.append(({"x": x}, [shuffled(x, *scalars, 2)]))
    args = [In("x", first, (1, 4, 5, 3)), *scalars, 2]
    return OpCase(SHUFFLE, args, [shuffled(first, *scalars, 2)], runs)


def live_add():
    scalars = (0.05, 0, 0.1, 3, 0.08, -2, 1.0)
    b = codes((5,), 2)
    runs = [({"a": codes((n, 5), n)}, [added(codes((n, 5), n), b, *scalars)]) for n in (1, 7, 4)]
    first = codes((7, 5), 1)
    args = [In("a", first, (7, 5)), Const(b), *scalars]
    return OpCase(ADD, args, [added(first, b, *scalars)], runs)


def live_relu():
    shapes = [(9, 3), (1, 2), (9, 3), (4, 1)]
    cases = [relu(codes(s, s[0]), (0.05, 10, 0.08, -20)) for s in shapes]
    c = cases[0]
    c.args[0].max_dims = shapes[0]
    c.runs = [({"x": d.args[0].array}, d.expected) for d in cases[1:]]
    return c


CASES = [
    add(codes((16,), 1), codes((16,), 2), (0.05, 0, 0.1, 3, 0.08, -2, 2.0)),
    add(codes((16,), 1), codes((16,), 2), (0.05, 5, 0.1, -4, 0.08, 7, 1.0)),
    add(codes((2, 3, 5), 1), codes((3, 1), 2), (0.031, 1, 0.017, -9, 0.05, 3, -0.3)),
    add(codes((), 1), codes((1,), 2)),
    *(add(codes((n,), 1), codes((n,), 2)) for n in (3, 1023, 1025)),
    add(codes((999,), 1), codes((999,), 2), limits={**WIDTHS[2], **SMALL_GRID}),
    *(add(codes((41,), 1), codes((41,), 2), limits=w) for w in WIDTHS),
    *(relu(codes((2, 33), 3), s) for s in ((0.05, -3, 0.05, -3), (0.05, 10, 0.08, -20))),
    shuffle(codes((1, 8, 2, 2), 4), (0.05, -3, 20.0, -3), 2),
    shuffle(codes((1, 9, 2, 2), 5), (0.05, -3, 20.0, -3), 3),
    shuffle(codes((2, 8, 3, 5), 6), (0.05, 10, 12.5, -20), 2),
    shuffle(codes((3, 1, 7), 7), (0.05, 10, 12.5, -20), 1),
    live_shuffle(),
    live_add(),
    live_relu(),
]


@pytest.mark.parametrize("c", CASES, ids=str)
def test_cpu(c):
    check(c)


def test_browser(gpu):
    check_all(CASES, gpu)


def test_browser_every_pair_of_codes(gpu):
    """A product added to a product: where a fused multiply-add would change a byte."""
    every = np.arange(-128, 128).astype(np.int8)
    for scalars in ((0.0371, 3, 0.0193, -5, 0.0427, 1, 0.7), (0.1, -7, 0.05, 2, 0.1, 0, 1.0)):
        a, b = every.reshape(256, 1), every.reshape(1, 256)
        sa, za, sb, zb, so, zo, alpha = scalars
        left = (a.astype(f32) - f32(za)) * f32(sa)
        right = (b.astype(f32) - f32(zb)) * f32(sb)
        steps = np.rint((left + f32(alpha) * right) * f32(1 / so)) + zo
        args = [In("a", a), In("b", b), *scalars]
        check(OpCase(ADD, args, [np.clip(steps, -128, 127).astype(np.int8)]), gpu)


@pytest.mark.parametrize(
    ("op", "args", "kind", "text"),
    [
        (ADD, [codes((3,)), codes((2,)), 0.1, 0, 0.1, 0, 0.1, 0, 1], ShapeError, "broadcast"),
        (ADD, [distinct((3,)), codes((3,)), 0.1, 0, 0.1, 0, 0.1, 0, 1], DtypeError, "a is float32"),
        (ADD, [codes((3,)), codes((3,)), 0, 0, 0.1, 0, 0.1, 0, 1], UnsupportedOperator, "a_scale"),
        (RELU, [codes((3,)), 0.1, 0, -0.1, 0], UnsupportedOperator, "output_scale=-0.1"),
        (RELU, [codes((3,)), 0.1, 300, 0.1, 0], UnsupportedOperator, "input_zero_point=300"),
        (SHUFFLE, [codes((1, 6, 2, 2)), 0.1, 0, 10.0, 0, 2], ShapeError, "multiple of 4"),
        (SHUFFLE, [codes((2, 2)), 0.1, 0, 10.0, 0, 2], ShapeError, "rank 3 to 8"),
        (SHUFFLE, [codes((1, 4, 2, 2)), 0.1, 0, 10.0, 0, 0], ShapeError, "upscale_factor=0"),
    ],
)
def test_refused_before_any_buffer(op, args, kind, text):
    made = [In(f"t{i}", a) if isinstance(a, np.ndarray) else a for i, a in enumerate(args)]
    with pytest.raises(kind, match=text) as caught:
        check(OpCase(op, made, []))
    assert "[buffers created: 0]" in str(caught.value)
