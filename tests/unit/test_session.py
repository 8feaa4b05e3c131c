"""Sessions on the NumPy executor: memory, constants, live shapes, boundaries, state."""

import asyncio

import numpy as np
import pytest

import webgpu_py as wg
from recording_bridge import RecordingBridge
from webgpu_py.device import Device
from webgpu_py.errors import DtypeError, IndexOutOfRange, LimitExceeded, ShapeError
from webgpu_py.graph.memory import plan_memory
from webgpu_py.graph.shapes import propagate, resolve
from webgpu_py.graph.values import Constant, GraphIR, Node, Port, Tensor, TensorSpec

W = np.arange(1, 5, dtype=np.float32)


@pytest.fixture
def device():
    return Device(RecordingBridge())


def run(coroutine):
    return asyncio.run(coroutine)


def chain(length):
    g = wg.Graph()
    x = g.input("x", (wg.dim("n", max=16), 4))
    w = g.call("et_vk.prepack.default", g.constant(W))
    y = x
    for _ in range(length):
        y = g.add(y, w)
    g.output("y", y)
    return g


def test_one_crossing_a_run_whatever_the_dispatches(device):
    session = run(chain(300).build(device))
    assert session.dispatches == 300
    x = np.arange(64, dtype=np.float32).reshape(16, 4)
    before = device.bridge.crossings
    out = run(session.run(x=x))
    assert device.bridge.crossings == before + 1
    np.testing.assert_array_equal(out["y"], x + 300 * W)


def test_a_chain_of_300_needs_two_activation_buffers(device):
    session = run(chain(300).build(device))
    assert session.memory()["activations"] == 2 * 256


def test_live_shapes_grow_after_they_shrank_and_lower_once_each(device):
    session = run(chain(2).build(device))
    for n in (16, 8, 1, 16, 8, 1):
        x = np.random.default_rng(n).standard_normal((n, 4)).astype(np.float32)
        np.testing.assert_allclose(run(session.run(x=x))["y"], x + 2 * W, rtol=1e-6)
    assert device.bridge.count("load_plan") == 3


def test_memory_is_what_was_allocated_and_close_frees_it(device):
    sessions = [run(chain(n).build(device)) for n in (1, 5)]
    assert sum(s.memory()["total"] for s in sessions) == device.bridge.stats()["buffer_nbytes"]
    x = np.ones((3, 4), np.float32)
    sessions[0].close()
    sessions[0].close()
    np.testing.assert_array_equal(run(sessions[1].run(x=x))["y"], x + 5 * W)
    sessions[1].close()
    assert device.bridge.stats()["buffer_nbytes"] == 0
    with pytest.raises(ShapeError, match="closed"):
        run(sessions[1].run(x=x))


def test_a_failed_run_leaves_the_session_usable(device):
    session = run(chain(1).build(device))
    for bad, kind, text in [
        ({"x": np.ones((17, 4), np.float32)}, ShapeError, r"\[17, 4\]"),
        ({"x": np.ones((0, 4), np.float32)}, ShapeError, r"\[0, 4\]"),
        ({"x": np.ones((2, 3), np.float32)}, ShapeError, "dim 1 is 3, must be 4"),
        ({"x": np.ones((2, 4), np.float64)}, DtypeError, "float64"),
        ({"y": np.ones((2, 4), np.float32)}, ShapeError, r"takes \['x'\]"),
    ]:
        with pytest.raises(kind, match=text):
            run(session.run(**bad))
    x = np.ones((2, 4), np.float32)
    np.testing.assert_array_equal(run(session.run(x=x))["y"], x + W)


def test_equal_dims_by_name(device):
    g = wg.Graph()
    n = wg.dim("n", max=8)
    g.output("y", g.add(g.input("a", (n, 2)), g.input("b", (n, 2))))
    session = run(g.build(device))
    with pytest.raises(ShapeError, match=r"'n' is 3 in 'a' and 1 in 'b'"):
        run(session.run(a=np.ones((3, 2), np.float32), b=np.ones((1, 2), np.float32)))


def test_non_contiguous_input_is_read_as_numpy_reads_it(device):
    session = run(chain(1).build(device))
    x = np.arange(64, dtype=np.float32).reshape(8, 8)[:, ::2]
    np.testing.assert_array_equal(run(session.run(x=x))["y"], x + W)


def test_float16_meets_float32(device):
    session = run(chain(1).build(device))
    x = np.arange(8, dtype=np.float16).reshape(2, 4)
    np.testing.assert_array_equal(run(session.run(x=x))["y"], x.astype(np.float32) + W)


# -- constants


def uploads(device):
    return device.bridge.count("write") + device.bridge.count("upload")


def test_prepack_copies_once_however_often_it_runs(device):
    session = run(chain(3).build(device))
    for _ in range(3):
        run(session.run(x=np.ones((2, 4), np.float32)))
    assert uploads(device) == 1


def test_a_constant_used_directly_and_prepacked_is_stored_once(device):
    g = wg.Graph()
    c = g.constant(W)
    p = g.call("et_vk.prepack.default", c)
    g.output("y", g.add(g.add(g.input("x", (4,)), c), p))
    session = run(g.build(device))
    assert session.memory()["weights"] == 16
    out = run(session.run(x=np.zeros(4, np.float32)))
    np.testing.assert_array_equal(out["y"], 2 * W)


def test_tied_keys_are_stored_once_and_an_unused_constant_not_at_all(device):
    g = wg.Graph()
    a = g.call("et_vk.prepack.default", g.constant(W, key="same"))
    b = g.call("et_vk.prepack.default", g.constant(W, key="same"))
    g.constant(np.ones(1 << 20, np.float32))
    g.output("y", g.add(g.add(g.input("x", (4,)), a), b))
    session = run(g.build(device))
    assert session.memory()["weights"] == 16
    assert uploads(device) == 1
    np.testing.assert_array_equal(run(session.run(x=W))["y"], 3 * W)


@pytest.mark.parametrize("dtype", ["float16", "float64", "bfloat16"])
def test_half_and_double_constants_become_float32(device, dtype):
    values = np.array([1.0, -2.5, 0.15625, 1024.0], np.float32)
    stored = (
        (values.view(np.uint32) >> 16).astype(np.uint16)
        if dtype == "bfloat16"
        else values.astype(dtype)
    )
    g = wg.Graph()
    c = g.constant(Constant(TensorSpec("float32", (4,)), stored.tobytes(), dtype=dtype))
    g.output("y", g.add(g.input("x", (4,)), c))
    session = run(g.build(device))
    np.testing.assert_array_equal(run(session.run(x=np.zeros(4, np.float32)))["y"], values)


def test_an_undersized_constant_is_refused(device):
    g = wg.Graph()
    c = g.constant(Constant(TensorSpec("float32", (4,)), bytes(12), key="w"))
    g.output("y", g.add(g.input("x", (4,)), c))
    with pytest.raises(wg.FormatError, match="w is undersized: 12 bytes"):
        run(g.build(device))
    assert device.bridge.stats()["buffer_nbytes"] == 0


def test_prepack_of_something_that_is_no_constant(device):
    g = wg.Graph()
    g.output("y", g.call("et_vk.prepack.default", g.input("x", (4,))))
    with pytest.raises(ShapeError, match="no constants"):
        run(g.build(device))
    assert device.bridge.count("create_buffers") == 0


# -- shapes of graphs that files bring


def test_an_output_that_is_an_input_and_one_that_is_a_constant(device):
    spec = TensorSpec("float32", (4,))
    ir = GraphIR(
        values=[Tensor(spec), Tensor(spec, 0)],
        inputs=[Port("x", 0)],
        outputs=[Port("same", 0), Port("w", 1), Port("again", 0)],
        constants=[Constant(spec, W)],
    )
    session = run(wg.Session.build(device, ir))
    out = run(session.run(x=2 * W))
    np.testing.assert_array_equal(out["same"], 2 * W)
    np.testing.assert_array_equal(out["again"], 2 * W)
    np.testing.assert_array_equal(out["w"], W)


def test_unknown_operators_are_named_together(device):
    ir = GraphIR(nodes=[Node("aten.nonsense", (0,)), Node("et_vk.none", (0,))])
    with pytest.raises(wg.UnsupportedOperator, match=r"aten\.nonsense, et_vk\.none"):
        run(wg.Session.build(device, ir))


def test_injected_limits_are_checked_before_any_allocation(device):
    for limits, text in [
        ({"max_storage_buffer_binding_size": 128}, "binding of 256 bytes, this device allows 128"),
        ({"max_buffer_size": 128}, "buffer of 256 bytes, this device allows 128"),
        ({"max_storage_buffers_per_shader_stage": 2}, "3 storage buffers, allowed are 2"),
        ({"max_nonsense": 1}, "no limit named 'max_nonsense'"),
    ]:
        with pytest.raises(LimitExceeded, match=text):
            run(chain(2).build(device, limits=limits))
    assert device.bridge.count("create_buffers") == 0


# -- builder


def test_the_builder_checks_at_the_call_and_stays_as_it_was():
    g = wg.Graph()
    x = g.input("x", (2, 3))
    before = (len(g.ir.values), len(g.ir.nodes))
    with pytest.raises(ShapeError, match="do not broadcast"):
        g.add(x, g.constant(np.ones(2)))
    with pytest.raises(ShapeError, match="at most 3 arguments"):
        g.add(x, x, 1, 2)
    with pytest.raises(DtypeError, match="ndarray"):
        g.add(x, np.ones(3))
    with pytest.raises(ShapeError, match="another graph"):
        wg.Graph().add(x, x)
    with pytest.raises(wg.UnsupportedOperator, match="nonsense"):
        g.nonsense(x)
    assert len(g.ir.nodes) == before[1]
    with pytest.raises(ShapeError, match="no output"):
        run(g.build(Device(RecordingBridge())))
    with pytest.raises(ShapeError, match="already"):
        g.input("x", (1,))


def test_an_int64_constant_must_fit():
    g = wg.Graph()
    assert g.constant(np.array([1, 2])).dtype == "int32"
    with pytest.raises(DtypeError, match="does not fit int32"):
        g.constant(np.array([2**31]))


def test_symint_inputs_are_range_checked(device):
    g = wg.Graph()
    g.symint("pos")
    g.output("y", g.add(g.input("x", (4,)), g.constant(W)))
    session = run(g.build(device))
    with pytest.raises(IndexOutOfRange, match="2147483648"):
        run(session.run(pos=2**31, x=W))
    np.testing.assert_array_equal(run(session.run(pos=-1, x=W))["y"], 2 * W)


# -- buffers that files let overlap


def slots(graph):
    calls = resolve(graph.ir)
    propagate(graph.ir, calls, {}, {})
    return plan_memory(graph.ir, calls).slot_of


def test_an_add_whose_operand_dies_there_gets_another_buffer(device):
    # A file may plan a result onto its operand; WebGPU refuses one buffer both read and written.
    g = wg.Graph()
    x = g.input("x", (4,))
    a = g.add(x, g.constant(W))
    b = g.add(a, a)
    g.output("y", g.add(b, g.constant(W)))
    where = slots(g)
    assert where[b.id] != where[a.id]
    session = run(g.build(device))
    for k in (1, 2):
        out = run(session.run(x=np.full(4, k, np.float32)))
        np.testing.assert_array_equal(out["y"], 2 * (k + W) + W)


def test_an_input_may_share_its_buffer_with_activations(device):
    g = wg.Graph()
    x = g.input("x", (4,))
    values = [x]
    for _ in range(4):
        values.append(g.add(values[-1], g.constant(W)))
    g.output("y", values[-1])
    where = slots(g)
    assert where[x.id] in {where[v.id] for v in values[2:]}
    session = run(g.build(device))
    for k in (1, 2, 3):
        out = run(session.run(x=np.full(4, k, np.float32)))
        np.testing.assert_array_equal(out["y"], k + 4 * W)


def test_what_lasts_can_be_read_and_nothing_else(device):
    g = wg.Graph()
    x = g.input("x", (2, 4))
    w = g.constant(W)
    y = g.add(x, w)
    g.output("y", g.add(y, w))
    session = run(g.build(device))
    assert run(session.read(w.id)) == W.tobytes()
    assert run(session.read(w.id, 4, 8)) == W[1:3].tobytes()
    assert run(session.read(w.id, 16)) == b""
    for offset, nbytes in ((17, None), (12, 5), (-1, 2), (0, -1)):
        with pytest.raises(ShapeError, match="has 16 bytes"):
            run(session.read(w.id, offset, nbytes))
    with pytest.raises(ShapeError, match="does not last from run to run"):
        run(session.read(y.id))
    with pytest.raises(ShapeError, match="no tensor on the device"):
        run(session.read(999))
    session.close()
    with pytest.raises(ShapeError, match="closed"):
        run(session.read(w.id))


def test_runs_of_the_same_dims_look_at_values_again():
    g = wg.Graph()
    table = g.constant(np.arange(10, dtype=np.float32))
    n = g.input("n", (1,), "int32")
    ids = g.input("ids", (2,), "int32")
    start = g.call("et_vk.select_as_symint.default", n, 0, 0)
    g.output("part", g.call("aten.slice_copy.Tensor", table, 0, 0, start))
    g.output("rows", g.call("aten.embedding.default", g.constant(np.eye(4, dtype=np.float32)), ids))

    async def run():
        session = await g.build(await wg.request_device("cpu"))
        found = []
        for count in (3, 7, 3):
            out = await session.run(n=[count], ids=np.array([count % 4, 0], np.int64))
            found.append((len(out["part"]), out["rows"].argmax(axis=1).tolist()))
        with pytest.raises(IndexOutOfRange, match="index 4 at position 1"):
            await session.run(n=[3], ids=np.array([0, 4], np.int64))
        return found

    assert asyncio.run(run()) == [(3, [3, 0]), (7, [3, 0]), (3, [3, 0])]
