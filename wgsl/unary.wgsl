//! lib: grid, erf, nan, power, trig
// y = f(x), four elements a thread; `op` picks f, `whole` reads int32. Padding computes garbage.

struct Params {
    numel: u32,
    p: f32,
    q: f32,
    whole_p: i32,
    whole_q: i32,
}

override op: u32 = 0u;
override whole: bool = false;

@group(0) @binding(0) var<storage, read> x: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> y: array<vec4<u32>>;
@group(0) @binding(10) var<uniform> params: Params;

// exp of a positive argument overflows on some drivers, so this one never sees any.
fn sigmoid(u: vec4<f32>) -> vec4<f32> {
    let z = exp(-abs(u));
    return select(z, vec4<f32>(1.0), u >= vec4<f32>()) / (1.0 + z);
}

fn float_op(u: vec4<f32>) -> vec4<f32> {
    let zero = vec4<f32>();
    switch op {
        case 0u: { return abs(u); }
        case 1u: { return -u; }
        case 2u: { return exp(u); }
        case 3u: { return sqrt(u); }
        case 4u: { return inverseSqrt(u); }
        case 5u: { return sine(u, 0); }
        case 6u: { return sine(u, 1); }
        case 7u: { return round(u); }
        case 8u: { return tanh(clamp(u, vec4<f32>(-15.0), vec4<f32>(15.0))); }
        case 9u: { return sigmoid(u); }
        case 10u: { return select(u, zero, u <= zero); }
        case 11u: { return u * (clamp(u + 3.0, zero, vec4<f32>(6.0)) / 6.0); }
        // Not clamp(): the bounds may be swapped, and then the upper one wins.
        case 12u: { return min(max(u, vec4<f32>(params.p)), vec4<f32>(params.q)); }
        case 13u: {
            return vec4<f32>(
                power(u.x, params.p), power(u.y, params.p),
                power(u.z, params.p), power(u.w, params.p)
            );
        }
        case 14u: { return max(u, zero) + params.p * min(u, zero); }
        case 15u: { return 0.5 * u * (1.0 + erf(u * 0.70710678)); }
        default: {
            let inner = 0.79788456 * (u + 0.044715 * u * u * u);
            let limit = vec4<f32>(10.0);
            return 0.5 * u * (1.0 + tanh(clamp(inner, -limit, limit)));
        }
    }
}

fn int_op(u: vec4<i32>) -> vec4<i32> {
    switch op {
        case 0u: { return abs(u); }
        case 1u: { return -u; }
        case 10u: { return max(u, vec4<i32>()); }
        default: { return min(max(u, vec4<i32>(params.whole_p)), vec4<i32>(params.whole_q)); }
    }
}

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_index(id, groups);
    if (i > (params.numel - 1u) / 4u) {
        return;
    }
    let bits = x[i];
    if (whole) {
        y[i] = bitcast<vec4<u32>>(int_op(bitcast<vec4<i32>>(bits)));
    } else {
        let u = bitcast<vec4<f32>>(bits);
        // NaN stays NaN, but for x ^ 0, which is 1.
        let stays = vec4<bool>(op != 13u || params.p != 0.0);
        y[i] = select(bitcast<vec4<u32>>(float_op(u)), bits, is_nan(u) & stays);
    }
}
