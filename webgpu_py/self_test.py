"""Does this GPU compute right, and the same every time? Asked once an adapter, browser and release.

Browsers run on drivers nobody has tested: some give wrong numbers, some other numbers now and
then. Such a GPU is refused by name before a model speaks nonsense on it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, cast

import numpy as np

from . import __version__
from .bridge import registered_half, settled
from .errors import WrongNumbers
from .events import since, tell
from .graph.builder import Graph, Var

if TYPE_CHECKING:
    from .device import Device

ROWS, N, K, GROUP = 3, 40, 96, 32
TOLERANCE = 1e-4
"""Of the largest value: a hundred times what float32 loses here."""

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
        codes = (self._codes[:, :, None] >> np.arange(0, 32, 4, dtype=np.uint32) & 15).reshape(N, K)
        scales = np.repeat(self._scales.astype(np.float64).reshape(N, -1), GROUP, axis=1)
        rows = ((codes.astype(np.float64) - 8) * scales)[ids]
        norm = rows / np.sqrt((rows * rows).mean(-1, keepdims=True) + 1e-6) * self._gain
        powers = np.exp(norm - norm.max(-1, keepdims=True))
        return {"rows": rows, "norm": norm, "softmax": powers / powers.sum(-1, keepdims=True)}


async def check_numbers(device: Device) -> None:
    """The self test, where this release has not passed it on this adapter and browser before."""
    half = await registered_half()
    info = [str(v) for v in device.info.values()]
    name = "|".join([__version__, *info, *sorted(device.features)])
    if name in _passed:
        return
    if not await settled(half.isChecked(name)):
        started = time.perf_counter()
        await self_test(device)
        tell("self_test.passed", {"ms": since(started)})
        await settled(half.noteChecked(name))
    _passed.add(name)


async def self_test(device: Device) -> None:
    """Run a few kernels three times on the same buffers. WrongNumbers names what differed."""
    golden = _Golden()
    first, other = np.array([[7, 0, N - 1], [20, 33, 5]], np.int32)
    session = await golden.graph().build(device)
    seen: dict[str, np.ndarray] = {}
    try:
        for run, ids in enumerate((first, other, first), 1):
            found, expected = await session.run(ids=ids), golden.expected(ids)
            for name, values in found.items():
                exact = expected[name]
                near = np.abs(values - exact) <= TOLERANCE * np.abs(exact).max()
                _check(device, name, f"run {run} of 3", values, exact, near)
                if run == 3:
                    same = values.view(np.uint32) == seen[name].view(np.uint32)
                    _check(device, name, "run 3 against run 1", values, seen[name], same)
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
