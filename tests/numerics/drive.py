"""Samples drawn, computed in batches, and compared with the float64 references."""

from collections import Counter
from dataclasses import dataclass, replace
from zlib import crc32

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from numerics.values import NORMAL, FloatWords
from ops.opcase import Const, In, OpCase, inputs_of, run_all


def draw(row, op, count, salt=0):
    """`count` samples of an operator as (op, row, sample), the same ones each time."""
    found = []

    @seed(crc32(f"{op} {salt}".encode()))
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def collect(data):
        found.append((op, row, row.sample(data.draw, op)))

    collect()
    return found


def case_of(op, sample):
    """The graph of a sample, to be run once."""
    return OpCase(
        op, sample.args, [], outputs=sample.outputs, mutated=sample.mutated, then=sample.then
    )


def three_runs(case):
    """A case run on its inputs, on the same backwards, and from the start on its inputs again."""
    backwards = {
        name: value.reshape(-1)[::-1].reshape(value.shape).copy()
        for name, value in inputs_of(case.args).items()
        if isinstance(value, np.ndarray)
    }
    return replace(case, runs=[(backwards, []), (None, []), ({}, [])])


def mapped(args, change):
    """Arguments with every array changed."""
    found = []
    for a in args:
        if isinstance(a, list):
            found.append(mapped(a, change))
        elif isinstance(a, FloatWords):
            found.append(replace(a, array=change(a.array.view(np.float32)).view(np.uint32)))
        elif isinstance(a, (In, Const)):
            found.append(replace(a, array=change(a.array)))
        else:
            found.append(a)
    return found


def flushed(array):
    """Denormals as zeros, as GPUs may read them."""
    if array.dtype != np.float32:
        return array
    return np.where(abs(array) < NORMAL, np.copysign(np.float32(0), array), array)


@dataclass
class Tally:
    """What was compared."""

    graphs: Counter
    elements: Counter

    def line(self):
        """For the end of the report."""
        return (
            f"numerics: {len(self.graphs)} operators, {self.graphs.total()} graphs run "
            f"3 times each, {self.elements.total()} numbers compared"
        )


def verify(drawn, gpu, tally):
    """What is wrong: (op, row, sample) outside of its bound, or unlike itself in its third run."""
    cases = [case_of(op, sample) for op, _, sample in drawn]
    wanted = run_all(cases)
    tiny = run_all([replace(c, args=mapped(c.args, flushed)) for c in cases])
    found = run_all([three_runs(c) for c in cases], gpu)
    complaints = []
    for (op, row, sample), case, *runs in zip(drawn, cases, wanted, tiny, found, strict=True):
        tally.graphs[op] += 1
        (want,), (small,), (first, _, again) = runs
        for i, bound in enumerate(row.bounds(len(want))):
            got, what = first[i], f"{case} result {i}"
            tally.elements[op] += got.size
            if got.tobytes() != again[i].tobytes():
                complaints.append(f"{what}: another run gives other bits")
            size = sample.size[i] if isinstance(sample.size, list) else sample.size
            wrong = bound.wrong(got, want[i], size) & bound.wrong(got, small[i], size)
            if wrong.any():
                complaints.append(_said(what, got, want[i], wrong, bound, sample))
    return complaints


def _said(what, got, want, wrong, bound, sample):
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    near = [
        f"{a.name}={a.array[at]!r}"
        for a in sample.args
        if isinstance(a, In) and a.array.shape == got.shape
    ]
    scalars = [a for a in sample.args if not isinstance(a, (In, Const, list))]
    return (
        f"{what}: {int(wrong.sum())} of {wrong.size} outside of {bound.text}, at {at} "
        f"{got[at]!r}, reference {want[at]!r}; {', '.join(near)} {scalars}"
    )
