"""The self test's goldens hold on NumPy; a device that errs is refused with what differed, or goes
on without its subgroup matrices."""

import asyncio

import numpy as np
import pytest

from webgpu_py.backends.cpu import CpuBridge
from webgpu_py.device import Device
from webgpu_py.errors import WrongNumbers
from webgpu_py.graph.limits import Limits
from webgpu_py.ops.packed_route import MATRIX_FEATURES, MATRIX_THREADS
from webgpu_py.self_test import MATRIX_COLUMNS, ROWS, K, check_numbers, matrix_test, self_test


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


@pytest.mark.parametrize(
    ("when", "at", "by", "text"),
    [
        (0, 0, 0.0, None),
        (1, 5, 1e-30, r"product, run 1 of 3: 1 of 262144 .* the first at \[0, 5\] is"),
        (2, 127 * MATRIX_COLUMNS, 1e29, r"product, run 2 of 3"),
        (3, 64 * MATRIX_COLUMNS, 1e-4, "product, run 3 against run 1"),
    ],
)
def test_matrices_are_tested_row_by_row(when, at, by, text):
    bridge = Erring(when, at, by)
    if text is None:
        asyncio.run(matrix_test(Device(bridge)))
    else:
        with pytest.raises(WrongNumbers, match=text):
            asyncio.run(matrix_test(Device(bridge)))
    assert bridge.stats()["buffers"] == 0


async def nothing(*given):
    """What a browser keeps of an adapter."""


@pytest.mark.parametrize(("when", "kept"), [(0, True), (4, False)])
def test_a_device_goes_on_without_matrices_that_are_wrong(monkeypatch, when, kept):
    monkeypatch.setattr("webgpu_py.self_test.recall", nothing)
    monkeypatch.setattr("webgpu_py.self_test.keep", nothing)
    monkeypatch.setattr("webgpu_py.self_test._passed", set())
    bridge = Erring(when, 0, 1.0)
    bridge.features = MATRIX_FEATURES
    bridge.limits = Limits(
        max_compute_workgroup_storage_size=32768,
        max_compute_invocations_per_workgroup=MATRIX_THREADS,
        max_compute_workgroup_size_x=MATRIX_THREADS,
    )
    device = Device(bridge)
    asyncio.run(check_numbers(device))
    assert bridge.runs == (6 if kept else 4)
    assert (device.features == MATRIX_FEATURES) is kept
