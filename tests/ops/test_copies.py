"""Flat copies: clone, view, squeeze, unsqueeze; every dtype, live shapes, errors."""

import asyncio

import numpy as np
import pytest

from ops.opcase import In, OpCase, Sym, check, check_all, distinct
from webgpu_py import ShapeError

VIEW = "aten.view_copy.default"
DTYPES = ("float32", "int32", "int8", "uint8", "bool")


def array(shape, dtype="float32"):
    n = int(np.prod(shape))
    if dtype == "bool":
        return (np.arange(n) * 7 % 3 == 1).reshape(shape)
    return distinct(shape) if dtype == "float32" else np.arange(n).astype(dtype).reshape(shape)


def case(op, x, args, dims):
    return OpCase(op, [In("x", x), *args], [np.asarray(x).reshape(dims)])


def live_view(sizes, dims_of, max_dims=(8, 6)):
    """`sizes` as written for the maximum; the result of n rows is `dims_of(n)`."""

    def run(n):
        x = distinct((n, 6), n)
        return x, [x.reshape(dims_of(n))]

    first, expected = run(5)
    runs = [({"x": x}, y) for x, y in map(run, (1, 8, 2, 8))]
    return OpCase(VIEW, [In("x", first, max_dims), sizes], expected, runs)


CASES = [
    *(case("aten.clone.default", array((3, 5), d), [None], (3, 5)) for d in DTYPES),
    case("aten.alias_copy.default", array((16,)), [], (16,)),
    case("dim_order_ops._clone_dim_order.default", array((1, 3, 4)), [False, [0, 1, 2]], (1, 3, 4)),
    case("aten.squeeze_copy.dims", array((1, 3, 1, 4)), [[0, 2]], (3, 4)),
    case("aten.squeeze_copy.dims", array((2, 1, 4)), [[-2, 0]], (2, 4)),
    case("aten.squeeze_copy.dims", array((1,)), [[0]], ()),
    case("aten.unsqueeze_copy.default", array((3, 4)), [0], (1, 3, 4)),
    case("aten.unsqueeze_copy.default", array((3, 4)), [-1], (3, 4, 1)),
    case("aten.unsqueeze_copy.default", array(()), [0], (1,)),
    case(VIEW, array((2, 3, 4)), [[6, 4]], (6, 4)),
    case(VIEW, array((2, 3, 4), "int8"), [[-1]], (24,)),
    case(VIEW, array((1, 1)), [[]], ()),
    live_view([-1, 3], lambda n: (2 * n, 3)),
    live_view([16, 3], lambda n: (2 * n, 3)),
    live_view([1, 8, 2, 3], lambda n: (1, n, 2, 3)),
    live_view([6, 8], lambda n: (6, n) if n != 2 else (6, 2)),
]


def live_squeeze():
    """A live dim that happens to be 1 is kept."""
    runs = [({"x": distinct((n, 1), n)}, [distinct((n, 1), n)[:, 0]]) for n in (1, 4, 2)]
    first = distinct((3, 1), 9)
    return OpCase("aten.squeeze_copy.dims", [In("x", first, (4, 1)), [0, 1]], [first[:, 0]], runs)


async def run_symbolic(kind, arrays):
    """View of x [n, 6] as [1, n, 6], the size taken by sym_size, then expanded to [2, n, 6]."""
    import webgpu_py as wg

    g = wg.Graph()
    x = g.input("x", (wg.dim("n", max=8), 6))
    n = g.call("sym_size.int", x, 0)
    view = g.call("aten.view_copy.default", x, [1, n, 6])
    g.output("y", g.call("aten.expand_copy.default", view, [2, n, 6]))
    session = await g.build(await wg.request_device(kind))
    found = [(await session.run(x=a))["y"] for a in arrays]
    session.close()
    return found


ARRAYS = [distinct((n, 6), n) for n in (5, 1, 8, 2)]


def assert_twice(found):
    for y, x in zip(found, ARRAYS, strict=True):
        np.testing.assert_array_equal(y, np.stack([x, x]))


def test_symbolic_sizes():
    assert_twice(asyncio.run(run_symbolic("cpu", ARRAYS)))


def test_symbolic_sizes_browser(gpu):
    assert_twice(gpu.call(run_symbolic, kind="browser", arrays=ARRAYS))


async def run_kept_copy(kind, value, cache):
    """A copy that is written in place afterwards: the planner must not drop it."""
    import webgpu_py as wg

    g = wg.Graph()
    x = g.input("cache", cache.shape)
    row = g.input("value", value.shape)
    copy = g.call("aten.clone.default", x)
    g.call("update_cache.default", row, copy, 1)
    g.output("copy", copy)
    g.output("same", g.call("aten.alias_copy.default", x))
    session = await g.build(await wg.request_device(kind))
    found = await session.run(cache=cache, value=value)
    session.close()
    return found


def assert_kept(run):
    cache, value = distinct((1, 3, 2, 5), 1), distinct((1, 1, 2, 5), 2)
    found = run(value, cache)
    changed = cache.copy()
    changed[:, 1:2] = value
    np.testing.assert_array_equal(found["copy"], changed)
    np.testing.assert_array_equal(found["same"], cache)


def test_copy_that_is_written():
    assert_kept(lambda value, cache: asyncio.run(run_kept_copy("cpu", value, cache)))


def test_copy_that_is_written_browser(gpu):
    assert_kept(
        lambda value, cache: gpu.call(run_kept_copy, kind="browser", value=value, cache=cache)
    )


@pytest.mark.parametrize("c", [*CASES, live_squeeze()], ids=str)
def test_cpu(c):
    check(c)


def test_browser(gpu):
    check_all([*CASES, live_squeeze()], gpu)


@pytest.mark.parametrize(
    ("op", "args", "text"),
    [
        (VIEW, [[5, 5]], "24 elements"),
        (VIEW, [[-1, -1]], "24 elements"),
        (VIEW, [[-1, 7]], "24 elements"),
        (VIEW, [[0, 24]], "24 elements"),
        ("aten.squeeze_copy.dims", [[3]], "allowed are -3 to 2"),
        ("aten.unsqueeze_copy.default", [4], "allowed are -4 to 3"),
    ],
)
def test_refused_before_any_buffer(op, args, text):
    with pytest.raises(ShapeError, match=text) as caught:
        check(OpCase(op, [In("x", array((2, 3, 4))), *args], []))
    assert "[buffers created: 0]" in str(caught.value)


def test_live_view_that_does_not_divide():
    x = distinct((3, 6))
    case = OpCase(VIEW, [In("x", distinct((8, 6)), (8, 6)), [4, 12]], [], [({"x": x}, [])])
    with pytest.raises(ShapeError, match="18 elements"):
        check(case)


def test_size_zero_before_the_first_run():
    """A SymInt input whose initial value is no size: a hand-built graph must give another."""
    x = distinct((4, 6))
    with pytest.raises(ShapeError, match="24 elements"):
        check(OpCase(VIEW, [In("x", x), [Sym("n", 4), 6]], []))
