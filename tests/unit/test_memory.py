"""Where weights lie: parts of a joined weight share its buffer, whatever else uses them."""

import asyncio

import numpy as np
import pytest

import webgpu_py as wg
from ops.opcase import Const, OpCase, check, distinct
from recording_bridge import RecordingBridge
from webgpu_py import DtypeError, ShapeError
from webgpu_py.device import Device
from webgpu_py.quant.ggml import BY_NAME
from webgpu_py.quant.repack import repack


def test_parts_of_a_joined_weight_are_still_their_own():
    blocks = [np.arange(n, dtype=np.uint8) for n in (64 * 2 * BY_NAME["Q8_0"].nbytes,) * 2]
    blocks[1] = blocks[1][::-1].copy()
    small = distinct((64,), 3)
    bridge = RecordingBridge()

    async def run():
        g = wg.Graph()
        made = [g.call("webgpu_py.repack", g.constant(b), "Q8_0", 64, 64) for b in blocks]
        codes = g.call("webgpu_py.join_rows", [m[0] for m in made])
        vectors = [g.constant(small), g.constant(2 * small)]
        g.output("codes", codes)
        g.output("first", made[0][0])
        g.output("bias", g.call("webgpu_py.join_rows", vectors))
        g.output("twice", g.call("aten.add.Tensor", vectors[1], vectors[1]))
        session = await g.build(Device(bridge))
        stored = await session.read(made[1][0].id)
        return await session.run(), stored, session.memory()

    found, stored, memory = asyncio.run(run())
    want = [repack("Q8_0", b, 64, 64).codes for b in blocks]
    np.testing.assert_array_equal(found["codes"], np.concatenate(want))
    np.testing.assert_array_equal(found["first"], want[0])
    np.testing.assert_array_equal(np.frombuffer(stored, np.uint32), want[1].reshape(-1))
    np.testing.assert_array_equal(found["bias"], np.concatenate([small, 2 * small]))
    np.testing.assert_array_equal(found["twice"], 4 * small)
    scales = 2 * 64 * 2 * 2
    assert memory["weights"] == 2 * 64 * 64 + scales + 2 * small.nbytes


def f32(*dims):
    return Const(np.zeros(dims, np.float32))


@pytest.mark.parametrize(
    ("parts", "kind", "text"),
    [
        ([f32(4, 64), Const(np.zeros((4, 64), np.int32))], DtypeError, "must be float32"),
        ([f32(4, 64), f32(4, 32)], ShapeError, "rows must be those"),
        ([f32(3, 20), f32(4, 20)], ShapeError, "240 bytes, must be a multiple of 256"),
    ],
)
def test_refused(parts, kind, text):
    with pytest.raises(kind, match=text):
        check(OpCase("webgpu_py.join_rows", [parts], []))


def test_a_part_is_joined_once():
    g = wg.Graph()
    a, b = (g.constant(np.zeros((4, 64), np.float32)) for _ in range(2))
    for name in ("x", "y"):
        g.output(name, g.call("webgpu_py.join_rows", [a, b]))
    with pytest.raises(ShapeError, match="joined twice"):
        asyncio.run(g.build(Device(RecordingBridge())))
