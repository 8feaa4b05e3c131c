"""Every call to a device fails once, at every place where loading and generating make one."""

import asyncio
from collections import Counter

import numpy as np
import pytest

from faults import OWN, FaultyBridge
from tiny_model import tiny_gguf
from webgpu_py.backends.cpu import CpuBridge
from webgpu_py.device import Device
from webgpu_py.errors import DeviceLost, WebGPUPyError
from webgpu_py.graph.builder import Graph
from webgpu_py.llm import LLM

PROMPT = "Hi"
DEADLINE_S = 10
ZEROS = np.zeros(4, np.float32)


async def answer(llm):
    stream = llm.generate(PROMPT, max_tokens=3)
    await stream.text()
    return stream.tokens


async def once(data, at, loss, expected):
    """Fail call `at`; the name of the call and the code of the error, or None past the last."""

    async def reopen():
        return CpuBridge()

    bridge = FaultyBridge(at, loss)
    device = Device(bridge, reopen)
    llm = code = None
    try:
        llm = await LLM.load(data, device=device)
        assert await answer(llm) == expected
    except WebGPUPyError as error:
        code = error.code
    assert (code is not None) == (len(bridge.names) >= at)
    failed = None if code is None else (bridge.names[at - 1], code)
    if failed is not None:
        assert code == ("DeviceLost" if loss else OWN[failed[0]].code)
    bridge.at = 0
    if llm is None:
        # What failed half-way holds nothing, on a lost device either.
        assert bridge.stats() | {"pipelines": 0} == dict.fromkeys(bridge.stats(), 0)
        await device.restart()
        llm = await LLM.load(data, device=device)
    else:
        await llm.restart()
    assert (device.bridge is bridge) == (code != "DeviceLost")
    assert await answer(llm) == expected
    llm.close()
    for each in (bridge, device.bridge):
        assert each.stats() | {"pipelines": 0} == dict.fromkeys(each.stats(), 0)
    return failed


@pytest.mark.parametrize("loss", [False, True], ids=["own error", "device lost"])
def test_every_call_of_a_load_and_an_answer_fails_once(loss):
    data = tiny_gguf()

    async def sweep():
        llm = await LLM.load(data, device=Device(CpuBridge()))
        expected = await answer(llm)
        found = Counter()
        for at in range(1, 1000):
            done = await asyncio.wait_for(once(data, at, loss, expected), DEADLINE_S)
            if done is None:
                return found
            found[done] += 1

    found = asyncio.run(sweep())
    print(sum(found.values()), "faults:", dict(found))
    assert {name for name, _ in found} == set(OWN)
    assert sum(found.values()) > 50


def test_a_failed_answer_leaves_no_trace_in_the_next():
    """The rows that a failed step may or may not have written are written again."""
    data = tiny_gguf()

    async def body():
        bridge = FaultyBridge()
        llm = await LLM.load(data, device=Device(bridge))
        expected = await answer(llm)
        for steps in range(1, 4):
            bridge.at = len(bridge.names) + steps
            with pytest.raises(WebGPUPyError, match="run failed on purpose"):
                await answer(llm)
            assert await answer(llm) == expected

    asyncio.run(body())


def test_sessions_on_a_lost_device_end_and_free_nothing_of_its_successor():
    async def body():
        bridge = FaultyBridge()

        async def reopen():
            return CpuBridge()

        device = Device(bridge, reopen)
        g = Graph()
        g.output("y", g.add(g.input("x", (4,)), g.constant(np.arange(1, 5, dtype=np.float32))))
        old = await g.build(device)
        bridge.lost = True
        await asyncio.gather(device.restart(), device.restart())
        assert device.bridge is not bridge
        new = await g.build(device)
        with pytest.raises(DeviceLost):
            await old.run(x=ZEROS)
        old.close()
        assert list((await new.run(x=ZEROS))["y"]) == [1, 2, 3, 4]
        assert device.bridge.stats()["plans"] == 1

    asyncio.run(body())


def test_a_device_of_the_apps_own_is_not_replaced_behind_its_back():
    bridge = FaultyBridge()
    bridge.lost = True
    with pytest.raises(DeviceLost, match="app's own"):
        asyncio.run(Device(bridge).restart())
