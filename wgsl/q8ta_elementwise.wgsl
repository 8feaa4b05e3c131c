//! lib: grid, strided, int8, requant
// int8 in, int8 out: dequantize, operate in float32, requantize; a word of four a thread.

struct Params {
    numel: u32,
    zero: u32,
    same: u32,
    upscale: u32,
    a_scale: f32,
    b_scale: f32,
    alpha: f32,
    inverse: f32,
    a_zero_point: i32,
    b_zero_point: i32,
    zero_point: i32,
    dims: array<vec4<u32>, 2>,
    a_strides: array<vec4<u32>, 2>,
    b_strides: array<vec4<u32>, 2>,
}

override op: u32 = 0u;

@group(0) @binding(0) var<storage, read> a: array<u32>;
@group(0) @binding(1) var<storage, read> b: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;
@group(0) @binding(10) var<uniform> params: Params;

fn a_value(at: u32) -> f32 {
    return exactly(f32(signed_byte(a[at / 4u], at) - params.a_zero_point) * params.a_scale);
}

fn b_value(at: u32) -> f32 {
    return exactly(f32(signed_byte(b[at / 4u], at) - params.b_zero_point) * params.b_scale);
}

fn added(at: u32) -> f32 {
    var at_a = at;
    var at_b = at;
    if (params.same == 0u) {
        at_a = strided_index(at, params.dims, params.a_strides);
        at_b = strided_index(at, params.dims, params.b_strides);
    }
    return a_value(at_a) + exactly(params.alpha * b_value(at_b));
}

// dims' last two are the result's height and width; planes of batch and channel count as one.
fn shuffled(at: u32) -> f32 {
    let r = params.upscale;
    let width = params.dims[1].w;
    let height = params.dims[1].z;
    let w = at % width;
    let h = at / width % height;
    let plane = at / width / height * r * r + h % r * r + w % r;
    return a_value((plane * (height / r) + h / r) * (width / r) + w / r);
}

fn operated(at: u32) -> f32 {
    switch op {
        case 0u: { return added(at); }
        case 1u: { return max(a_value(at), 0.0); }
        default: { return shuffled(at); }
    }
}

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let first = linear_index(id, groups) * 4u;
    if (first >= params.numel) {
        return;
    }
    let count = min(4u, params.numel - first);
    var codes = vec4<i32>();
    for (var i = 0u; i < count; i++) {
        codes[i] = requantized(operated(first + i), params.inverse, params.zero_point);
    }
    y[first / 4u] = pack_signed_bytes(codes, count);
}
