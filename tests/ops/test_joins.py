"""cat, constant_pad_nd: dtypes, runs that are no whole words, live shapes, errors."""

import itertools

import numpy as np
import pytest

from ops.opcase import In, OpCase, check, check_all, distinct
from webgpu_py import DtypeError, ShapeError, UnsupportedOperator

CAT, PAD = "aten.cat.default", "aten.constant_pad_nd.default"


def array(shape, dtype="float32", seed=0):
    if dtype == "float32":
        return distinct(shape, seed)
    return (np.arange(np.prod(shape)) + 50 * seed).astype(dtype).reshape(shape)


def joined(arrays, dim):
    """Slice by slice into an empty array."""
    shape = list(arrays[0].shape)
    shape[dim] = sum(a.shape[dim] for a in arrays)
    y = np.empty(shape, arrays[0].dtype)
    at = 0
    for a in arrays:
        np.moveaxis(y, dim, 0)[at : at + a.shape[dim]] = np.moveaxis(a, dim, 0)
        at += a.shape[dim]
    return y


def cat(shapes, dim, dtype="float32", limits=None):
    arrays = [array(s, dtype, k) for k, s in enumerate(shapes)]
    inputs = [In(f"x{k}", a) for k, a in enumerate(arrays)]
    return OpCase(CAT, [inputs, dim], [joined(arrays, dim)], limits=limits)


def padded(x, pad, value):
    """Element by element: outside of x there is the value."""
    before = [0] * x.ndim
    shape = list(x.shape)
    for k, (b, a) in enumerate(zip(pad[::2], pad[1::2], strict=True)):
        d = x.ndim - 1 - k
        before[d], shape[d] = b, x.shape[d] + b + a
    y = np.full(shape, value, x.dtype)
    for at in itertools.product(*map(range, shape)):
        source = tuple(i - b for i, b in zip(at, before, strict=True))
        if all(0 <= i < n for i, n in zip(source, x.shape, strict=True)):
            y[at] = x[source]
    return y


def pad(shape, pads, value=0.0, dtype="float32", limits=None):
    x = array(shape, dtype)
    return OpCase(PAD, [In("x", x), pads, value], [padded(x, pads, value)], limits=limits)


DTYPES = ("float32", "int32", "int8")
CASES = [
    *(cat([(2, 3)] * 3, 0, d) for d in DTYPES),
    *(cat([(1, 4, 8)] * 2, 1, d) for d in DTYPES),
    *(cat([(2, 3, 4)] * 3, 2, d) for d in DTYPES),
    *(cat([(2, 1, 4), (2, 3, 4), (2, 2, 4)], 1, d) for d in DTYPES),
    *(cat([(3, 1), (3, 5), (3, 2)], -1, d) for d in DTYPES),
    cat([(1,), (2,), (4,), (250,)], 0, "uint8"),
    cat([(5,)], 0, "bool"),
    cat([(1,)] * 12, 0),
    cat([(3000,), (7,)], 0, limits={"max_compute_workgroups_per_dimension": 4}),
    *(
        cat([(5, 13), (5, 4)], 1, d, {"max_compute_invocations_per_workgroup": w})
        for w in (1, 32, 64, 128)
        for d in ("float32", "int8")
    ),
    *(pad((3, 8), [1, 2], 0.0, d) for d in DTYPES),
    *(pad((2, 4, 8), [1, 1, 2, 0], 3.0, d) for d in (*DTYPES, "uint32")),
    *(pad((2, 4, 8), [4, 4, 0, 1], -2, d) for d in DTYPES),
    *(pad((2, 3, 5), [-1, -1, 1, -2], 7, d) for d in DTYPES),
    *(pad((6,), [-5, 3], 1, d) for d in DTYPES),
    pad((2, 3, 2, 2, 2), [0, 1, 1, 0, 0, 0, 2, 0, 1, 1], 0.5),
    pad((4, 4), [], 1.0),
    pad((3,), [2, 2], np.inf),
    OpCase(PAD, [In("x", array((3,))), [1, 0]], [np.append(0, array((3,)))]),
]


def live_cat():
    def run(n, m):
        a, b = distinct((n, 3), n), distinct((m, 3), 10 + m)
        return {"a": a, "b": b}, [joined([a, b], 0)]

    (first, expected), *runs = (run(*s) for s in ((5, 2), (1, 4), (8, 4), (2, 1), (8, 4)))
    inputs = [In("a", first["a"], (8, 3)), In("b", first["b"], (4, 3))]
    return OpCase(CAT, [inputs, 0], expected, runs)


def live_pad():
    def run(n):
        x = distinct((n, 3), n)
        return {"x": x}, [padded(x, [1, 0, -1, 2], 0.25)]

    (first, expected), *runs = map(run, (5, 2, 8, 3))
    return OpCase(PAD, [In("x", first["x"], (8, 3)), [1, 0, -1, 2], 0.25], expected, runs)


@pytest.mark.parametrize("c", [*CASES, live_cat(), live_pad()], ids=str)
def test_cpu(c):
    check(c)


def test_browser(gpu):
    check_all([*CASES, live_cat(), live_pad()], gpu)


X = distinct((2, 3))


@pytest.mark.parametrize(
    ("op", "args", "kind", "text"),
    [
        (CAT, [[In("x", X), In("y", distinct((2, 4)))], 0], ShapeError, "but for dim 0"),
        (CAT, [[In("x", X), In("y", distinct((2,)))], 0], ShapeError, "but for dim 0"),
        (CAT, [[In("x", X), In("y", X.astype(np.int32))], 0], DtypeError, "is int32"),
        (CAT, [[In("x", X)], 2], ShapeError, "dim=2"),
        (CAT, [[In("x", distinct(()))], 0], ShapeError, "rank 0"),
        (PAD, [In("x", X), [1]], ShapeError, "1 pads"),
        (PAD, [In("x", X), [1, 1, 1, 1, 1, 1]], ShapeError, "at most 2 dims"),
        (PAD, [In("x", X), [-2, -1]], ShapeError, "leave nothing"),
        (PAD, [In("x", X), [-4, 5]], ShapeError, "leave nothing"),
        (PAD, [In("x", X.astype(np.int32)), [1, 1], np.inf], DtypeError, "must be finite"),
        (PAD, [In("x", X), [1, 0.5]], UnsupportedOperator, "list of integers"),
    ],
)
def test_refused_before_any_buffer(op, args, kind, text):
    with pytest.raises(kind, match=text) as caught:
        check(OpCase(op, args, []))
    assert "[buffers created: 0]" in str(caught.value)
