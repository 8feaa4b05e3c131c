"""Kernels found by trying: what is tried, what is taken, and what is left behind."""

import asyncio

import numpy as np
import pytest

import webgpu_py as wg
from ops.opcase import distinct
from webgpu_py import FeatureMissing, OutOfMemory
from webgpu_py.backends.cpu import CpuBridge
from webgpu_py.device import Device
from webgpu_py.quant.q4gsw import quantize_q4gsw

K, N = 1024, 256
OP = "et_vk.linear_q4gsw.default"


class Scripted(CpuBridge):
    """Computes as NumPy does; a plan takes as long as its slowest kernel is said to."""

    kind = "scripted"

    def __init__(self, ms):
        super().__init__()
        self.ms, self.specs, self.repeated, self.room = ms, {}, 0, None

    async def create_pipelines(self, specs):
        handles = await super().create_pipelines(specs)
        self.specs.update(zip(handles, specs, strict=True))
        return handles

    async def create_buffers(self, nbytes, labels):
        if self.room is not None and sum(nbytes) > self.room:
            raise OutOfMemory(f"{sum(nbytes)} bytes, {self.room} are left")
        return await super().create_buffers(nbytes, labels)

    async def repeat(self, plan, count):
        self.repeated += 1
        specs = [self.specs[p] for p in self._plans[plan].bind_groups[::3]]
        return count * max(self.ms(s.kernel.name, dict(s.constants)) for s in specs)


def graph():
    g = wg.Graph()
    weight = quantize_q4gsw(distinct((N, K)))
    x = g.input("x", (wg.dim("m", max=64), K))
    g.output("y", g.call(OP, x, g.constant(weight.packed), g.constant(weight.scales), 32))
    return g


def lanes_of_8(name, constants):
    return 1.0 if name == "packed_gemv" and constants["lanes"] == 8 else 2.0


def splits_are_slow(name, constants):
    return 9.0 if name == "packed_merge" else 1.0 if constants.get("blocks") == 1 else 3.0


async def tuned_session(bridge, rows):
    device = Device(bridge)
    session = await graph().build(device)
    x = distinct((rows, K))
    before, held = await session.run(x=x), session.memory()
    found = await session.autotune(x=(rows, K))
    return device, session, x, before, held, found


def plan_constants(session, rows):
    replay = asyncio.run(session.replay(x=(rows, K)))
    bridge = session.device.bridge
    specs = [bridge.specs[p] for p in bridge._plans[replay.plan].bind_groups[::3]]
    return [(s.kernel.name, dict(s.constants)) for s in specs]


def test_the_fastest_way_is_taken_here_and_by_sessions_built_later():
    device, session, x, before, _, found = asyncio.run(tuned_session(Scripted(lanes_of_8), 1))
    (one,) = found
    assert one.case == f"linear {K}x{N} u4 f32 group 32, m = 1"
    assert "packed_gemv lanes=8" in one.way and one.ratio == 2.0
    assert plan_constants(session, 1)[0][1]["lanes"] == 8
    np.testing.assert_array_equal(asyncio.run(session.run(x=x))["y"], before["y"])
    assert device.choices.found == {one.case: one.way}
    later = asyncio.run(graph().build(device))
    assert plan_constants(later, 1)[0][1]["lanes"] == 8
    asyncio.run(later.autotune(x=(1, K)))
    assert device.choices.found == {one.case: one.way}, "what was taken is what others must beat"


def test_what_is_no_gain_changes_nothing():
    bridge = Scripted(lambda name, constants: 1.0 - 0.02 * (constants.get("lanes") == 8))
    device, session, _, _, _, found = asyncio.run(tuned_session(bridge, 1))
    assert bridge.repeated > 10 and device.choices.found == {}
    assert [t.ratio for t in found] == [1.0]
    assert plan_constants(session, 1)[0][1]["lanes"] != 8


@pytest.mark.parametrize("unsteady", ["noise", "rising clock", "falling clock"])
def test_what_only_looks_faster_is_not_taken(unsteady):
    rng = np.random.default_rng(4)
    factor = {
        "noise": lambda turn: 1.0 + 0.5 * rng.random(),
        "rising clock": lambda turn: max(0.2, 1.0 - 0.01 * turn),
        "falling clock": lambda turn: 1.0 + 0.05 * turn,
    }[unsteady]

    class Unsteady(Scripted):
        async def repeat(self, plan, count):
            return factor(self.repeated) * await super().repeat(plan, count)

    bridge = Unsteady(lambda name, constants: 1.0)
    device, _, _, _, _, found = asyncio.run(tuned_session(bridge, 1))
    assert bridge.repeated > 10 and device.choices.found == {}
    assert [t.ratio for t in found] == [1.0]


def test_plans_and_scratch_of_what_was_tried_are_freed():
    bridge = Scripted(splits_are_slow)
    _, session, x, before, held, (one,) = asyncio.run(tuned_session(bridge, 40))
    assert "packed_gemm blocks=1 splits=1" in one.way and one.ratio == 9.0
    assert session.memory()["activations"] <= held["activations"]
    plans = bridge.stats()["plans"]
    asyncio.run(session.autotune(x=(40, K)))
    assert bridge.stats()["plans"] == plans
    np.testing.assert_array_equal(asyncio.run(session.run(x=x))["y"], before["y"])
    session.close()
    assert bridge.stats()["buffers"] == bridge.stats()["plans"] == 0


def test_a_way_that_needs_more_memory_than_there_is_is_passed_over():
    async def run():
        bridge = Scripted(lanes_of_8)
        device = Device(bridge)
        session = await graph().build(device)
        x = distinct((64, K))
        before = await session.run(x=x)
        bridge.room = 0
        await session.autotune(x=(64, K))
        after = await session.run(x=x)
        np.testing.assert_array_equal(before["y"], after["y"])
        session.close()
        return bridge.stats()["buffers"]

    assert asyncio.run(run()) == 0


def test_numpy_has_no_kernels_to_try():
    async def run():
        session = await graph().build(Device(CpuBridge()))
        with pytest.raises(FeatureMissing, match="computes with NumPy"):
            await session.autotune(x=(1, K))

    asyncio.run(run())
