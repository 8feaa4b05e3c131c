"""The self test's goldens hold on NumPy, and a device that errs is refused with what differed."""

import asyncio

import numpy as np
import pytest

from webgpu_py.backends.cpu import CpuBridge
from webgpu_py.device import Device
from webgpu_py.errors import WrongNumbers
from webgpu_py.self_test import ROWS, K, self_test


class Erring(CpuBridge):
    """Adds `by` to float `at` of the outputs of run `when`."""

    def __init__(self, when=0, at=0, by=0.0):
        super().__init__()
        self.when, self.at, self.by, self.runs = when, at, by, 0

    async def run(self, plan, blob):
        result = bytearray(await super().run(plan, blob))
        self.runs += 1
        if self.runs == self.when:
            np.frombuffer(result, np.float32)[self.at] += np.float32(self.by)
        return bytes(result)


def test_right_numbers_pass_and_nothing_is_kept():
    bridge = Erring()
    asyncio.run(self_test(Device(bridge)))
    assert (bridge.runs, bridge.stats()["buffers"], bridge.stats()["plans"]) == (3, 0, 0)


@pytest.mark.parametrize(
    ("when", "at", "by", "text"),
    [
        (1, 5, 0.1, r"rows, run 1 of 3: 1 of 288 .* the first at \[0, 5\] is"),
        (2, 2 * ROWS * K - 1, 1.0, r"norm, run 2 of 3: 1 of 288 .* at \[2, 95\]"),
        (1, 2 * ROWS * K, 1e-3, r"softmax, run 1 of 3"),
        (3, ROWS * K, 3e-6, "norm, run 3 against run 1"),
        (2, 3, np.nan, "is nan instead of"),
    ],
)
def test_a_wrong_or_unstable_device_is_refused(when, at, by, text):
    bridge = Erring(when, at, by)
    with pytest.raises(WrongNumbers, match=text):
        asyncio.run(self_test(Device(bridge)))
    assert bridge.stats()["buffers"] == 0
