//! lib: grid, axes, nan, power, quotient
// y = a op b, broadcast, four elements a thread; `op` picks the operation, `a_int` and `b_int` say
// which operands are int32. `reach`: 0 no broadcast; 1 whole quads, where a splat operand
// repeats along the innermost axis; 2 anything.

struct Params {
    numel: u32,
    alpha: f32,
    whole_alpha: i32,
    axes: array<vec4<u32>, 12>,
}

override op: u32 = 0u;
override a_int: bool = false;
override b_int: bool = false;
override reach: u32 = 0u;
override a_splat: bool = false;
override b_splat: bool = false;

@group(0) @binding(0) var<storage, read> a: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> b: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> y: array<vec4<u32>>;
@group(0) @binding(10) var<uniform> params: Params;

fn floats(bits: vec4<u32>, whole: bool) -> vec4<f32> {
    if (whole) {
        return vec4<f32>(bitcast<vec4<i32>>(bits));
    }
    return bitcast<vec4<f32>>(bits);
}

fn float_op(u: vec4<f32>, v: vec4<f32>) -> vec4<f32> {
    switch op {
        case 0u: { return u + params.alpha * v; }
        case 1u: { return u - params.alpha * v; }
        case 2u: { return u * v; }
        case 3u: { return u / v; }
        case 4u: {
            return vec4<f32>(
                floor_quotient(u.x, v.x), floor_quotient(u.y, v.y),
                floor_quotient(u.z, v.z), floor_quotient(u.w, v.w)
            );
        }
        case 5u: {
            return vec4<f32>(
                trunc_quotient(u.x, v.x), trunc_quotient(u.y, v.y),
                trunc_quotient(u.z, v.z), trunc_quotient(u.w, v.w)
            );
        }
        case 6u: { return select(select(min(u, v), u, is_nan(u)), v, is_nan(v)); }
        default: {
            return vec4<f32>(
                power(u.x, v.x), power(u.y, v.y), power(u.z, v.z), power(u.w, v.w)
            );
        }
    }
}

fn whole_power(base: i32, exponent: i32) -> i32 {
    if (exponent < 0) {
        let odd = select(1, base, (exponent & 1) == 1);
        return select(0, odd, base == 1 || base == -1);
    }
    var left = exponent;
    var square = base;
    var result = 1;
    while (left > 0) {
        result *= select(1, square, (left & 1) == 1);
        square *= square;
        left >>= 1u;
    }
    return result;
}

fn int_op(u: vec4<i32>, v: vec4<i32>) -> vec4<i32> {
    let zero = vec4<i32>();
    switch op {
        case 0u: { return u + params.whole_alpha * v; }
        case 1u: { return u - params.whole_alpha * v; }
        case 2u: { return u * v; }
        case 4u: {
            let q = u / v;
            let down = select(zero, vec4<i32>(1), (u ^ v) < zero);
            return select(q - select(zero, down, u != q * v), zero, v == zero);
        }
        case 5u: { return select(u / v, zero, v == zero); }
        case 6u: { return min(u, v); }
        default: {
            return vec4<i32>(
                whole_power(u.x, v.x), whole_power(u.y, v.y),
                whole_power(u.z, v.z), whole_power(u.w, v.w)
            );
        }
    }
}

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_index(id, groups);
    if (i > (params.numel - 1u) / 4u) {
        return;
    }
    var u: vec4<u32>;
    var v: vec4<u32>;
    if (reach == 0u) {
        u = a[i];
        v = b[i];
    } else if (reach == 1u) {
        let at = axis_indices(4u * i);
        u = a[at.x / 4u];
        if (a_splat) {
            u = vec4<u32>(u[at.x % 4u]);
        }
        v = b[at.y / 4u];
        if (b_splat) {
            v = vec4<u32>(v[at.y % 4u]);
        }
    } else {
        for (var k = 0u; k < 4u; k++) {
            let at = axis_indices(min(4u * i + k, params.numel - 1u));
            u[k] = a[at.x / 4u][at.x % 4u];
            v[k] = b[at.y / 4u][at.y % 4u];
        }
    }
    if (a_int && b_int && op != 3u) {
        y[i] = bitcast<vec4<u32>>(int_op(bitcast<vec4<i32>>(u), bitcast<vec4<i32>>(v)));
    } else {
        y[i] = bitcast<vec4<u32>>(float_op(floats(u, a_int), floats(v, b_int)));
    }
}
