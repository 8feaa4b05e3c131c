"""Kernels found fast by trying them: what `Session.autotune` does.

The rule that chooses kernels was measured on few GPUs. Here the session's own plan is timed, with
the real weights and everything else that runs beside them, one case changed at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from ..errors import FeatureMissing, LimitExceeded, OutOfMemory
from ..events import tell
from .bridge import Bridge
from .call import Env
from .choices import Asked, Choices
from .residence import Residence, Variant

MEASURE_MS = 20.0
"""Least time of a measurement: a browser's clock and its wait for the GPU are coarse."""

MOST_RUNS = 4096
FIRST_ROUNDS, MORE_ROUNDS = 3, 8
MOST_WARMING = 25

WORTH = 0.97
"""Share of the time before at which a way is taken: what is less of a gain may be noise."""


@dataclass(frozen=True, slots=True)
class Tuned:
    """A case, the way found fastest for it, and the plan's time over its time with the rule's."""

    case: str
    way: str
    ratio: float


async def tune(residence: Residence, env: Env) -> list[Tuned]:
    """Time every way of every case of the plan at `env`'s dims; the device keeps the fastest.

    The plan at these dims is replaced. FeatureMissing on a device without kernels.
    """
    device = residence.device
    if device.kind == "cpu":
        raise FeatureMissing("autotune measures a GPU's kernels; this device computes with NumPy")
    asked = Asked(device.choices.found)
    best = await residence.load(residence.lower(env, asked))
    tuned = []
    try:
        # Where there is one way only there is nothing to try.
        several = {case: ways for case, ways in asked.ways.items() if len(ways) > 1}
        for case, ways in several.items():
            way, ratio = ways[asked.pick(case, ways)], 1.0
            for other in [w for w in ways if w != way]:
                trial = Choices({**asked.found, case: other})
                variant = await _loaded(residence, env, trial)
                if variant is None:
                    continue
                try:
                    gain = await _gain(residence.bridge, variant, best)
                    if gain < WORTH:
                        best, variant = variant, best
                        way, ratio = other, ratio / gain
                        asked.found[case] = other
                finally:
                    residence.drop(variant)
            tuned.append(Tuned(case, way, ratio))
            tell("autotune.chose", {"case": case, "way": way, "ratio": round(ratio, 3)})
    finally:
        residence.replace(best)
    device.choices.found.update(asked.found)
    return tuned


async def _loaded(residence: Residence, env: Env, choices: Choices) -> Variant | None:
    """A plan; None for one that needs more memory than there is."""
    try:
        return await residence.load(residence.lower(env, choices))
    except (LimitExceeded, OutOfMemory):
        return None


async def _gain(bridge: Bridge, one: Variant, other: Variant) -> float:
    """Time of one plan over that of the other; 1 where not every round says that it is less.

    Many ways are tried, and by chance one of them looks faster in a few rounds: on an H200 three
    rounds found 18 % where there was nothing. What looks faster has more rounds to pass.
    """
    count = 1
    while count < MOST_RUNS and await bridge.repeat(other.handle, count) < MEASURE_MS:
        count *= 4
    await _warm(bridge, other, count)
    ratios: list[float] = []
    for rounds in (FIRST_ROUNDS, MORE_ROUNDS):
        for turn in range(rounds):
            # Whatever drifts is for one as often as for the other.
            pair = (one, other) if turn % 2 else (other, one)
            ms = {v.handle: await bridge.repeat(v.handle, count) for v in pair}
            ratios.append(ms[one.handle] / max(ms[other.handle], 1e-6))
        if max(ratios) >= 1.0 or median(ratios) >= WORTH:
            return 1.0
    return median(ratios)


async def _warm(bridge: Bridge, variant: Variant, count: int) -> None:
    """Run until it gets no faster: a GPU lowers its clock while kernels are compiled."""
    before = await bridge.repeat(variant.handle, count)
    for _ in range(MOST_WARMING):
        now = await bridge.repeat(variant.handle, count)
        if now > WORTH * before:
            return
        before = now
