"""What a fuzzer is: a strategy, an attempt, and bounds that every attempt keeps.

A few dozen examples in every run; `pytest tests/hostile --fuzz-seconds 60` goes on for that long.
"""

import asyncio
import itertools
import signal
import struct
import time
import tracemalloc
from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from webgpu_py.backends.cpu import CpuBridge
from webgpu_py.errors import WebGPUPyError
from webgpu_py.graph.limits import Limits

SECONDS, NBYTES = 5, 64 << 20
EXAMPLES, ROUND = 40, 100
HOSTILE = [0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1]
HOSTILE += [2**63, 2**64 - 1]


class Small(CpuBridge):
    """A device with little memory."""

    def __init__(self):
        super().__init__()
        most = 1 << 20
        self.limits = Limits(max_buffer_size=most, max_storage_buffer_binding_size=most)


@pytest.fixture
def fuzz(request, counts):
    """`fuzz(strategy, attempt)`: nothing but success or an error of the family, in bounds."""
    budget = request.config.getoption("--fuzz-seconds")

    def run(strategy, attempt):
        outcomes, worst = Counter(), [0.0, 0]

        def one(value):
            name, seconds, peak = bounded(attempt, value)
            outcomes[name] += 1
            worst[:] = max(worst[0], seconds), max(worst[1], peak)

        ends, first = time.monotonic() + (budget or 0), time.time_ns()
        for turn in itertools.count(first):
            trial = given(strategy)(one)
            quick = settings(
                max_examples=ROUND if budget else EXAMPLES,
                deadline=None,
                database=None,
                phases=[Phase.generate, Phase.shrink],
                suppress_health_check=list(HealthCheck),
            )
            seed(turn)(quick(trial))() if budget else quick(trial)()
            if time.monotonic() >= ends:
                break
        total = ", ".join(f"{n} {name}" for name, n in outcomes.most_common())
        counts.append(
            f"{request.node.name}: {sum(outcomes.values())} inputs: {total}; at most "
            f"{worst[0]:.2f} s and {worst[1] / 2**20:.1f} MiB"
        )

    return run


def bounded(attempt, value):
    """The outcome's name, seconds of processor time, and the most memory that was taken."""

    def late(_signal, _frame):
        raise TimeoutError(f"still busy after {SECONDS} s")

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    tracemalloc.start()
    started = time.process_time()
    try:
        found = attempt(value)
        if asyncio.iscoroutine(found):
            asyncio.run(found)
        outcome = "taken"
    except WebGPUPyError as error:
        outcome = type(error).__name__
        assert len(str(error)) > 10
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        seconds = time.process_time() - started
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        signal.signal(signal.SIGPROF, before)
    assert peak < NBYTES, f"{peak >> 20} MiB"
    return outcome, seconds, peak


@st.composite
def damaged(draw, *files):
    """One of some files with bytes changed, numbers put in, and parts cut, doubled or moved."""
    raw = bytearray(draw(st.sampled_from(files)))
    # Few changes, most of them in place: a file that is all wrong is refused at its first byte.
    for _ in range(draw(st.sampled_from([1, 1, 1, 2, 5]))):
        # Headers come first and are what is looked at: most damage goes there.
        reach = draw(st.sampled_from([256, 2048, 16384, len(raw)]))
        at = draw(st.integers(0, min(reach, len(raw))))
        kinds = ["byte"] * 4 + ["number"] * 4 + ["cut", "drop", "double", "fresh"]
        kind = draw(st.sampled_from(kinds))
        if kind == "byte":
            raw[at : at + 1] = bytes([draw(st.integers(0, 255))])
        elif kind == "number":
            code = draw(st.sampled_from("BHIQ"))
            width = struct.calcsize(f"<{code}")
            value = draw(st.sampled_from(HOSTILE)) % 2 ** (8 * width)
            raw[at : at + width] = struct.pack(f"<{code}", value)
        elif kind == "cut":
            del raw[at:]
        elif kind == "drop":
            del raw[at : at + draw(st.integers(1, 16))]
        elif kind == "double":
            part = raw[at : at + draw(st.integers(1, 64))]
            raw[at:at] = part * draw(st.integers(1, 3))
        else:
            raw[at:at] = draw(st.binary(min_size=1, max_size=24))
    return bytes(raw)


junk = st.recursive(
    st.none()
    | st.booleans()
    | st.sampled_from([*HOSTILE, -1, 10**30])
    | st.integers(-300, 300)
    | st.floats()
    | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)
"""Values as JSON has them."""


def places(tree, path=()):
    """The path of everything in a tree of dicts and lists; of long ones the first few."""
    found = list(tree.items()) if isinstance(tree, dict) else list(enumerate(tree))
    for key, value in found[:40]:
        yield (*path, key)
        if isinstance(value, (dict, list)):
            yield from places(value, (*path, key))


@st.composite
def changed(draw, *trees):
    """One of some trees with values replaced, removed, doubled or put elsewhere."""
    tree = copied(draw(st.sampled_from(trees)))
    for _ in range(draw(st.integers(1, 4))):
        every = list(places(tree))
        if not every:
            break
        *way, last = draw(st.sampled_from(every))
        holder = at(tree, way)
        kind = draw(st.sampled_from(["junk", "junk", "remove", "elsewhere"]))
        if kind == "junk":
            holder[last] = draw(junk)
        elif kind == "remove":
            del holder[last]
        else:
            holder[last] = copied(at(tree, draw(st.sampled_from(every))))
    return tree


def at(tree, path):
    for key in path:
        tree = tree[key]
    return tree


def copied(tree):
    if isinstance(tree, dict):
        return {key: copied(value) for key, value in tree.items()}
    return [copied(value) for value in tree] if isinstance(tree, list) else tree
