//! lib: grid, live, axes, nan
// y = a op b as bool, broadcast: four elements, one word of y, a thread. Kinds of operands:
// 0 float32, 1 int32, 2 bool or uint8, 3 int8. Floats compare as floats, integers exactly.
// `scalar` takes b from the parameters, in a's kind, or (2) from a live integer. `reach` is as in
// binary.wgsl.

struct Params {
    numel: u32,
    scalar: f32,
    whole_scalar: i32,
    live_word: u32,
    axes: array<vec4<u32>, 12>,
}

override op: u32 = 0u;
override a_kind: u32 = 0u;
override b_kind: u32 = 0u;
override scalar: u32 = 0u;
override reach: u32 = 0u;
override a_splat: bool = false;
override b_splat: bool = false;

@group(0) @binding(0) var<storage, read> a: array<u32>;
@group(0) @binding(1) var<storage, read> b: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;
@group(0) @binding(10) var<uniform> params: Params;

// Bytes of a word, signed where the kind is.
fn unpacked(word: u32, kind: u32) -> vec4<u32> {
    let shifts = vec4<u32>(24u, 16u, 8u, 0u);
    if (kind == 3u) {
        return bitcast<vec4<u32>>((vec4<i32>(bitcast<i32>(word)) << shifts) >> vec4<u32>(24u));
    }
    return (vec4<u32>(word) << shifts) >> vec4<u32>(24u);
}

fn a_one(i: u32) -> u32 {
    if (a_kind < 2u) {
        return a[i];
    }
    var four = unpacked(a[i / 4u], a_kind);
    return four[i % 4u];
}

fn b_one(i: u32) -> u32 {
    if (b_kind < 2u) {
        return b[i];
    }
    var four = unpacked(b[i / 4u], b_kind);
    return four[i % 4u];
}

fn a_four(i: u32) -> vec4<u32> {
    if (a_kind < 2u) {
        return vec4<u32>(a[i], a[i + 1u], a[i + 2u], a[i + 3u]);
    }
    return unpacked(a[i / 4u], a_kind);
}

fn b_four(i: u32) -> vec4<u32> {
    if (b_kind < 2u) {
        return vec4<u32>(b[i], b[i + 1u], b[i + 2u], b[i + 3u]);
    }
    return unpacked(b[i / 4u], b_kind);
}

fn floats(bits: vec4<u32>, kind: u32) -> vec4<f32> {
    if (kind == 0u) {
        return bitcast<vec4<f32>>(bits);
    }
    return vec4<f32>(bitcast<vec4<i32>>(bits));
}

// Not 0; a NaN is not, so the bits are asked.
fn truths(bits: vec4<u32>, kind: u32) -> vec4<bool> {
    let mask = select(0xffffffffu, 0x7fffffffu, kind == 0u);
    return (bits & vec4<u32>(mask)) != vec4<u32>();
}

fn compare_floats(u: vec4<f32>, v: vec4<f32>) -> vec4<bool> {
    switch op {
        case 0u: { return u == v; }
        case 1u: { return (u != v) | is_nan(u) | is_nan(v); }
        case 2u: { return u < v; }
        case 3u: { return u <= v; }
        case 4u: { return u > v; }
        default: { return u >= v; }
    }
}

fn compare_ints(u: vec4<i32>, v: vec4<i32>) -> vec4<bool> {
    switch op {
        case 0u: { return u == v; }
        case 1u: { return u != v; }
        case 2u: { return u < v; }
        case 3u: { return u <= v; }
        case 4u: { return u > v; }
        default: { return u >= v; }
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
        u = a_four(4u * i);
        if (scalar == 0u) {
            v = b_four(4u * i);
        }
    } else if (reach == 1u) {
        let at = axis_indices(4u * i);
        if (a_splat) {
            u = vec4<u32>(a_one(at.x));
        } else {
            u = a_four(at.x);
        }
        if (b_splat) {
            v = vec4<u32>(b_one(at.y));
        } else {
            v = b_four(at.y);
        }
    } else {
        for (var k = 0u; k < 4u; k++) {
            let at = axis_indices(min(4u * i + k, params.numel - 1u));
            u[k] = a_one(at.x);
            v[k] = b_one(at.y);
        }
    }
    var result: vec4<bool>;
    if (op == 6u) {
        result = truths(u, a_kind) & truths(v, b_kind);
    } else if (op == 7u) {
        result = truths(u, a_kind) | truths(v, b_kind);
    } else if (op == 8u) {
        result = !truths(u, a_kind);
    } else if (a_kind == 0u || b_kind == 0u) {
        var w = floats(v, b_kind);
        if (scalar == 1u) {
            w = vec4<f32>(params.scalar);
        } else if (scalar == 2u) {
            w = vec4<f32>(f32(live[params.live_word]));
        }
        result = compare_floats(floats(u, a_kind), w);
    } else {
        var w = bitcast<vec4<i32>>(v);
        if (scalar == 1u) {
            w = vec4<i32>(params.whole_scalar);
        } else if (scalar == 2u) {
            w = vec4<i32>(live[params.live_word]);
        }
        result = compare_ints(bitcast<vec4<i32>>(u), w);
    }
    let left = vec4<u32>(params.numel - 4u * i) > vec4<u32>(0u, 1u, 2u, 3u);
    let bytes = select(vec4<u32>(), vec4<u32>(1u, 0x100u, 0x10000u, 0x1000000u), result & left);
    y[i] = bytes.x | bytes.y | bytes.z | bytes.w;
}
