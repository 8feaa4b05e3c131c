"""Does this GPU compute right, and the same every time? Asked once an adapter, browser and release.

Browsers run on drivers nobody has tested: some give wrong numbers, some other numbers now and
then. Such a GPU is refused by name before a model speaks nonsense on it. What few programs use is
tested by itself: subgroup matrices, an experiment of browsers, and integer dot products. Where they
fail the device goes on without them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np

from .errors import DeviceLost, WebGPUPyError, WrongNumbers
from .events import since, tell
from .graph.builder import Graph, Var
from .ops.packed_kernels import (
    DOT_FEATURES,
    INT8_FEATURES,
    INTEGER_DOT,
    MATRICES,
)
from .remembered import adapter_name, keep, recall

if TYPE_CHECKING:
    from .device import Device

ROWS, N, K, GROUP = 3, 40, 96, 32
DIFFERENT = 520
TOLERANCE = 1e-4
"""Of the largest value: a hundred times what float32 loses here."""


@dataclass(frozen=True)
class Trial:
    """Linear layers of m rows, n columns and k that kernels compute which need a feature."""

    what: str
    feature: str
    needs: frozenset[str]
    shapes: tuple[tuple[int, int, int], ...]
    tolerance: float


TRIALS = (
    # Tiles of every height but one, and the widest workgroups. Tolerances are of a row's largest
    # value: float16 factors lose 3e-4.
    Trial(
        "matrices",
        MATRICES,
        INT8_FEATURES,
        ((16, 8192, 512), (33, 8192, 512), (65, 4096, 1024)),
        2e-3,
    ),
    # Sets of two columns and of four, a short row by many lanes and by four, and a long one.
    Trial(
        "integer_dots",
        INTEGER_DOT,
        DOT_FEATURES,
        ((3, 520, 512), (1, 64, 8192), (1, 16384, 512), (1, 16384, 1024)),
        TOLERANCE,
    ),
)

_passed: set[str] = set()


class _Golden:
    """Packed rows, a norm and a softmax: 4-bit codes, half scales, barriers, exp.

    Kernels that a software adapter compiles soon; a matrix product would take it a second.
    """

    def __init__(self) -> None:
        rng = np.random.default_rng(1)
        self._gain = rng.uniform(0.5, 1.5, K).astype(np.float32)
        self._codes = rng.integers(0, 1 << 32, (N, K // 8), np.uint32)
        self._scales = rng.uniform(0.02, 0.2, N * K // GROUP).astype(np.float16)

    def graph(self) -> Graph:
        """The three steps on the device; each is an output."""
        g = Graph()
        ids = g.input("ids", (ROWS,), "int32")
        weight = g.constant(self._codes), g.constant(self._scales.view(np.uint32))
        rows = cast(Var, g.call("webgpu_py.embedding_q4", *weight, "f16", GROUP, K, ids))
        norm = cast(Var, g.call("et_vk.rms_norm.default", rows, g.constant(self._gain), 1e-6))
        g.output("rows", rows)
        g.output("norm", norm)
        g.output("softmax", cast(Var, g.call("aten._softmax.default", norm, -1)))
        return g

    def expected(self, ids: np.ndarray) -> dict[str, np.ndarray]:
        """The same in float64."""
        rows = _values(self._codes, self._scales)[ids]
        norm = rows / np.sqrt((rows * rows).mean(-1, keepdims=True) + 1e-6) * self._gain
        powers = np.exp(norm - norm.max(-1, keepdims=True))
        return {"rows": rows, "norm": norm, "softmax": powers / powers.sum(-1, keepdims=True)}


class _ProductGolden:
    """A product of packed weights, of rows from 2^-100 to 2^100 in size."""

    def __init__(self, m: int, n: int, k: int) -> None:
        rng = np.random.default_rng(2)
        self._shape, self._n = (m, k), n
        # Of many columns so many differ, and no power of two of them lie between equal ones.
        differ = min(n, DIFFERENT)
        self._codes = rng.integers(0, 1 << 32, (differ, k // 8), np.uint32)
        self._scales = rng.uniform(0.02, 0.2, (differ, k // GROUP)).astype(np.float16)
        powers = 2.0 ** np.linspace(-100, 100, m).round()
        self.inputs = (rng.uniform(-1, 1, (2, m, k)) * powers[:, None]).astype(np.float32)

    def graph(self) -> Graph:
        """x . w^T on the device."""
        g = Graph()
        x = g.input("x", self._shape, "float32")
        codes = np.resize(self._codes, (self._n, self._codes.shape[1]))
        scales = np.resize(self._scales, (self._n, self._scales.shape[1])).reshape(-1)
        weight = g.constant(codes), g.constant(scales.view(np.uint32))
        product = g.call("webgpu_py.linear_q4", x, *weight, "f16", GROUP, None)
        g.output("product", cast(Var, product))
        return g

    def expected(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """The same in float64."""
        product = x.astype(np.float64) @ _values(self._codes, self._scales).T
        return {"product": np.take(product, np.arange(self._n) % len(self._codes), axis=1)}


def _values(codes: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Rows of 4-bit codes [n, k/8] with a scale every GROUP, in float64."""
    low_first = codes[:, :, None] >> np.arange(0, 32, 4, dtype=np.uint32) & 15
    rows = low_first.reshape(len(codes), -1).astype(np.float64) - 8
    return rows * np.repeat(scales.astype(np.float64).reshape(len(codes), -1), GROUP, axis=1)


async def check_numbers(device: Device) -> None:
    """The self test, where this release has not passed it on this adapter and browser before."""
    await _once(device, "kernels", self_test)
    if device.info.get("software"):
        return
    for trial in TRIALS:
        if not device.features >= trial.needs:
            continue
        try:
            await _once(device, trial.what, partial(feature_test, trial=trial))
        except DeviceLost:
            raise
        except WebGPUPyError as error:
            device.bridge.features -= {trial.feature}
            facts = {"message": str(error)}
            if trial.feature == MATRICES:
                tell("self_test.without_matrices", facts, logging.WARNING)
            else:
                tell("self_test.without_integer_dots", facts, logging.WARNING)


async def _once(device: Device, what: str, test: Callable[[Device], Awaitable[None]]) -> None:
    name = f"{what}|{adapter_name(device)}"
    if name in _passed:
        return
    if await recall(device, what) is None:
        started = time.perf_counter()
        await test(device)
        tell("self_test.passed", {"what": what, "ms": since(started)})
        await keep(device, what, "passed")
    _passed.add(name)


async def self_test(device: Device) -> None:
    """Run a few kernels three times on the same buffers. WrongNumbers names what differed."""
    golden = _Golden()
    first, other = np.array([[7, 0, N - 1], [20, 33, 5]], np.int32)
    runs = [{"ids": ids} for ids in (first, other, first)]
    await _run(device, golden.graph(), runs, [golden.expected(**r) for r in runs], TOLERANCE, None)


async def feature_test(device: Device, trial: Trial) -> None:
    """The same of the kernels that a trial is for."""
    for shape in trial.shapes:
        golden = _ProductGolden(*shape)
        first, other = golden.inputs
        runs = [{"x": x} for x in (first, other, first)]
        once, twice = golden.expected(first), golden.expected(other)
        await _run(device, golden.graph(), runs, (once, twice, once), trial.tolerance, -1)


async def _run(
    device: Device,
    graph: Graph,
    runs: Sequence[dict[str, np.ndarray]],
    expected: Sequence[dict[str, np.ndarray]],
    tolerance: float,
    axis: int | None,
) -> None:
    """Near `expected`, of the largest value over `axis`; the last run's bits are the first's."""
    session = await graph.build(device)
    seen: dict[str, np.ndarray] = {}
    try:
        for run, (inputs, wanted) in enumerate(zip(runs, expected, strict=True), 1):
            found = await session.run(**inputs)
            for name, values in found.items():
                exact = wanted[name]
                largest = np.abs(exact).max(axis, keepdims=True)
                near = np.abs(values - exact) <= tolerance * largest
                _check(device, name, f"run {run} of {len(runs)}", values, exact, near)
                if run == len(runs):
                    same = values.view(np.uint32) == seen[name].view(np.uint32)
                    _check(device, name, f"run {run} against run 1", values, seen[name], same)
            seen = seen or found
    finally:
        session.close()


def _check(
    device: Device,
    name: str,
    which: str,
    found: np.ndarray,
    wanted: np.ndarray,
    right: np.ndarray,
) -> None:
    if right.all():
        return
    at = tuple(int(i) for i in np.argwhere(~right)[0])
    info = device.info
    adapter = info.get("description") or f"{info.get('vendor')} {info.get('architecture')}"
    raise WrongNumbers(
        f"self test, {name}, {which}: {int((~right).sum())} of {right.size} values are wrong on "
        f"{adapter}, the first at {list(at)} is {found[at]:.7g} instead of {wanted[at]:.7g} — "
        "update the GPU driver or the browser, or compute without this GPU: device='cpu'"
    )
