//! lib: grid, reduce
// A workgroup normalizes one row; its lanes stride over the row.

struct Params {
    rows: u32,
    width: u32,
    eps: f32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> weight: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(10) var<uniform> params: Params;

@compute @workgroup_size(wg_size)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = group_index(group, groups);
    if (row >= params.rows) {
        return;
    }
    let base = row * params.width;
    var squares = 0.0;
    for (var i = lane; i < params.width; i += wg_size) {
        let v = x[base + i];
        squares += v * v;
    }
    let mean = workgroup_sum(lane, squares) / f32(params.width);
    let scale = inverseSqrt(mean + params.eps);
    for (var i = lane; i < params.width; i += wg_size) {
        y[base + i] = x[base + i] * scale * weight[i];
    }
}
