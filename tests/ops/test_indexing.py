"""embedding, index_select, gather, index: dtypes, paths, live shapes, bad indices, errors."""

import itertools

import numpy as np
import pytest

from ops.opcase import Const, In, OpCase, check, check_all, distinct
from webgpu_py import DtypeError, IndexOutOfRange, ShapeError, UnsupportedOperator

EMBEDDING, SELECT = "aten.embedding.default", "aten.index_select.default"
GATHER, INDEX = "aten.gather.default", "aten.index.Tensor"


def array(shape, dtype="float32", seed=0):
    if dtype == "float32":
        return distinct(shape, seed)
    return np.arange(np.prod(shape)).astype(dtype).reshape(shape)


def ids(shape, size, seed=0, low=0):
    found = np.random.default_rng(seed).integers(low, size, shape)
    return np.asarray(found, np.int32)


def embedding(shape, indices, dtype="float32", limits=None):
    weight = array(shape, dtype)
    expected = np.stack([weight[i] for i in indices.ravel()]).reshape(*indices.shape, shape[1])
    args = [Const(weight, prepack=True), In("indices", indices), -1, False, False]
    return OpCase(EMBEDDING, args, [expected], limits=limits)


def select(shape, dim, index, dtype="float32", limits=None):
    x, index = array(shape, dtype), np.array(index, np.int32)
    expected = np.stack([np.moveaxis(x, dim, 0)[i] for i in index.ravel()])
    args = [In("x", x), dim, In("index", index)]
    return OpCase(SELECT, args, [np.moveaxis(expected, 0, dim)], limits=limits)


def gathered(x, dim, index):
    y = np.empty(index.shape, x.dtype)
    for at in np.ndindex(*index.shape):
        source = list(at)
        source[dim] = index[at]
        y[at] = x[tuple(source)]
    return y


def gather(shape, dim, index_shape, dtype="float32", limits=None):
    x, index = array(shape, dtype), ids(index_shape, shape[dim], 5)
    args = [In("x", x), dim, In("index", index), False]
    return OpCase(GATHER, args, [gathered(x, dim, index)], limits=limits)


def indexed(x, indices):
    """Element by element, after the rule in the docstring."""
    tensors = {k: t for k, t in enumerate(indices) if t is not None}
    wide = np.broadcast_arrays(*tensors.values())
    shape = wide[0].shape
    whole = [k for k in range(x.ndim) if k not in tensors]
    keys = list(tensors)
    at = keys[0] if keys[-1] - keys[0] == len(keys) - 1 else 0
    kept = [x.shape[k] for k in whole]
    y = np.empty((*kept[:at], *shape, *kept[at:]), x.dtype)
    for place in itertools.product(*map(range, y.shape)):
        inner = place[at : at + len(shape)]
        outer = place[:at] + place[at + len(shape) :]
        source = dict(zip(whole, outer, strict=True))
        source |= {k: int(w[inner]) for k, w in zip(tensors, wide, strict=True)}
        y[place] = x[tuple(source[k] for k in range(x.ndim))]
    return y


def index(shape, *indices, dtype="float32", limits=None):
    x = array(shape, dtype)
    found = [None if t is None else np.array(t, np.int32) for t in indices]
    args = [None if t is None else In(f"i{k}", t) for k, t in enumerate(found)]
    return OpCase(INDEX, [In("x", x), args], [indexed(x, found)], limits=limits)


DTYPES = ("float32", "int32", "int8")
WIDTHS = [{"max_compute_invocations_per_workgroup": w} for w in (1, 32, 64, 128)]
FOLD = {"max_compute_workgroups_per_dimension": 4}
CASES = [
    embedding((16, 8), np.array([0, 3, 15, 7], np.int32)),
    embedding((1024, 12), np.array([[1, 5, 1023, 0, 42]], np.int32)),
    *(embedding((9, n), ids((2, 3), 9), d) for n in (1, 5, 16) for d in DTYPES),
    embedding((5, 4), np.array(4, np.int32).reshape(())),
    embedding((37, 33), ids((121,), 37), limits=FOLD),
    *(embedding((11, 5), ids((13,), 11), d, w) for w in WIDTHS for d in ("float32", "int8")),
    embedding((64, 64), ids((40,), 64), limits={"max_storage_buffer_binding_size": 12288}),
    embedding((50, 24), ids((40,), 50), limits={"max_storage_buffer_binding_size": 4096}),
    *(select((5,), 0, [0, 2, 4, 1], d) for d in DTYPES),
    *(select((4, 8), 0, [3, 0, 1], d) for d in DTYPES),
    *(select((4, 7), 1, [5, 2, 0, 2], d) for d in DTYPES),
    *(select((3, 5, 8), 1, [4, 0, 2], d) for d in DTYPES),
    select((3, 5, 7), -1, [6, 1, 4]),
    select((3, 5), 1, 2),
    *(gather((4, 8), 1, (4, 3), d) for d in DTYPES),
    *(gather((5, 6), 0, (3, 6), d) for d in DTYPES),
    *(gather((2, 3, 4), 2, (2, 3, 2), d) for d in DTYPES),
    gather((5, 6, 7), 1, (2, 9, 3)),
    gather((3, 2500), 1, (3, 1300), limits=FOLD),
    *(gather((9, 13), 1, (9, 5), limits=w) for w in WIDTHS),
    *(index((16,), [3, 0, 15, -1, -16], dtype=d) for d in DTYPES),
    *(index((4, 8), [[0, 3], [2, -1]], dtype=d) for d in DTYPES),
    *(index((4, 6), None, [5, -6, 2], dtype=d) for d in DTYPES),
    *(index((4, 6, 3), [1, -1, 0], [2, 2, -5], dtype=d) for d in DTYPES),
    *(index((4, 6, 8), [[1], [-1]], [2, 0, 5], dtype=d) for d in DTYPES),
    *(index((4, 6, 3), [1, -1], None, [2, 0], dtype=d) for d in DTYPES),
    index((2, 4, 6, 8), None, [3, 0, -1], [[5], [1]]),
    index((2, 4, 6, 3), None, [3, 0, -1], None, [1, -3, 2]),
    index((3, 4, 5), [0, 2], [1, 3], [4, -1]),
    index((3, 4, 5), [0], [1, 3], 2),
]


def live_embedding():
    weight = distinct((7, 8))
    runs = [({"indices": ids((n,), 7, n)}, [weight[ids((n,), 7, n)]]) for n in (1, 9, 2, 9)]
    first = ids((5,), 7, 1)
    return OpCase(EMBEDDING, [Const(weight), In("indices", first, (9,))], [weight[first]], runs)


def live_index():
    """Table and indices both live: -1 is the last live row."""

    def run(n, m):
        x, i, j = distinct((n, 6), n), ids((m,), n, m, -n), ids((m,), 6, 9)
        return {"x": x, "i": i, "j": j}, [np.array([x[a, b] for a, b in zip(i, j, strict=True)])]

    (first, expected), *runs = (run(*s) for s in ((5, 2), (1, 4), (8, 4), (2, 1), (8, 4)))
    args = [In("i", first["i"], (4,)), In("j", first["j"], (4,))]
    return OpCase(INDEX, [In("x", first["x"], (8, 6)), args], expected, runs)


def live_gather():
    def run(n):
        x, i = distinct((n, 6), n), ids((n, 3), 6, n)
        return {"x": x, "i": i}, [gathered(x, 1, i)]

    (first, expected), *runs = map(run, (5, 1, 8, 2))
    args = [In("x", first["x"], (8, 6)), 1, In("i", first["i"], (8, 3))]
    return OpCase(GATHER, args, expected, runs)


LIVE = [live_embedding(), live_index(), live_gather()]


@pytest.mark.parametrize("c", [*CASES, *LIVE], ids=str)
def test_cpu(c):
    check(c)


def test_browser(gpu):
    check_all([*CASES, *LIVE], gpu)


X = distinct((6, 4))


def bad(op, where, value):
    """A call with one bad index, at position 2, as an input or as a constant."""
    i = np.array([0, 1, 3, 0], np.int32)
    i[2] = value
    if op == GATHER:
        i = np.stack([i, i % 4])
    index = In("i", i) if where == "input" else Const(i)
    args = {
        EMBEDDING: [Const(X), index],
        SELECT: [In("x", X), 1, index],
        GATHER: [In("x", X), 1, index],
        INDEX: [In("x", X), [None, index]],
    }
    return OpCase(op, args[op], [])


BAD = [
    (EMBEDDING, 6),
    (EMBEDDING, -1),
    (EMBEDDING, 2**31 - 1),
    (SELECT, 4),
    (SELECT, -1),
    (GATHER, 4),
    (GATHER, -4),
    (INDEX, 4),
    (INDEX, -5),
    (INDEX, -(2**31)),
]


@pytest.mark.parametrize("where", ["input", "constant"])
@pytest.mark.parametrize(("op", "value"), BAD)
def test_bad_index(op, value, where):
    with pytest.raises(IndexOutOfRange, match=f"index {value} at position 2"):
        check(bad(op, where, value))


def test_bad_index_browser(gpu):
    """The device finds them; the next case on it runs."""
    for op, value in BAD:
        with pytest.raises(IndexOutOfRange, match=f"index {value} at position 2"):
            check(bad(op, "constant", value), gpu)
    two = [Const(np.array([0, 9], np.int32)), Const(np.array([1, 1], np.int32))]
    with pytest.raises(IndexOutOfRange, match="index 9 at position 1"):
        check(OpCase(INDEX, [In("x", X), two], []), gpu)
    narrow = OpCase(INDEX, [In("x", X.astype(np.int8)), [None, Const(np.array([5], np.int32))]], [])
    with pytest.raises(IndexOutOfRange, match="index 5 at position 0"):
        check(narrow, gpu)
    check(CASES[0], gpu)


ROWS = np.array([0, 1], np.int32)


@pytest.mark.parametrize(
    ("op", "args", "kind", "text"),
    [
        (EMBEDDING, [In("w", X[0]), In("i", ROWS)], ShapeError, "must be .rows, width"),
        (
            EMBEDDING,
            [In("w", X), In("i", ROWS.astype(np.float32))],
            DtypeError,
            "indices is float32",
        ),
        (SELECT, [In("x", X), 2, In("i", ROWS)], ShapeError, "dim=2"),
        (SELECT, [In("x", X), 0, In("i", ROWS[None])], ShapeError, "rank 0 or 1"),
        (SELECT, [In("x", X), 0, In("i", ROWS.astype(np.int8))], DtypeError, "index is int8"),
        (GATHER, [In("x", X), 0, In("i", ROWS)], ShapeError, "must have its rank"),
        (GATHER, [In("x", X), 0, In("i", np.zeros((2, 5), np.int32))], ShapeError, "no more"),
        (INDEX, [In("x", X), [None, None]], ShapeError, "no index tensor"),
        (INDEX, [In("x", X), [In("i", ROWS)] * 3], ShapeError, "3 indices"),
        (INDEX, [In("x", X), [In("i", ROWS > 0)]], UnsupportedOperator, "is a mask"),
        (INDEX, [In("x", X), [In("i", ROWS.astype(np.float32))]], DtypeError, "must be int32"),
        (
            INDEX,
            [In("x", X), [In("i", ROWS), In("j", ids((3,), 2))]],
            ShapeError,
            "do not broadcast",
        ),
    ],
)
def test_refused_before_any_buffer(op, args, kind, text):
    with pytest.raises(kind, match=text) as caught:
        check(OpCase(op, args, []))
    assert "[buffers created: 0]" in str(caught.value)
