//! lib: grid, int8, requant
// y = clamp(round to even(x / scale) + zero_point, low, high), a word of four a thread.

struct Params {
    numel: u32,
    zero: u32,
    inverse: f32,
    zero_point: i32,
    low: i32,
    high: i32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(10) var<uniform> params: Params;

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let first = linear_index(id, groups) * 4u;
    if (first >= params.numel) {
        return;
    }
    let count = min(4u, params.numel - first);
    var codes = vec4<i32>();
    for (var i = 0u; i < count; i++) {
        let code = requantized(x[first + i], params.inverse, params.zero_point);
        codes[i] = clamp(code, params.low, params.high);
    }
    y[first / 4u] = pack_signed_bytes(codes, count);
}
