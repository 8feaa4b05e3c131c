"""Sessions on the real GPU: crossings, passes, profiling, sharing a device, protocol."""

import numpy as np
import pytest

from webgpu_py.bridge import PROTOCOL_VERSION
from webgpu_py.errors import LimitExceeded, VersionMismatch

W = np.arange(1, 5, dtype=np.float32)


async def run_chain(length, x, w, runs=1):
    import webgpu_py as wg

    device = await wg.request_device("browser")
    g = wg.Graph()
    y = g.input("x", (wg.dim("n", max=16), 4))
    p = g.call("et_vk.prepack.default", g.constant(w))
    for _ in range(length):
        y = g.add(y, p)
    g.output("y", y)
    session = await g.build(device)
    counts = []
    for _ in range(runs):
        before, stats = device.bridge.crossings, device.bridge.stats()
        out = await session.run(x=x)
        after = device.bridge.stats()
        counts.append((device.bridge.crossings - before, after["passes"] - stats["passes"]))
    micros = await session.profile(x=x)
    memory, held = session.memory()["total"], device.bridge.stats()["buffer_nbytes"]
    session.close()
    left = device.bridge.stats()
    await device.close()
    return {
        "y": out["y"],
        "counts": counts,
        "dispatches": session.dispatches,
        "profile": micros,
        "memory": (memory, held),
        "left": (left["buffers"], left["buffer_nbytes"], left["plans"]),
    }


def test_300_dispatches_one_crossing_one_pass(gpu):
    x = np.arange(64, dtype=np.float32).reshape(16, 4)
    done = gpu.call(run_chain, length=300, x=x, w=W, runs=3)
    np.testing.assert_array_equal(done["y"], x + 300 * W)
    assert done["dispatches"] == 300
    # The first run of a shape has its plan from the build; later ones only replay.
    assert done["counts"] == [(1, 1)] * 3
    assert len(done["profile"]) == 300
    assert all(label == "aten.add.Tensor binary" for label, _ in done["profile"])
    assert done["memory"][0] == done["memory"][1]
    assert done["left"] == (0, 0, 0)


async def interleaved(w):
    import numpy as np

    import webgpu_py as wg

    device = await wg.request_device("browser")
    sessions = []
    for k in range(1, 5):
        g = wg.Graph()
        c = g.call("et_vk.prepack.default", g.constant(k * w))
        g.output("y", g.add(g.input("x", (4,)), c))
        sessions.append(await g.build(device))
    found = []
    for _ in range(3):
        found.append([(await s.run(x=np.zeros(4, np.float32)))["y"] for s in sessions])
    sessions[0].close()
    found.append([(await s.run(x=np.zeros(4, np.float32)))["y"] for s in sessions[1:]])
    for s in sessions:
        s.close()
    left = device.bridge.stats()
    await device.close()
    return found, left["buffer_nbytes"]


def test_sessions_share_a_device_and_one_may_close(gpu):
    found, left = gpu.call(interleaved, w=W)
    for row in found[:3]:
        for k, y in enumerate(row, 1):
            np.testing.assert_array_equal(y, k * W)
    for k, y in enumerate(found[3], 2):
        np.testing.assert_array_equal(y, k * W)
    assert left == 0


async def other_protocol():
    from webgpu_py.bridge import BrowserBridge

    class Half:
        PROTOCOL_VERSION = 99

    await BrowserBridge.open(Half())


def test_a_half_of_another_protocol_is_refused_with_both_versions(gpu):
    with pytest.raises(VersionMismatch, match=f"protocol 99, the Python half {PROTOCOL_VERSION}"):
        gpu.call(other_protocol)


async def round_trips(sizes):
    import numpy as np

    import webgpu_py as wg

    device = await wg.request_device("browser")
    bridge = device.bridge
    found = []
    for n in sizes:
        (buffer,) = await bridge.create_buffers([64], ["round trip"])
        bridge.write(buffer, 0, np.arange(1, n + 1, dtype=np.uint8))
        found.append(await bridge.read(buffer, 0, 64))
        found.append(await bridge.read(buffer, 2, 5))
        bridge.destroy_buffers([buffer])
    try:
        bridge.write(0, 0, np.arange(32, dtype=np.uint8)[::2])
    except wg.LimitExceeded as error:
        found.append(str(error))
    await device.close()
    return found


def test_odd_lengths_offsets_and_strides(gpu):
    found = gpu.call(round_trips, sizes=[1, 3, 5, 7, 64])
    for n, whole, part in zip([1, 3, 5, 7, 64], found[::2], found[1::2], strict=False):
        expected = bytes(range(1, n + 1)) + bytes(64 - n)
        assert whole == expected
        assert part == expected[2:7]
    assert "contiguous" in found[-1]


async def too_large():
    import webgpu_py as wg

    device = await wg.request_device("browser")
    g = wg.Graph()
    x = g.input("x", (device.limits.max_buffer_size // 4 + 4,))
    g.output("y", g.add(x, x))
    try:
        await g.build(device)
    finally:
        assert device.bridge.stats()["buffers"] == 0
        await device.close()


def test_a_tensor_past_the_device_is_refused_before_allocation(gpu):
    with pytest.raises(LimitExceeded, match="this device allows"):
        gpu.call(too_large)


async def lost():
    import numpy as np

    import webgpu_py as wg

    device = await wg.request_device("browser")
    g = wg.Graph()
    g.output("y", g.add(g.input("x", (4,)), g.constant(np.ones(4))))
    session = await g.build(device)
    device.bridge._half.lose(device.bridge._device)
    await session.run(x=np.ones(4, np.float32))


def test_a_lost_device_rejects_with_its_own_error(gpu):
    from webgpu_py.errors import DeviceLost

    with pytest.raises(DeviceLost, match="was lost"):
        gpu.call(lost)
