//! lib: grid
// y = (x - mean) * scale + shift with a channel's own numbers; channels are `inner` elements apart.

struct Params {
    numel: u32,
    channels: u32,
    inner: u32,
    eps: f32,
}

override has_weight: bool = false;
override has_bias: bool = false;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> weight: array<f32>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read> mean: array<f32>;
@group(0) @binding(4) var<storage, read> variance: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;
@group(0) @binding(10) var<uniform> params: Params;

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_index(id, groups);
    if (i >= params.numel) {
        return;
    }
    let c = i / params.inner % params.channels;
    var v = (x[i] - mean[c]) / sqrt(variance[c] + params.eps);
    if (has_weight) {
        v *= weight[c];
    }
    if (has_bias) {
        v += bias[c];
    }
    y[i] = v;
}
