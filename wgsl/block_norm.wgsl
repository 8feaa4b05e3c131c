//! lib: grid, reduce
// A workgroup normalizes one block of consecutive elements: a row (layer norm) or the channels of
// a group (group norm). Mean first, then the squares of what differs from it.

struct Params {
    blocks: u32,
    size: u32,
    inner: u32,
    groups: u32,
    eps: f32,
}

override has_weight: bool = false;
override has_bias: bool = false;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> weight: array<f32>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(4) var<storage, read_write> means: array<f32>;
@group(0) @binding(5) var<storage, read_write> rstds: array<f32>;
@group(0) @binding(10) var<uniform> params: Params;

@compute @workgroup_size(wg_size)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let block = group_index(group, groups);
    if (block >= params.blocks) {
        return;
    }
    let base = block * params.size;
    // All as distances from the first element: a common height would cost the mean its bits.
    let first = x[base];
    var sum = 0.0;
    for (var i = lane; i < params.size; i += wg_size) {
        sum += x[base + i] - first;
    }
    let shift = workgroup_sum(lane, sum) / f32(params.size);
    var squares = 0.0;
    for (var i = lane; i < params.size; i += wg_size) {
        let d = (x[base + i] - first) - shift;
        squares += d * d;
    }
    let variance = workgroup_sum(lane, squares) / f32(params.size);
    let rstd = inverseSqrt(variance + params.eps);
    let affine = block % params.groups * (params.size / params.inner);
    for (var i = lane; i < params.size; i += wg_size) {
        let at = affine + i / params.inner;
        var v = ((x[base + i] - first) - shift) * rstd;
        if (has_weight) {
            v *= weight[at];
        }
        if (has_bias) {
            v += bias[at];
        }
        y[base + i] = v;
    }
    if (lane == 0u) {
        means[block] = first + shift;
        rstds[block] = rstd;
    }
}
