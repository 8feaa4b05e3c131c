"""Session.debug on NumPy: the first NaN, infinity or wrong value, by node and name."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

import webgpu_py as wg
from unit.test_custom import SCALED
from webgpu_py import commands
from webgpu_py.backends.cpu import CpuBridge
from webgpu_py.device import Device
from webgpu_py.host import cli

X = np.linspace(0.5, 3, 12, dtype=np.float32).reshape(3, 4)


class Wrong(CpuBridge):
    """A device on which one operator's results are damaged."""

    def __init__(self, op, damage):
        super().__init__()
        self.op, self.damage = op, damage

    async def run(self, plan, blob):
        found = await super().run(plan, blob)
        p = self._plans[plan]
        for call in p.calls:
            if call.name == self.op:
                array = self._array(p, call.with_env(p.env), call.result_ids[0])
                self.damage(array)
        return found


def debugged(build, device=None, **inputs):
    async def body():
        g = wg.Graph()
        build(g)
        session = await g.build(device or await wg.request_device("cpu"))
        report = await session.debug(**inputs)
        held = session.device.bridge.stats()
        assert str(await session.debug(**inputs)) == str(report)
        assert session.device.bridge.stats() == held
        return report, None if report.fault else await session.run(**inputs)

    return asyncio.run(body())


def chain(g):
    x = g.input("x", (wg.dim("n", max=5), 4))
    y = g.add(x, g.constant(np.float32([1, 2, 3, 4])))
    g.output("z", g.relu(g.sqrt(g.mul(y, x))))


def test_a_clean_graph_says_so_and_gives_what_a_run_gives():
    report, out = debugged(chain, x=X)
    assert report.fault is None and report.nodes == 4 and report.unchecked == ()
    assert str(report) == "nodes examined: 4, none is wrong"
    np.testing.assert_array_equal(report.outputs["z"], out["z"])


@pytest.mark.parametrize("at", [(0, 0), (1, 3), (2, 3)])
def test_the_node_that_makes_nan_is_the_third(at):
    x = X.copy()
    x[at] = -0.25
    report, _ = debugged(chain, x=x)
    fault = report.fault
    assert (fault.node, fault.operator, fault.output) == (2, "aten.sqrt.default", "out")
    assert (fault.index, fault.why, fault.wrong, fault.numel) == (at, "nan", 1, 12)
    assert np.isnan(fault.found) and np.isnan(fault.expected) and report.outputs == {}
    assert "aten.sqrt.default (node 2), kernel unary(op=3, wg_size=" in str(report)
    assert f"out{list(at)} is nan, and no NaN was in its inputs" in str(report)


def test_nan_that_was_given_is_nobodys_fault():
    x = X.copy()
    x[1, 2] = np.nan
    report, out = debugged(chain, x=x)
    assert report.fault is None and np.isnan(out["z"][1, 2])


def test_infinity_is_found_where_it_is_made_but_not_where_it_is_asked_for():
    def overflowing(g):
        masked = g.add(g.input("x", (3, 4)), g.constant(np.float32([0, 0, 0, -np.inf])))
        g.output("y", g.exp(g.mul(g.relu(masked), g.constant(np.float32([100])))))

    report, _ = debugged(overflowing, x=X)
    assert (report.fault.node, report.fault.why, report.fault.operator) == (
        3,
        "inf",
        "aten.exp.default",
    )
    assert report.fault.index == tuple(np.argwhere(X[:, :3] > 0.887)[0])


def damaged(array):
    array[1, 2] += 0.5


def test_a_wrong_value_is_found_in_the_node_that_computes_it():
    report, _ = debugged(chain, Device(Wrong("aten.mul.Tensor", damaged)), x=X)
    fault = report.fault
    expected = np.float32((X[1, 2] + 3) * X[1, 2])
    assert (fault.node, fault.operator, fault.index) == (1, "aten.mul.Tensor", (1, 2))
    assert (fault.why, fault.wrong) == ("mismatch", 1)
    np.testing.assert_allclose([fault.expected, fault.found], [expected, expected + 0.5], rtol=1e-6)
    largest = (X * (X + np.float32([1, 2, 3, 4]))).max()
    np.testing.assert_allclose(fault.tolerance, 1e-3 * largest + 1e-6 * 7, rtol=1e-3)
    assert "allowed are 0.021 from it; 1 of 12 values are so" in str(report)


def test_a_wrong_value_within_the_tolerance_is_none():
    def little(array):
        array[1, 2] *= 1.0001

    assert debugged(chain, Device(Wrong("aten.mul.Tensor", little)), x=X)[0].fault is None


def rows_of_a_packed_table(g):
    blocks = np.random.default_rng(0).integers(0, 120, 8 * 34).astype(np.uint8)
    packed = g.call("webgpu_py.repack", g.constant(blocks), "Q8_0", 4, 64)
    rows = g.call("webgpu_py.embedding_q8", *packed, "f16", 32, 64, g.input("ids", (3,), "int32"))
    g.output("y", rows)


IDS = np.array([2, 0, 3], np.int32)


def test_work_that_was_done_at_build_is_examined_too():
    report, out = debugged(rows_of_a_packed_table, ids=IDS)
    assert (report.fault, report.nodes) == (None, 2)
    np.testing.assert_array_equal(report.outputs["y"], out["y"])

    def flip(codes):
        codes[3, 5] ^= 1 << 20

    device = Device(Wrong("webgpu_py.repack", flip))
    report, _ = debugged(rows_of_a_packed_table, device, ids=IDS)
    fault = report.fault
    assert (fault.node, fault.output, fault.index, fault.why) == (0, "codes", (3, 5), "mismatch")
    assert int(fault.found) ^ int(fault.expected) == 1 << 20


def test_what_a_node_changes_is_examined_as_its_results_are():
    def cached(g):
        cache = g.constant(np.zeros((1, 6, 2, 4), np.float32))
        x = g.input("x", (1, 2, 2, 4))
        g.call("update_cache.default", x, cache, 1)
        g.output("y", g.relu(cache))

    x = np.arange(16, dtype=np.float32).reshape(1, 2, 2, 4)
    report, _ = debugged(cached, x=x)
    assert report.fault is None
    np.testing.assert_array_equal(report.outputs["y"][:, 1:3], x)


def test_packed_pairs_may_be_rounded_otherwise_and_bytes_by_one():
    from webgpu_py.graph.debug import _near

    found = np.array([0x3C00_3C01, 0x3C02_3C00, 0x3C00_3BFF], np.uint32)
    assert _near(found, np.full(3, 0x3C00_3C00, np.uint32), 0)[0].tolist() == [True, False, True]
    found = np.array([-128, 4, 5], np.int8)
    assert _near(found, np.array([127, 5, 7], np.int8), 0)[0].tolist() == [False, True, False]
    found = np.array([1, 2], np.int32)
    assert _near(found, np.array([1, 3], np.int32), 0)[0].tolist() == [True, False]


def test_inputs_are_checked_as_for_a_run():
    with pytest.raises(wg.ShapeError, match=r"takes \['x'\], got \['y'\]"):
        debugged(chain, y=X)


PROGRAM = Path(__file__).parents[1] / "conformance/cases/own/two_delegates/model.pte"
ROWS = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


async def program_debugged(bridge):
    program = await wg.load(PROGRAM, device=Device(bridge))
    report = await program.forward.debug(ROWS)
    found = None if report.fault else await program.forward(ROWS)
    program.close()
    return report, found


def test_a_programs_delegates_are_examined_one_after_the_other():
    report, found = asyncio.run(program_debugged(CpuBridge()))
    assert report.fault is None and report.nodes >= 3
    np.testing.assert_array_equal(report.outputs["out0"], found)
    report, _ = asyncio.run(program_debugged(Wrong("aten.exp.default", damaged)))
    assert str(report).startswith("forward delegate 1: aten.exp.default (node 0), kernel unary(")
    assert report.outputs == {}


def test_run_debug_on_the_command_line(tmp_path, monkeypatch, capsys):
    np.savez(tmp_path / "in.npz", arg0=ROWS)
    out = tmp_path / "out.npz"
    words = ["run", str(PROGRAM), "--inputs", str(tmp_path / "in.npz"), "--outputs", str(out)]
    words += ["--device", "cpu", "--debug"]
    assert cli.main(words) == 0
    with np.load(out) as found:
        assert found["out0"].shape == (3, 3)
    out.unlink()
    wrong = Device(Wrong("aten.exp.default", damaged))
    monkeypatch.setitem(commands._devices, "cpu", wrong)
    assert cli.main(words) == 1 and not out.exists()
    assert "[WrongNumbers]" in (said := capsys.readouterr().err)
    assert "forward delegate 1: aten.exp.default (node 0)" in said


def test_a_kernel_without_a_reference_is_looked_at_for_nan_alone():
    @wg.kernel("test.unchecked(x, by=2.0) -> y", SCALED)
    def rule(x, by):
        return wg.Launch(x.shape, {"numel": x.numel, "by": by})

    class Knowing(CpuBridge):
        """A device that runs the kernel although NumPy can't."""

        async def run(self, plan, blob):
            rule.operator.numpy = lambda x, by: np.where(x > 2, np.nan, x * by)
            try:
                return await super().run(plan, blob)
            finally:
                rule.operator.numpy = None

    def build(g):
        g.output("y", g.relu(g.call("test.unchecked", g.input("x", (3, 4)))))

    report, _ = debugged(build, Device(Knowing()), x=X / 2)
    assert (report.fault, report.unchecked) == (None, ("test.unchecked",))
    assert str(report) == "nodes examined: 2, none is wrong; test.unchecked has no reference"
    report, _ = debugged(build, Device(Knowing()), x=X)
    assert (report.fault.node, report.fault.why, report.fault.expected) == (0, "nan", None)
    assert "reference" not in str(report)
