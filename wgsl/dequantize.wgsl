//! lib: grid, int8
// y = (x - zero_point) * scale, a word of four a thread.

struct Params {
    numel: u32,
    scale: f32,
    zero_point: i32,
}

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(10) var<uniform> params: Params;

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let first = linear_index(id, groups) * 4u;
    if (first >= params.numel) {
        return;
    }
    var values = vec4<f32>(signed_bytes(x[first / 4u]) - vec4<i32>(params.zero_point)) * params.scale;
    for (var i = 0u; i < 4u && first + i < params.numel; i++) {
        y[first + i] = values[i];
    }
}
