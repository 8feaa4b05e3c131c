"""A kernel of the user's own, declared, run, mended and refused inside the browser."""

import numpy as np
import pytest

from webgpu_py.errors import IndexOutOfRange
from webgpu_py.transfer import RemoteError

WGSL = """//! lib: grid
struct Params { rows: u32, width: u32, eps: f32 }
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(10) var<uniform> params: Params;

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let row = linear_index(id, groups);
    if (row >= params.rows) { return; }
    var sum = params.eps;
    for (var k = 0u; k < params.width; k++) { sum += abs(x[row * params.width + k]); }
    y[row] = sum;
}
"""


async def row_sums(wgsl, x, turns):
    """Sums of each turn's rows by a kernel that is declared anew every time."""
    import webgpu_py as wg

    @wg.kernel("test.row_sums(x, eps=0.0) -> y", wgsl)
    def rule(x, eps):
        rows, width = x.shape
        params = {"rows": rows, "width": width, "eps": eps}
        return wg.Launch((rows,), params, threads=rows)

    g = wg.Graph()
    rows = g.input("x", (wg.dim("n", max=x.shape[0]), x.shape[1]))
    g.output("y", g.call("test.row_sums", g.neg(rows), 0.25))
    device = await wg.request_device("browser")
    session = await g.build(device, {"max_compute_workgroups_per_dimension": 4})
    found = [(await session.run(x=x[:n]))["y"] for n in turns]
    session.close()
    await device.close()
    return found


def test_a_kernel_runs_at_every_live_shape_and_changes_when_declared_again(gpu):
    x = np.random.default_rng(5).standard_normal((600, 7)).astype(np.float32)
    expected = np.abs(x.astype(np.float64)).sum(1) + 0.25
    turns = (600, 1, 65)
    for n, found in zip(turns, gpu.call(row_sums, wgsl=WGSL, x=x, turns=turns), strict=True):
        np.testing.assert_allclose(found, expected[:n], rtol=1e-6)
    (found,) = gpu.call(row_sums, wgsl=WGSL.replace("abs(", "2.0 * abs("), x=x, turns=(600,))
    np.testing.assert_allclose(found, 2 * expected - 0.25, rtol=1e-6)


def test_what_does_not_compile_is_shown_with_its_line(gpu):
    x = np.ones((2, 2), np.float32)
    wrong = WGSL.replace("y[row] = sum;", "y[row] = total;")
    with pytest.raises(RemoteError, match=r"test\.row_sums\.wgsl:13:\d+ .*`y\[row\] = total;`"):
        gpu.call(row_sums, wgsl=wrong, x=x, turns=())


async def picked(wgsl, at):
    import numpy as np

    import webgpu_py as wg

    @wg.kernel("test.pick(table, at) -> y", wgsl)
    def rule(table, at):
        return wg.Launch(at.shape, {"numel": at.numel, "size": table.numel})

    g = wg.Graph()
    table, places = g.input("table", (8,)), g.input("at", at.shape, "int32")
    g.output("y", g.call("test.pick", g.neg(table), places))
    device = await wg.request_device("browser")
    session = await g.build(device)
    try:
        return (await session.run(table=np.arange(8, dtype=np.float32), at=at))["y"]
    finally:
        session.close()
        await device.close()


def test_an_index_that_the_kernel_finds_wrong_fails_the_run(gpu):
    wgsl = """//! lib: grid, fault
struct Params { numel: u32, size: u32, node: u32 }
@group(0) @binding(0) var<storage, read> table: array<f32>;
@group(0) @binding(1) var<storage, read> at: array<i32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(10) var<uniform> params: Params;

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_index(id, groups);
    if (i >= params.numel) { return; }
    let found = at[i];
    if (u32(found) >= params.size) { raise_fault(params.node, i, u32(found)); return; }
    y[i] = table[found];
}
"""
    good = np.array([3, 1, 7], np.int32)
    np.testing.assert_array_equal(gpu.call(picked, wgsl=wgsl, at=good), [-3, -1, -7])
    with pytest.raises(IndexOutOfRange, match=r"test\.pick \(node 1\): index -2 at position 2"):
        gpu.call(picked, wgsl=wgsl, at=np.array([3, 1, -2], np.int32))
