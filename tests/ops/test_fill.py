"""Tensors of one value: dtypes, edge sizes, live sizes and values, errors."""

import asyncio

import numpy as np
import pytest

import webgpu_py as wg
from ops.opcase import In, OpCase, Sym, check, check_all, distinct
from webgpu_py import DtypeError, ShapeError

FULL = "aten.full.default"
X = distinct((5, 3))


def case(size, value, dtype=None, limits=None):
    expected = np.full(size, value, dtype or "float32")
    return OpCase(FULL, [list(size), value, dtype], [expected], limits=limits)


def live_value(dtype):
    as_dtype = lambda v: np.full((5,), v).astype(dtype)  # noqa: E731
    runs = [({"n": v}, [as_dtype(v)]) for v in (7, -2)]
    return OpCase(FULL, [[5], Sym("n", 0), dtype], [as_dtype(0)], runs)


def live_like():
    runs = [({"x": distinct((n, 3), n)}, [np.full((n, 3), 2.5)]) for n in (1, 6, 2)]
    return OpCase("aten.full_like.default", [In("x", X, (6, 3)), 2.5], [np.full((5, 3), 2.5)], runs)


CASES = [
    *(case((n,), -1.5) for n in (1, 3, 4, 5, 1023, 1025)),
    case((2, 3, 4, 5), 7),
    case((), 3.5),
    case((3,), -np.inf),
    *(case((n,), 3, "int8") for n in (1, 2, 15, 16, 17)),
    case((7,), -(2**31), "int32"),
    case((9,), 255, "uint8"),
    case((6,), 2, "bool"),
    case((5000,), 1.25, limits={"max_compute_workgroups_per_dimension": 4}),
    *(case((70,), 4.5, limits={"max_compute_invocations_per_workgroup": w}) for w in (1, 32, 128)),
    OpCase("aten.scalar_tensor.default", [2.5], [np.array(2.5)]),
    OpCase("aten.scalar_tensor.default", [-3, "int32"], [np.array(-3, np.int32)]),
    OpCase("aten.zeros.default", [[3, 5]], [np.zeros((3, 5))]),
    OpCase("aten.ones.default", [[3, 5], 3], [np.ones((3, 5), np.int32)]),
    OpCase("aten.full_like.default", [In("x", X), 7.25], [np.full((5, 3), 7.25)]),
    OpCase("aten.zeros_like.default", [In("x", X), 11], [np.zeros((5, 3), bool)]),
    OpCase("aten.ones_like.default", [In("x", X)], [np.ones((5, 3))]),
    *(live_value(dtype) for dtype in ("float32", "int32", "int8", "bool")),
    live_like(),
]


@pytest.mark.parametrize("c", CASES, ids=str)
def test_cpu(c):
    check(c)


def test_browser(gpu):
    check_all(CASES, gpu)


@pytest.mark.parametrize(
    ("args", "kind", "text"),
    [
        ([[2, 0], 1.0], ShapeError, "every dim must be at least 1"),
        ([[2], 1.0, 9], DtypeError, "dtype is 9"),
        ([[2], np.inf, "int32"], DtypeError, "value inf as int32"),
    ],
)
def test_refused_before_any_buffer(args, kind, text):
    with pytest.raises(kind, match=text) as caught:
        check(OpCase(FULL, args, []))
    assert "[buffers created: 0]" in str(caught.value)


def test_live_size():
    """A symbolic size: its initial value is the largest."""

    async def run():
        g = wg.Graph()
        n = g.symint("n", 6)
        g.output("y", g.call(FULL, [n, 2], 3.0))
        session = await g.build(await wg.request_device("cpu"))
        return [(await session.run(n=k))["y"].shape for k in (6, 1, 4)]

    assert asyncio.run(run()) == [(6, 2), (1, 2), (4, 2)]
