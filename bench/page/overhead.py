"""What a run costs beside its arithmetic: a plan of many small dispatches, and new pipelines."""

import json
import time

import numpy as np
from kernels import Shared

import webgpu_py as wg

LENGTH = 300


class Overhead:
    """A chain of `LENGTH` additions of four numbers."""

    async def prepare(self):
        """Build the chain; JSON {device, plan, dispatches, build_ms}."""
        self.device = await Shared.open()
        g = wg.Graph()
        y = g.input("x", (4,))
        w = g.constant(np.arange(1, 5, dtype=np.float32))
        for _ in range(LENGTH):
            y = g.call("aten.add.Tensor", y, w)
        g.output("y", y)
        started = time.perf_counter()
        self.session = await g.build(self.device)
        build_ms = 1e3 * (time.perf_counter() - started)
        self.x = np.zeros(4, np.float32)
        await self.session.run(x=self.x)
        replay = await self.session.replay()
        return json.dumps(
            {
                "device": self.device.bridge._device,
                "plan": replay.plan,
                "dispatches": len(replay.nodes),
                "build_ms": build_ms,
            }
        )

    async def run(self, count):
        """Milliseconds of `count` runs, and crossings of all of them, as JSON."""
        times = []
        before = self.device.bridge.crossings
        for _ in range(count):
            started = time.perf_counter()
            await self.session.run(x=self.x)
            times.append(1e3 * (time.perf_counter() - started))
        return json.dumps({"ms": times, "crossings": self.device.bridge.crossings - before})
