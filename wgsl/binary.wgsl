//! lib: grid, strided
// y = a op b, broadcast; `op` picks the operation when the pipeline is made.

struct Params {
    numel: u32,
    same: u32,
    alpha: f32,
    dims: array<vec4<u32>, 2>,
    a_strides: array<vec4<u32>, 2>,
    b_strides: array<vec4<u32>, 2>,
}

override op: u32 = 0u;

@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(10) var<uniform> params: Params;

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_index(id, groups);
    if (i >= params.numel) {
        return;
    }
    var at_a = i;
    var at_b = i;
    if (params.same == 0u) {
        at_a = strided_index(i, params.dims, params.a_strides);
        at_b = strided_index(i, params.dims, params.b_strides);
    }
    let u = a[at_a];
    let v = b[at_b];
    switch op {
        case 0u: { y[i] = u + params.alpha * v; }
        case 1u: { y[i] = u - params.alpha * v; }
        default: { y[i] = u * v; }
    }
}
