"""Which kernels have their params baked in, and that no size or node has a pipeline of its own."""

import asyncio
import math

import numpy as np
import pytest

import webgpu_py as wg
from webgpu_py.backends.cpu import CpuBridge
from webgpu_py.device import Device

NORM, ROPE = "et_vk.rms_norm.default", "et_vk.apply_rotary_emb_hf.default"


class Hardware(CpuBridge):
    """Lowered for as a GPU is; NumPy computes."""

    def __init__(self):
        super().__init__()
        self.info = {**self.info, "software": False}
        self.kernels = set()

    async def create_pipelines(self, specs):
        self.kernels |= {s.kernel.wgsl for s in specs}
        return await super().create_pipelines(specs)


def kernels(graph, *runs, bridge=None):
    """The texts that are compiled for a graph and some runs, and the last run's outputs."""

    async def body():
        device = Device(bridge or Hardware())
        session = await graph.build(device)
        for inputs in runs:
            found = await session.run(**inputs)
        session.close()
        return device.bridge.kernels, found

    return asyncio.run(body())


def is_baked(text):
    return "const params = Params(" in text


def random(*dims):
    return np.random.default_rng(len(dims)).uniform(0.5, 1.5, dims).astype(np.float32)


def norm(x_dims, weight_dims, eps=1e-6):
    g = wg.Graph()
    g.output("y", g.call(NORM, g.input("x", x_dims), g.input("weight", weight_dims), eps))
    return g


def test_a_row_of_a_fixed_width_is_baked_and_more_rows_are_not():
    graph = norm((wg.dim("rows", max=9), 64), (64,))
    runs = [{"x": random(n, 64), "weight": random(64)} for n in (1, 3, 5)]
    found, _ = kernels(graph, *runs)
    assert sorted(map(is_baked, found)) == [False, True]
    software = Hardware()
    software.info["software"] = True
    found, _ = kernels(graph, *runs, bridge=software)
    assert not any(map(is_baked, found))


def test_a_row_of_a_live_width_has_one_pipeline_for_every_width():
    n = wg.dim("n", max=512)
    runs = [{"x": random(1, k), "weight": random(k)} for k in range(4, 512, 4)]
    found, _ = kernels(norm((1, n), (n,)), *runs)
    assert len(found) <= 2 and sum(map(is_baked, found)) <= 1


@pytest.mark.parametrize("eps", [math.inf, math.nan])
def test_what_wgsl_cannot_write_is_not_baked(eps):
    found, outputs = kernels(norm((1, 8), (8,), eps), {"x": random(1, 8), "weight": random(8)})
    assert not any(map(is_baked, found))
    np.testing.assert_array_equal(outputs["y"], np.full((1, 8), eps if eps != eps else 0.0))


def test_equal_starts_of_many_nodes_share_a_pipeline():
    g = wg.Graph()
    q, k = g.input("q", (1, 1, 4, 8)), g.input("k", (1, 1, 2, 8))
    cos, sin = g.input("cos", (16, 8)), g.input("sin", (16, 8))
    for start in (3, 3, 5, 3):
        q, k = g.call(ROPE, q, k, cos, sin, start)
    g.output("q", q)
    g.output("k", k)
    inputs = {"q": random(1, 1, 4, 8), "k": random(1, 1, 2, 8)}
    found, _ = kernels(g, {**inputs, "cos": random(16, 8), "sin": random(16, 8)})
    assert len(found) == 2 and all(map(is_baked, found))


def test_a_table_of_live_length_has_one_pipeline_for_every_length():
    g = wg.Graph()
    rows = wg.dim("rows", max=40)
    q, k = g.input("q", (1, 1, 4, 8)), g.input("k", (1, 1, 2, 8))
    cos, sin = g.input("cos", (rows, 8)), g.input("sin", (rows, 8))
    for name, y in zip("qk", g.call(ROPE, q, k, cos, sin, 0), strict=True):
        g.output(f"{name}_out", y)
    inputs = {"q": random(1, 1, 4, 8), "k": random(1, 1, 2, 8)}
    runs = [{**inputs, "cos": random(n, 8), "sin": random(n, 8)} for n in range(1, 41)]
    found, _ = kernels(g, *runs)
    assert len(found) == 1
