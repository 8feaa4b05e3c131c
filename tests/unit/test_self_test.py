"""The self test's goldens hold on NumPy; a device that errs is refused with what differed, or goes
on without a feature."""

import asyncio
from dataclasses import replace

import numpy as np
import pytest

from ops.test_packed_route import LARGE, matrix
from webgpu_py.backends.cpu import CpuBridge
from webgpu_py.device import Device
from webgpu_py.errors import WrongNumbers
from webgpu_py.ops.packed_kernels import (
    DOT_FEATURES,
    INTEGER_DOT,
    MATRICES,
    MATRIX_FEATURES,
)
from webgpu_py.ops.packed_route import choose
from webgpu_py.self_test import ROWS, TRIALS, K, check_numbers, feature_test, self_test


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


SMALL = replace(TRIALS[0], shapes=((128, 96, 64),))


@pytest.mark.parametrize(
    ("when", "at", "by", "text"),
    [
        (0, 0, 0.0, None),
        (1, 5, 1e-30, r"product, run 1 of 3: 1 of 12288 .* the first at \[0, 5\] is"),
        (2, 127 * 96, 1e29, r"product, run 2 of 3"),
        (3, 64 * 96, 1e-4, "product, run 3 against run 1"),
    ],
)
def test_products_are_tested_row_by_row(when, at, by, text):
    bridge = Erring(when, at, by)
    if text is None:
        asyncio.run(feature_test(Device(bridge), SMALL))
    else:
        with pytest.raises(WrongNumbers, match=text):
            asyncio.run(feature_test(Device(bridge), SMALL))
    assert bridge.stats()["buffers"] == 0


@pytest.mark.parametrize("trial", TRIALS, ids=lambda t: t.what)
def test_what_is_tried_is_what_the_rule_takes(trial):
    expected = {
        "matrices": [("packed_gemm_int8", rows) for rows in (16, 64, 128)],
        "integer_dots": [
            ("packed_gemv_dot", lanes, columns)
            for lanes, columns in ((16, 2), (256, 2), (4, 2), (16, 4))
        ],
    }
    told = {"matrices": ("rows",), "integer_dots": ("lanes", "columns")}[trial.what]
    routes = [choose(matrix(k, n), m, LARGE, False, trial.needs) for m, n, k in trial.shapes]
    found = [(r.kernel, *(r.constants.get(k, r.rows) for k in told)) for r in routes]
    assert found == expected[trial.what]
    halves = [
        choose(matrix(k, n), m, LARGE, False, trial.needs | {"shader-f16"}).kernel
        for m, n, k in trial.shapes
    ]
    if trial.what == "matrices":
        assert halves == ["packed_gemm_int8", "packed_gemm_matrix", "packed_gemm_matrix"]


async def nothing(*given):
    """What a browser keeps of an adapter."""


ALL = DOT_FEATURES | MATRIX_FEATURES


@pytest.mark.parametrize(
    ("when", "lost", "runs"), [(0, None, 18), (4, MATRICES, 16), (7, INTEGER_DOT, 7)]
)
def test_a_device_goes_on_without_what_is_wrong(monkeypatch, when, lost, runs):
    monkeypatch.setattr("webgpu_py.self_test.recall", nothing)
    monkeypatch.setattr("webgpu_py.self_test.keep", nothing)
    monkeypatch.setattr("webgpu_py.self_test._passed", set())
    monkeypatch.setattr("webgpu_py.self_test.TRIALS", (SMALL, TRIALS[1]))
    bridge = Erring(when, 0, 1.0)
    bridge.features, bridge.info = ALL, bridge.info | {"software": False}
    device = Device(bridge)
    asyncio.run(check_numbers(device))
    assert bridge.runs == runs
    assert device.features == ALL - {lost}


@pytest.mark.parametrize(("software", "features"), [(True, ALL), (False, frozenset())])
def test_nothing_is_tried_that_is_not_used(monkeypatch, software, features):
    monkeypatch.setattr("webgpu_py.self_test.recall", nothing)
    monkeypatch.setattr("webgpu_py.self_test.keep", nothing)
    monkeypatch.setattr("webgpu_py.self_test._passed", set())
    bridge = Erring()
    bridge.features, bridge.info = features, bridge.info | {"software": software}
    asyncio.run(check_numbers(Device(bridge)))
    assert bridge.runs == 3
