//! lib: grid
// One AdamW step, in place, an element a thread.

struct Params {
    numel: u32,
    lr: f32,
    beta1: f32,
    beta2: f32,
    one_minus_beta1: f32,
    one_minus_beta2: f32,
    eps: f32,
    decay: f32,
    bias_correction1: f32,
    bias_correction2: f32,
}

@group(0) @binding(0) var<storage, read_write> param: array<f32>;
@group(0) @binding(1) var<storage, read_write> m: array<f32>;
@group(0) @binding(2) var<storage, read_write> v: array<f32>;
@group(0) @binding(3) var<storage, read> grad: array<f32>;
@group(0) @binding(10) var<uniform> params: Params;

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_index(id, groups);
    if (i >= params.numel) {
        return;
    }
    let g = grad[i];
    let first = params.beta1 * m[i] + params.one_minus_beta1 * g;
    let second = params.beta2 * v[i] + params.one_minus_beta2 * g * g;
    m[i] = first;
    v[i] = second;
    let size = sqrt(second / params.bias_correction2) + params.eps;
    param[i] = param[i] * params.decay - params.lr * (first / params.bias_correction1) / size;
}
