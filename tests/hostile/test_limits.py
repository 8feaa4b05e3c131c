"""Every case of the operator suite on devices with small limits: it fits, or says what does not.

On CPython the plans are looked at: every binding, grid, workgroup and workgroup memory that the
device would be asked for. In the browser a part of the cases is computed.
"""

import importlib
import re
from collections import Counter
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

import webgpu_py
from ops.opcase import OpCase, assert_close, run
from webgpu_py.backends.cpu import CpuBridge
from webgpu_py.device import Device
from webgpu_py.errors import LimitExceeded, WebGPUPyError
from webgpu_py.graph.limits import Limits

OPS = Path(__file__).resolve().parents[1] / "ops"
KIB = 1024
SMALL = [
    *({"max_storage_buffer_binding_size": n * KIB} for n in (1, 4, 32, 1024)),
    *({"max_buffer_size": n * KIB} for n in (1, 64)),
    {"max_compute_invocations_per_workgroup": 32, "max_compute_workgroup_size_x": 32},
    {"max_compute_workgroup_storage_size": 16 * KIB},
    {"max_storage_buffers_per_shader_stage": 8},
    *({"max_compute_workgroups_per_dimension": n} for n in (4, 17, 255)),
]
SAID = re.compile(r"\d+.*(allow|limit|fit|maximum|at most).*\d+", re.S)
"""What a refusal has to tell: how much is needed and how much there is."""


def name_of(limits):
    return ", ".join(f"{k}={v}" for k, v in limits.items())


def suite():
    """Every OpCase that a module of the operator suite has made."""

    def cases_in(value, depth=0):
        if isinstance(value, OpCase):
            yield value
        elif isinstance(value, (list, tuple)) and depth < 3:
            for inner in value:
                yield from cases_in(inner, depth + 1)
        elif isinstance(value, dict) and depth < 3:
            yield from cases_in(list(value.values()), depth + 1)

    found = {}
    for path in sorted(OPS.glob("test_*.py")):
        module = importlib.import_module(f"ops.{path.stem}")
        for value in vars(module).values():
            for case in cases_in(value):
                found[id(case)] = case
    return [*found.values()]


class BoundedBridge(CpuBridge):
    """Computes nothing; refuses a plan that a device with `limits` would."""

    def __init__(self):
        super().__init__()
        self.limits = Limits()
        self.allowed = self.limits
        self._specs = {}

    async def create_buffers(self, nbytes, labels):
        assert max(nbytes) <= self.allowed.max_buffer_size, labels
        return await super().create_buffers(nbytes, labels)

    async def create_pipelines(self, specs):
        handles = await super().create_pipelines(specs)
        self._specs.update(zip(handles, specs, strict=True))
        return handles

    async def load_plan(self, plan):
        most = self.allowed
        for at in range(0, len(plan.bind_groups), 3):
            pipeline, first, count = plan.bind_groups[at : at + 3]
            label = plan.labels[at // 3]
            entries = [plan.entries[4 * e : 4 * e + 4] for e in range(first, first + count)]
            storage = [nbytes for _, buffer, _, nbytes in entries if buffer >= 0]
            assert len(storage) <= most.max_storage_buffers_per_shader_stage, label
            assert max(storage) <= most.max_storage_buffer_binding_size, label
            grid = plan.commands[4 * (at // 3) + 1 : 4 * (at // 3) + 4]
            assert max(grid) <= most.max_compute_workgroups_per_dimension, (label, grid)
            width, memory = workgroup_of(self._specs[pipeline])
            assert width <= most.max_compute_invocations_per_workgroup, (label, width)
            assert width <= most.max_compute_workgroup_size_x, (label, width)
            assert memory <= most.max_compute_workgroup_storage_size, (label, memory)
        return await super().load_plan(plan)

    async def profile(self, plan, blob):
        return bytes(self._plans[plan].result_nbytes), []


def workgroup_of(spec):
    """Invocations and bytes of workgroup memory of a pipeline, read off its WGSL."""
    text = re.sub(r"//[^\n]*", "", spec.kernel.wgsl)
    declared = re.findall(r"(?:override|const)\s+(\w+)[^=;]*=\s*([^;]+);", text)
    names = dict(declared) | {name: str(int(value)) for name, value in spec.constants}
    nbytes = 0
    variables = re.findall(r"var<workgroup>\s+(\w+)\s*:\s*array<(vec4<)?\w+>?,\s*([^>]+)>", text)
    assert len(variables) == text.count("var<workgroup>")
    for name, vector, count in variables:
        # Libraries may bring memory that this kernel does not touch, which costs nothing.
        if len(re.findall(rf"\b{name}\b", text)) > 1:
            nbytes += (16 if vector else 4) * valued(count, names)
    (size,) = re.findall(r"@workgroup_size\(([^)]*)\)", text)
    return valued(size, names), nbytes


def valued(expression, names):
    """An integer constant expression of WGSL."""
    plain = re.sub(r"\b(\d+)u\b", r"\1", expression).replace("/", "//")
    inner = re.sub(r"[A-Za-z_]\w*", lambda found: str(valued(names[found[0]], names)), plain)
    return eval(inner)


@pytest.fixture
def bounded(monkeypatch):
    bridge = BoundedBridge()
    monkeypatch.setattr(webgpu_py, "_test_device_cpu", Device(bridge), raising=False)
    return bridge


@pytest.mark.slow
@pytest.mark.parametrize("limits", SMALL, ids=name_of)
def test_plans_stay_within_small_limits_or_say_what_is_too_large(bounded, counts, limits):
    cases = suite()
    assert len(cases) > 300
    outcomes = Counter()
    for case in cases:
        merged = {**(case.limits or {}), **limits}
        bounded.allowed = Limits().capped(merged)
        try:
            run(replace(case, limits=merged))
            outcomes["fits"] += 1
        except LimitExceeded as error:
            assert SAID.search(str(error)), f"{case}: {error}"
            outcomes["refused"] += 1
        except WebGPUPyError as error:
            # Indices that zeros would be, and cases of refusals.
            outcomes[error.code] += 1
    counts.append(f"limits, {name_of(limits)}: {dict(outcomes)}")
    assert outcomes["fits"] > 100
    assert outcomes["fits"] + outcomes["refused"] > 0.95 * len(cases)


@pytest.mark.slow
def test_a_sample_of_the_cases_computes_right_under_small_limits(gpu, counts):
    rng = np.random.default_rng(7)
    outcomes = Counter()
    cases = suite()
    for at in rng.permutation(len(cases))[:300]:
        case, limits = cases[at], SMALL[rng.integers(len(SMALL))]
        try:
            wanted = run(replace(case, limits=None))
        except WebGPUPyError:
            outcomes["refused without limits"] += 1
            continue
        try:
            found = run(replace(case, limits={**(case.limits or {}), **limits}), gpu)
            for got, want in zip(chain(*found), chain(*wanted), strict=True):
                assert_close(got, want, 2 * case.atol, 2 * case.rtol, f"{case} {name_of(limits)}")
            outcomes["right"] += 1
        except LimitExceeded as error:
            assert SAID.search(str(error)), f"{case}: {error}"
            outcomes["refused"] += 1
    counts.append(f"limits, computed in the browser: {dict(outcomes)}")
    assert outcomes["right"] > 150
