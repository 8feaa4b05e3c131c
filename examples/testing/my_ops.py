"""What is under test: an operator of one's own, and a graph that uses it."""

import numpy as np

import webgpu_py as wg

SOFTCAP = """//! lib: grid
struct Params { numel: u32, cap: f32 }
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(10) var<uniform> params: Params;

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_index(id, groups);
    if (i >= params.numel) { return; }
    y[i] = params.cap * tanh(x[i] / params.cap);
}
"""


@wg.kernel("my.softcap(x, cap=30.0) -> y", SOFTCAP)
def softcap(x, cap):
    return wg.Launch(x.shape, {"numel": x.numel, "cap": cap})


@softcap.reference
def softcap_numpy(x, cap):
    return cap * np.tanh(x.astype(np.float64) / cap)


async def capped_scores(kind, q, k):
    """softcap(q kᵀ, 2) on a device of that kind."""
    device = await wg.request_device(kind)
    g = wg.Graph()
    rows = g.input("q", (wg.dim("n", max=64), q.shape[1]))
    scores = g.call("aten.linear.default", rows, g.constant(k), None)
    g.output("scores", g.call("my.softcap", scores, 2.0))
    session = await g.build(device)
    out = await session.run(q=q)
    await device.close()
    return out["scores"]
