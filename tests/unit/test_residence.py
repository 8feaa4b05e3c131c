"""Kernels are compiled while constants are on their way; what fails leaves nothing behind."""

import asyncio
import gc

import numpy as np
import pytest

import webgpu_py as wg
from webgpu_py.backends.cpu import CpuBridge
from webgpu_py.device import Device
from webgpu_py.errors import DeviceLost, NetworkError, OutOfMemory
from webgpu_py.graph.kernel import load_kernel
from webgpu_py.graph.plan import PipelineSpec
from webgpu_py.graph.session import Session
from webgpu_py.graph.values import Constant, TensorSpec
from webgpu_py.sources import BytesSource

LAYERS = 4


class Gated(CpuBridge):
    """Compiles only once `gate` is open; says when an upload has begun."""

    def __init__(self):
        super().__init__()
        self.gate, self.begun = asyncio.Event(), asyncio.Event()
        self.uploads = self.asked = self.compiled = 0
        self.compile_error = self.upload_error = None

    async def create_pipelines(self, specs):
        self.asked += 1
        await self.gate.wait()
        if self.compile_error:
            raise self.compile_error
        self.compiled += 1
        return await super().create_pipelines(specs)

    async def upload(self, *given):
        self.uploads += 1
        self.begun.set()
        if self.upload_error:
            raise self.upload_error
        await super().upload(*given)
        await asyncio.sleep(0.001)

    @property
    def left(self):
        return len(self._buffers), len(self._plans)


def weights(i):
    return np.arange(64, dtype=np.float32) * 0.5 + 1000 * i


def layers():
    g = wg.Graph()
    y = g.input("x", (wg.dim("n", max=16), 64))
    for i in range(LAYERS):
        source = BytesSource(weights(i).tobytes(), f"layer {i}")
        spec = TensorSpec("float32", (64,))
        y = g.add(y, g.constant(Constant(spec, source=source, nbytes=256)))
    g.output("y", y)
    return g.ir


def build(bridge, **options):
    return Session.build(Device(bridge), layers(), **options)


async def meanwhile(bridge, **options):
    """A build of which the first upload has begun."""
    building = asyncio.ensure_future(build(bridge, **options))
    await asyncio.wait_for(bridge.begun.wait(), 30)
    return building


def test_weights_do_not_wait_for_kernels_and_prepared_dims_are_there():
    async def body():
        bridge = Gated()
        building = await meanwhile(bridge, prepare=[{"x": (n, 64)} for n in (1, 4)])
        async with asyncio.timeout(30):
            while bridge.asked < 2 or bridge.uploads < LAYERS:
                await asyncio.sleep(0.001)
        # 1 and 4 rows share a kernel, the most have another: both are being compiled.
        assert (bridge.asked, bridge.compiled) == (2, 0)
        bridge.gate.set()
        session = await building
        plans, compiled = len(bridge._plans), bridge.compiled
        x = np.arange(256, dtype=np.float32).reshape(4, 64)
        y = (await session.run(x=x))["y"]
        np.testing.assert_array_equal(y, x + sum(map(weights, range(LAYERS))))
        await session.replay(x=(1, 64))
        assert (plans, len(bridge._plans), bridge.compiled) == (3, 3, compiled)
        session.close()
        assert bridge.left == (0, 0)

    asyncio.run(body())


def test_a_kernel_that_two_ask_for_is_compiled_once_and_again_after_a_failure():
    async def body():
        bridge = Gated()
        device = Device(bridge)
        spec = PipelineSpec(load_kernel("fill"), (("wg_size", 64),))
        specs = {spec.key: spec}
        bridge.compile_error = OutOfMemory("no room for a kernel")
        both = [asyncio.ensure_future(device.pipelines(specs)) for _ in range(2)]
        await asyncio.sleep(0)
        bridge.gate.set()
        failed = await asyncio.gather(*both, return_exceptions=True)
        assert [type(error) for error in failed] == 2 * [OutOfMemory]
        bridge.compile_error, bridge.asked = None, 0
        one, other = await asyncio.gather(device.pipelines(specs), device.pipelines(specs))
        assert one == other == await device.pipelines(specs)
        assert one.keys() == specs.keys() and (bridge.asked, bridge.compiled) == (1, 1)

    asyncio.run(body())


def fills(*widths):
    made = [PipelineSpec(load_kernel("fill"), (("wg_size", width),)) for width in widths]
    return {spec.key: spec for spec in made}


def test_a_failure_is_only_the_callers_whose_kernels_failed():
    """Also where the other shares some, or has been cancelled; none is told as never retrieved."""

    class Refusing(Gated):
        async def create_pipelines(self, specs):
            made = await super().create_pipelines(specs)
            if any(s.key in fills(8, 128) for s in specs):
                raise OutOfMemory("no room for such a width")
            return made

    async def body():
        told = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
        bridge = Refusing()
        device = Device(bridge)
        asked = [fills(8, 16), fills(16, 32), fills(8, 64)]
        calls = [asyncio.ensure_future(device.pipelines(specs)) for specs in asked]
        gone = asyncio.ensure_future(device.pipelines(fills(128)))
        await asyncio.sleep(0)
        gone.cancel()
        bridge.gate.set()
        found = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(one) for one in found] == [OutOfMemory, dict, OutOfMemory]
        assert found[1].keys() == asked[1].keys()
        del calls, gone, found
        gc.collect()
        assert told == [] and device._compiling == {}

    asyncio.run(body())


def test_a_restart_while_kernels_compile_is_a_lost_device():
    async def body():
        async def reopen():
            return CpuBridge()

        bridge = Gated()
        device = Device(bridge, reopen)
        compiling = asyncio.ensure_future(device.pipelines(fills(16)))
        await asyncio.sleep(0)
        bridge.lost = True
        await device.restart()
        bridge.gate.set()
        with pytest.raises(DeviceLost, match="build the session again"):
            await compiling
        assert (await device.pipelines(fills(16))).keys() == fills(16).keys()

    asyncio.run(body())


def test_kernels_that_fail_end_the_load_before_the_rest_of_the_weights():
    async def body():
        bridge = Gated()
        bridge.compile_error = OutOfMemory("no room for a kernel")
        building = await meanwhile(bridge)
        bridge.gate.set()
        with pytest.raises(OutOfMemory, match="no room for a kernel"):
            await building
        assert bridge.uploads < LAYERS and bridge.left == (0, 0)

    asyncio.run(body())


@pytest.mark.parametrize("end", [NetworkError, asyncio.CancelledError])
def test_what_is_being_compiled_is_waited_for_and_freed(end):
    async def body():
        bridge = Gated()
        if end is NetworkError:
            bridge.upload_error = NetworkError("the network is gone")
        building = await meanwhile(bridge, prepare=[{"x": (1, 64)}])
        if end is asyncio.CancelledError:
            building.cancel()
        await asyncio.sleep(0.01)
        assert not building.done()
        bridge.gate.set()
        with pytest.raises(end):
            await building
        assert bridge.compiled == bridge.asked >= 1 and bridge.left == (0, 0)

    asyncio.run(body())
