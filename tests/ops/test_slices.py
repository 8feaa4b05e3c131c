"""slice, select, split: bounds, dtypes, live starts and lengths, errors."""

import asyncio

import numpy as np
import pytest

import webgpu_py as wg
from ops.opcase import In, OpCase, Sym, check, check_all, distinct
from webgpu_py import IndexOutOfRange, ShapeError, UnsupportedOperator

SLICE, SELECT = "aten.slice_copy.Tensor", "aten.select_copy.int"
SPLIT = "aten.split_with_sizes_copy.default"
MOST = 2**63 - 1


def array(shape, dtype="float32"):
    if dtype == "float32":
        return distinct(shape)
    return np.arange(np.prod(shape)).astype(dtype).reshape(shape)


def sliced(x, dim, start, end, step, limits=None):
    at = np.arange(x.shape[dim])[slice(start, end, step)]
    args = [dim, start, end, step]
    return OpCase(SLICE, [In("x", x), *args], [np.take(x, at, dim)], limits=limits)


def selected(x, dim, index):
    expected = x[(..., index) if dim == -1 else (slice(None),) * dim + (index,)]
    return OpCase(SELECT, [In("x", x), dim, index], [expected])


def split(x, sizes, dim):
    ends = np.cumsum(sizes)
    parts = [np.take(x, range(e - s, e), dim) for s, e in zip(sizes, ends, strict=True)]
    return OpCase(SPLIT, [In("x", x), sizes, dim], parts)


def both(make):
    return [make("float32"), make("int8")]


BOUNDS = [
    ((3, 8, 4), 1, 1, 5, 1),
    ((3, 8, 4), 2, 1, 3, 1),
    ((3, 8, 4), 1, 0, 8, 2),
    ((3, 8, 4), 1, 1, -1, 1),
    ((3, 8, 4), 0, -2, MOST, 1),
    ((3, 8, 4), 1, None, None, 3),
    ((3, 8, 4), 1, -100, 100, 5),
    ((7,), 0, 2, 3, 9),
    ((257,), 0, 1, MOST, 1),
    ((2, 3, 16), 2, 4, 12, 1),
]
CASES = [
    *(sliced(array(shape, d), *rest) for shape, *rest in BOUNDS for d in ("float32", "int8")),
    OpCase(SLICE, [In("x", array((5, 2))), 0.0, 1.0, 4.0, 2.0], [array((5, 2))[1:4:2]]),
    OpCase(SLICE, [In("x", array((5, 2), "int32"))], [array((5, 2), "int32")]),
    sliced(array((4005,)), 0, 7, 4004, 1, {"max_compute_workgroups_per_dimension": 4}),
    *(
        sliced(array((40, 9)), 1, 2, 7, 2, {"max_compute_invocations_per_workgroup": w})
        for w in (1, 32, 64, 128)
    ),
    *both(lambda d: selected(array((3, 8, 4), d), 0, 1)),
    *both(lambda d: selected(array((3, 8, 4), d), 1, 2)),
    *both(lambda d: selected(array((3, 8, 4), d), -1, 3)),
    *both(lambda d: selected(array((3, 8, 4), d), 1, -1)),
    *both(lambda d: selected(array((9,), d), 0, 5)),
    OpCase(SELECT, [In("x", array((3, 4))), 1.0, 2.0], [array((3, 4))[:, 2]]),
    *both(lambda d: split(array((1, 8, 4, 4), d), [2, 3, 3], 1)),
    *both(lambda d: split(array((5, 4), d), [3, 2], 0)),
    *both(lambda d: split(array((2, 8), d), [4, 4], -1)),
    *both(lambda d: split(array((2, 9), d), [1, 6, 2], 1)),
    OpCase(SPLIT, [In("x", array((4,))), [1, 3]], [array((4,))[1:]], outputs=(1,)),
]


def live(op, args, route, outputs=1):
    def run(n):
        x = distinct((2, n, 3), n)
        expected = route(x)
        return x, expected if outputs > 1 else [expected]

    first, expected = run(5)
    runs = [({"x": x}, y) for x, y in map(run, (2, 8, 3, 8))]
    return OpCase(op, [In("x", first, (2, 8, 3)), *args], expected, runs)


def symbolic_slice(dtype="float32"):
    """The start moves from run to run, also under equal shapes, and so does the length."""
    x = array((8, 3), dtype)
    steps = [(0, 8), (2, 5), (5, 8), (-3, 7), (7, 100), (0, 8)]
    runs = [({"s": s, "e": e}, [x[s:e]]) for s, e in steps]
    return OpCase(SLICE, [In("x", x), 0, Sym("s", 0), Sym("e", 1), 1], [x[0:1]], runs)


def symbolic_select(dtype="float32"):
    x = array((3, 8, 2), dtype)
    runs = [({"i": i}, [x[:, i]]) for i in (7, -1, 3, -8, 0)]
    return OpCase(SELECT, [In("x", x), 1, Sym("i", 2)], [x[:, 2]], runs)


LIVE = [
    live(SLICE, [1, 1, None], lambda x: x[:, 1:]),
    live(SLICE, [1, -2, MOST], lambda x: x[:, -2:]),
    live(SLICE, [1, None, 4, 2], lambda x: x[:, :4:2]),
    live(SELECT, [1, -1], lambda x: x[:, -1]),
    live(SELECT, [1, 1], lambda x: x[:, 1]),
    live(SPLIT, [[1, 2], 2], lambda x: [x[..., :1], x[..., 1:]], outputs=2),
    *both(symbolic_slice),
    *both(symbolic_select),
]


@pytest.mark.parametrize("c", [*CASES, *LIVE], ids=str)
def test_cpu(c):
    check(c)


def test_browser(gpu):
    check_all([*CASES, *LIVE], gpu)


@pytest.mark.parametrize(
    ("op", "args", "kind", "text"),
    [
        (SLICE, [2], ShapeError, "dim=2, allowed are -2 to 1"),
        (SLICE, [0, 0, 3, 0], ShapeError, "step is 0"),
        (SLICE, [0, 2, 2, 1], ShapeError, "2:2 of dim 0 .* is empty"),
        (SLICE, [0, 0.5, 2], UnsupportedOperator, "must be an integer, not 0.5"),
        (SELECT, [0, 3], IndexOutOfRange, "index 3 of dim 0"),
        (SELECT, [0, -4], IndexOutOfRange, "allowed are -3 to 2"),
        (SELECT, [0, 1.5], UnsupportedOperator, "must be an integer, not 1.5"),
        (SPLIT, [[1, 1], 0], ShapeError, "with sum 3"),
        (SPLIT, [[0, 3], 0], ShapeError, "must be positive"),
    ],
)
def test_refused_before_any_buffer(op, args, kind, text):
    with pytest.raises(kind, match=text) as caught:
        check(OpCase(op, [In("x", distinct((3, 4))), *args], []))
    assert "[buffers created: 0]" in str(caught.value)


def test_rank_0():
    for op, args in ((SLICE, []), (SELECT, [0, 0]), (SPLIT, [[1]])):
        with pytest.raises(ShapeError, match="rank 0"):
            check(OpCase(op, [In("x", distinct(())), *args], []))


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        (OpCase(SLICE, [In("x", distinct((8, 3))), 0, Sym("s", 4), Sym("e", 4)], []), ShapeError),
        (OpCase(SELECT, [In("x", distinct((8, 3))), 0, Sym("i", 8)], []), IndexOutOfRange),
    ],
)
def test_bad_live_values(case, kind):
    with pytest.raises(kind):
        check(case)


async def run_window(kind, table, steps):
    """Rows position .. position + n of a table: the rope table of a Llama, and a failed run."""
    import webgpu_py as wg

    g = wg.Graph()
    x = g.input("x", (wg.dim("n", max=4), 2))
    position = g.symint("position")
    end = g.call("add", position, g.call("sym_size.int", x, 0))
    rows = g.call("aten.slice_copy.Tensor", g.constant(table), 0, position, end)
    g.output("y", g.call("aten.add.Tensor", x, rows))
    session = await g.build(await wg.request_device(kind))
    found = []
    for n, at in steps:
        try:
            x = table[:n] * 0 + n
            found.append((await session.run(x=x, position=at))["y"])
        except wg.ShapeError:
            found.append(None)
    session.close()
    return found


STEPS = [(4, 0), (1, 4), (1, 5), (1, 9), (3, 2), (4, 4)]


def assert_window(run):
    table = distinct((8, 2))
    for (n, at), y in zip(STEPS, run(table), strict=True):
        if at + n > 8:
            assert y is None
        else:
            np.testing.assert_allclose(y, table[at : at + n] + n, rtol=1e-6)


def test_window():
    assert_window(lambda table: asyncio.run(run_window("cpu", table, STEPS)))


def test_window_browser(gpu):
    assert_window(lambda table: gpu.call(run_window, kind="browser", table=table, steps=STEPS))


@pytest.mark.parametrize(
    ("op", "args", "kernel"),
    [
        (SLICE, (1, 4, 12, 1), "box_copy_vec4"),
        (SLICE, (1, 3, 11, 1), "box_copy"),
        (SLICE, (1, 4, 11, 1), "box_copy"),
        (SELECT, (0, 2), "box_copy_vec4"),
        (SPLIT, ([4, 12], 1), "box_copy_vec4"),
    ],
)
def test_whole_vectors_are_moved_as_such(op, args, kernel):
    async def kernels():
        g = wg.Graph()
        parts = g.call(op, g.input("x", (6, 16)), *args)
        for i, part in enumerate(parts if isinstance(parts, tuple) else (parts,)):
            g.output(f"y{i}", part)
        session = await g.build(await wg.request_device("cpu"))
        return (await session.replay()).kernels

    assert set(asyncio.run(kernels())) == {kernel}
