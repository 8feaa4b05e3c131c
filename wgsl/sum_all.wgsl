//! lib: grid, reduce
// y[0] = sum of all of x, one workgroup.

struct Params {
    numel: u32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(10) var<uniform> params: Params;

@compute @workgroup_size(wg_size)
fn main(@builtin(local_invocation_index) lane: u32) {
    var sum = 0.0;
    for (var i = lane; i < params.numel; i += wg_size) {
        sum += x[i];
    }
    sum = workgroup_sum(lane, sum);
    if (lane == 0u) {
        y[0] = sum;
    }
}
