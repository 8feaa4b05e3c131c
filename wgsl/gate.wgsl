//! lib: grid, gate
// y = act(gate) * up + residual, where a row of `product` holds `half` gates and then `half` ups.

struct Params {
    count: u32,
    half: u32,
}

override has_residual: bool = false;

@group(0) @binding(0) var<storage, read> product: array<f32>;
@group(0) @binding(1) var<storage, read> residual: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(10) var<uniform> params: Params;

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_index(id, groups);
    if (i >= params.count) {
        return;
    }
    let at = i / params.half * 2u * params.half + i % params.half;
    var value = gated(product[at], product[at + params.half]);
    if (has_residual) {
        value += residual[i];
    }
    y[i] = value;
}
