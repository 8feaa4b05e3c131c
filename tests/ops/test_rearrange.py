"""permute, flip, expand, repeat, pixel_shuffle: every path, dtypes, live shapes, errors."""

import numpy as np
import pytest

from ops.opcase import In, OpCase, Sym, check, check_all, distinct
from webgpu_py import ShapeError

PERMUTE, FLIP = "aten.permute_copy.default", "aten.flip.default"
EXPAND, REPEAT = "aten.expand_copy.default", "aten.repeat.default"
SHUFFLE = "aten.pixel_shuffle.default"


def array(shape, dtype="float32", seed=0):
    if dtype == "float32":
        return distinct(shape, seed)
    n = int(np.prod(shape))
    return np.random.default_rng(seed).permutation(n).astype(dtype).reshape(shape)


def shuffled(x, r):
    """Element by element, after the formula."""
    *lead, c, h, w = x.shape
    flat = x.reshape(-1, c, h, w)
    y = np.empty((len(flat), c // r**2, h * r, w * r), x.dtype)
    for n, ch, i, j in np.ndindex(y.shape):
        y[n, ch, i, j] = flat[n, ch * r * r + i % r * r + j % r, i // r, j // r]
    return y.reshape(*lead, *y.shape[1:])


ROUTES = {
    PERMUTE: lambda x, dims: np.einsum(x, list(range(x.ndim)), [d % x.ndim for d in dims]),
    "aten.permute.default": lambda x, dims: np.moveaxis(x, dims, range(x.ndim)),
    FLIP: lambda x, dims: x[
        tuple(
            slice(None, None, -1 if k in [d % x.ndim for d in dims] else 1) for k in range(x.ndim)
        )
    ],
    EXPAND: lambda x, sizes: (
        x
        + np.zeros(
            [s if s != -1 else x.shape[k - len(sizes)] for k, s in enumerate(sizes)], x.dtype
        )
    ),
    REPEAT: np.tile,
    SHUFFLE: shuffled,
}


def case(op, x, argument, limits=None):
    return OpCase(op, [In("x", x), argument], [ROUTES[op](x, argument)], limits=limits)


SHAPES = [
    (PERMUTE, (2, 3, 4), [2, 0, 1]),
    (PERMUTE, (1, 8, 4, 16), [0, 2, 1, 3]),
    (PERMUTE, (3, 5), [-1, -2]),
    (PERMUTE, (2, 3, 4, 5), [3, 1, 0, 2]),
    (PERMUTE, (2, 3, 2, 3, 2, 1, 2, 2), [7, 0, 5, 2, 4, 1, 3, 6]),
    ("aten.permute.default", (3, 5, 8), [1, 0, 2]),
    (FLIP, (37, 41), [-1]),
    (FLIP, (37, 40), [0]),
    (FLIP, (5, 7, 11), [0, 2]),
    (FLIP, (3, 5, 7, 12), [1]),
    (EXPAND, (1, 4), [3, 4]),
    (EXPAND, (2, 1, 5), [2, 4, 5]),
    (EXPAND, (4,), [3, -1]),
    (EXPAND, (3, 1), [-1, 8]),
    (EXPAND, (), [3, 2]),
    (REPEAT, (3,), [2]),
    (REPEAT, (3, 5), [2, 2]),
    (REPEAT, (3, 5), [1, 3, 2]),
    (REPEAT, (3, 8), [2, 3, 1]),
    (REPEAT, (3, 5, 7), [2, 1, 2]),
    (SHUFFLE, (1, 8, 2, 3), 2),
    (SHUFFLE, (2, 4, 3, 3), 2),
    (SHUFFLE, (1, 9, 2, 2), 3),
    (SHUFFLE, (4, 2, 2), 2),
]
CASES = [
    *(case(op, array(shape), argument) for op, shape, argument in SHAPES),
    *(case(op, array(shape, "int8"), argument) for op, shape, argument in SHAPES),
    *(case(op, array(shape, "int32"), argument) for op, shape, argument in SHAPES[::5]),
    *(case(PERMUTE, array((n, 3)), [1, 0]) for n in (1, 85, 86)),
    *(case(PERMUTE, array((n,), "int8"), [0]) for n in (1, 3, 4, 5, 257)),
    case(FLIP, array((3000,)), [0], {"max_compute_workgroups_per_dimension": 4}),
    case(FLIP, array((5003,), "uint8"), [0], {"max_compute_workgroups_per_dimension": 4}),
    *(
        case(PERMUTE, array((13, 11), dtype), [1, 0], {"max_compute_invocations_per_workgroup": w})
        for w in (1, 32, 64, 128)
        for dtype in ("float32", "int8")
    ),
]


def live(op, argument, at=lambda n: None):
    def run(n):
        x = distinct((n, 4), n)
        return x, [ROUTES[op](x, at(n) or argument)]

    first, expected = run(5)
    runs = [({"x": x}, y) for x, y in map(run, (1, 8, 3, 8))]
    return OpCase(op, [In("x", first, (8, 4)), argument], expected, runs)


LIVE = [
    live(PERMUTE, [1, 0]),
    live(FLIP, [0]),
    live(EXPAND, [3, -1, 4]),
    live(EXPAND, [3, 8, 4], lambda n: [3, -1, 4]),
    live(REPEAT, [2, 1, 3]),
]


@pytest.mark.parametrize("c", [*CASES, *LIVE], ids=str)
def test_cpu(c):
    check(c)


def test_browser(gpu):
    check_all([*CASES, *LIVE], gpu)


@pytest.mark.parametrize(
    ("op", "argument", "text"),
    [
        (PERMUTE, [0, 0], "each of the 2 dims"),
        (PERMUTE, [0], "each of the 2 dims"),
        (PERMUTE, [0, 2], "allowed are -2 to 1"),
        (FLIP, [0, -2], "name a dim twice"),
        (EXPAND, [4], "at least as many"),
        (EXPAND, [6, 4], "only a dim of size 1 can become 6"),
        (EXPAND, [-1, 3, 4], "a new dim must be at least 1"),
        (EXPAND, [3, 0], "only a dim of size 1 can become 0"),
        (REPEAT, [2], "at least 2 positive"),
        (REPEAT, [2, 0], "at least 2 positive"),
        (SHUFFLE, 2, "must have 3 dims"),
    ],
)
def test_refused_before_any_buffer(op, argument, text):
    with pytest.raises(ShapeError, match=text) as caught:
        check(OpCase(op, [In("x", distinct((3, 4))), argument], []))
    assert "[buffers created: 0]" in str(caught.value)


def test_channels_that_do_not_divide():
    with pytest.raises(ShapeError, match=r"a multiple of factor"):
        check(OpCase(SHUFFLE, [In("x", distinct((6, 2, 2))), 2], []))


def test_sym_size_zero_before_the_first_run():
    with pytest.raises(ShapeError, match="can become 0"):
        check(OpCase(EXPAND, [In("x", distinct((3, 1))), [3, Sym("n", 4)]], []))
