"""Symbolic integers: live values, int32 arithmetic, errors; and one that reaches a kernel."""

import asyncio

import numpy as np
import pytest

import webgpu_py as wg
from ops import features
from webgpu_py import DtypeError, IndexOutOfRange, ShapeError, UnsupportedOperator
from webgpu_py.graph.shapes import propagate, resolve
from webgpu_py.graph.values import (
    Bool,
    Double,
    GraphIR,
    Int,
    Node,
    Null,
    Port,
    SymInt,
    Tensor,
    TensorSpec,
)


def evaluate(op, *args, live=None, host=None, initial=7, inputs=(0,)):
    """The SymInt that `op` gives on IR values; argument 0 is a graph input when a tensor."""
    values = [*args, SymInt(initial)]
    ids = tuple(range(len(values)))
    ir = GraphIR(values=values, nodes=[Node(op, ids)])
    ir.inputs = [Port(f"i{i}", i) for i in inputs]
    env = propagate(ir, resolve(ir), live or {}, host or {})
    dtypes = {v.spec.dtype for v in args if isinstance(v, Tensor)}
    features.record(op, "cpu", dtypes, live=bool(live))
    return env.symints[ids[-1]]


def tensor(*dims, dtype="int32"):
    return Tensor(TensorSpec(dtype, dims))


@pytest.mark.parametrize(("dim", "expected"), [(0, 3), (1, 5), (-1, 5), (-2, 3)])
def test_sym_size_is_live(dim, expected):
    assert evaluate("sym_size.int", tensor(8, 5), Int(dim), live={0: (3, 5)}) == expected


def test_sym_size_of_an_intermediate_tensor_is_live():
    g = wg.Graph()
    x = g.input("x", (wg.dim("n", max=8), 2))
    y = g.call("aten.add.Tensor", x, g.constant(np.ones(2, np.float32)))
    g.call("sym_size.int", y, 0)
    env = propagate(g.ir, resolve(g.ir), {x.id: (3, 2)}, {})
    assert list(env.symints.values()) == [3]


@pytest.mark.parametrize(
    ("host", "dim", "index", "expected"),
    [
        (np.array([11, 12, 13], np.int64), 0, 1, 12),
        (np.array([11, 12, 13], np.int32), 0, -1, 13),
        (np.arange(24, dtype=np.int64).reshape(2, 3, 4), -2, 2, 8),
        (np.array([-(2**31), 2**31 - 1], np.int64), -1, 0, -(2**31)),
    ],
)
def test_select_as_symint(host, dim, index, expected):
    args = (tensor(*host.shape), Int(dim), Int(index))
    found = evaluate("et_vk.select_as_symint.default", *args, host={0: host})
    assert found == expected


def test_select_as_symint_counts_from_the_live_end():
    host = np.array([5, 6], np.int64)
    args = (tensor(8), Double(0.0), Int(-1))
    live = {0: (2,)}
    assert evaluate("et_vk.select_as_symint.default", *args, live=live, host={0: host}) == 6


def test_select_as_symint_starts_with_the_initial_value():
    assert evaluate("et_vk.select_as_symint.default", tensor(2), Int(0), Int(0), initial=9) == 9


@pytest.mark.parametrize(
    ("op", "a", "b", "expected"),
    [
        ("add", 3, 4, 7),
        ("add", 2**31 - 1, 1, -(2**31)),
        ("sub", -(2**31), 1, 2**31 - 1),
        ("mul", 65536, 65536, 0),
        ("mul", 46341, 46341, 46341 * 46341 - 2**32),
        ("floordiv", 7, 2, 3),
        ("floordiv", -7, 2, -4),
        ("floordiv", 7, -2, -4),
    ],
)
def test_arithmetic_in_int32(op, a, b, expected):
    assert evaluate(op, SymInt(a), Int(b), inputs=()) == expected
    assert evaluate(op, Int(a), SymInt(b), inputs=()) == expected


@pytest.mark.parametrize(
    ("op", "args", "host", "kind", "text"),
    [
        ("sym_size.int", (tensor(2), Int(1)), None, ShapeError, "dim=1, allowed are -1 to 0"),
        ("sym_size.int", (tensor(), Int(0)), None, ShapeError, "scalar"),
        ("sym_size.int", (tensor(2), Double(0.5)), None, UnsupportedOperator, "must be an integer"),
        ("sym_size.int", (Int(2), Int(0)), None, UnsupportedOperator, "must be a Tensor"),
        ("sym_size.int", (tensor(2),), None, UnsupportedOperator, "'dim' is missing"),
        ("floordiv", (SymInt(4), Int(0)), None, ShapeError, "must not be 0"),
        ("floordiv", (SymInt(-(2**31)), Int(-1)), None, ShapeError, "does not fit int32"),
        ("add", (SymInt(4), Null()), None, UnsupportedOperator, "'b' is missing"),
        ("mul", (SymInt(4), tensor(1)), None, UnsupportedOperator, "must be a number"),
        ("add", (SymInt(4), Double(0.5)), None, UnsupportedOperator, "must be an integer"),
    ],
)
def test_refused(op, args, host, kind, text):
    inputs = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
    with pytest.raises(kind, match=text):
        evaluate(op, *args, host=host, inputs=inputs)


@pytest.mark.parametrize(
    ("args", "host", "kind", "text"),
    [
        ((tensor(2), Int(1), Int(0)), None, ShapeError, "dim=1"),
        ((tensor(2), Int(0), Int(2)), None, IndexOutOfRange, "index=2 .* allowed are -2 to 1"),
        ((tensor(4), Int(0), Int(-3)), np.zeros(2, np.int64), IndexOutOfRange, "index=-3"),
        ((tensor(), Int(0), Int(0)), None, ShapeError, "scalar"),
        ((tensor(2), Int(0), Int(0)), np.zeros(0, np.int64), ShapeError, "empty"),
        ((tensor(2), Int(0), Int(0)), np.zeros(2, np.float32), DtypeError, "float32"),
        ((tensor(2), Int(0), Int(1)), np.array([0, 2**31]), IndexOutOfRange, "2147483648 at"),
        ((tensor(2), Int(0), Bool(True)), np.array([0, -(2**40)]), IndexOutOfRange, "fit int32"),
    ],
)
def test_select_as_symint_refused(args, host, kind, text):
    host = None if host is None else {0: host}
    with pytest.raises(kind, match=text):
        evaluate("et_vk.select_as_symint.default", *args, host=host)


def test_select_as_symint_needs_a_graph_input():
    with pytest.raises(UnsupportedOperator, match="no graph input"):
        evaluate("et_vk.select_as_symint.default", tensor(2), Int(0), Int(0), inputs=())


def test_a_result_that_is_no_symint_is_left_alone():
    ir = GraphIR(values=[Int(1), Int(0), Null()], nodes=[Node("floordiv", (0, 1, 2))])
    assert propagate(ir, resolve(ir), {}, {}).symints == {}


async def rotated(kind, positions):
    """q rotated at start_pos = 2 * position[1] + 1, a value no input holds."""
    import numpy as np

    import webgpu_py as wg

    device = await wg.request_device(kind)
    g = wg.Graph()
    q = g.input("q", (1, wg.dim("s", max=2), 1, 4))
    at = g.input("at", (2,), "int32")
    table = np.arange(64, dtype=np.float32).reshape(16, 4)
    position = g.call("et_vk.select_as_symint.default", at, 0, 1)
    start = g.call("add", g.call("mul", position, 2), 1)
    cos, sin = g.constant(table), g.constant(np.zeros((16, 4), np.float32))
    out, _ = g.call("et_vk.apply_rotary_emb_hf.default", q, q, cos, sin, start)
    g.output("out", out)
    session = await g.build(device)
    found = []
    for s, p in positions:
        ones = np.ones((1, s, 1, 4), np.float32)
        found.append((await session.run(q=ones, at=np.array([99, p])))["out"])
    session.close()
    return found


POSITIONS = [(2, 0), (1, 5), (2, 6)]


def check_rotated(found):
    table = np.arange(64, dtype=np.float32).reshape(16, 4)
    for (s, p), got in zip(POSITIONS, found, strict=True):
        assert np.array_equal(got[0, :, 0], table[2 * p + 1 : 2 * p + 1 + s])


def test_a_symint_reaches_the_kernel_cpu():
    check_rotated(asyncio.run(rotated("cpu", POSITIONS)))


def test_a_symint_reaches_the_kernel_browser(gpu):
    check_rotated(gpu.call(rotated, kind="browser", positions=POSITIONS))
