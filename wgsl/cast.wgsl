//! lib: grid, nan
// y = x in another dtype, four elements a thread. Kinds: 0 float32, 1 int32, 2 uint8, 3 int8,
// 4 bool. Floats truncate and saturate to int32 (NaN to 0); integers wrap to a byte.

struct Params {
    numel: u32,
}

override from_kind: u32 = 0u;
override to_kind: u32 = 0u;

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(10) var<uniform> params: Params;

fn ints(i: u32) -> vec4<i32> {
    let k = 4u * i;
    switch from_kind {
        case 0u: {
            let f = bitcast<vec4<f32>>(vec4<u32>(x[k], x[k + 1u], x[k + 2u], x[k + 3u]));
            let inside = clamp(f, vec4<f32>(-2147483648.0), vec4<f32>(2147483520.0));
            let whole = select(vec4<i32>(inside), vec4<i32>(2147483647), f >= vec4<f32>(2147483648.0));
            return select(whole, vec4<i32>(), is_nan(f));
        }
        case 1u: { return bitcast<vec4<i32>>(vec4<u32>(x[k], x[k + 1u], x[k + 2u], x[k + 3u])); }
        case 3u: {
            let word = bitcast<i32>(x[i]);
            return (vec4<i32>(word) << vec4<u32>(24u, 16u, 8u, 0u)) >> vec4<u32>(24u);
        }
        default: { return vec4<i32>((vec4<u32>(x[i]) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(0xffu)); }
    }
}

fn truths(i: u32) -> vec4<u32> {
    if (from_kind == 0u) {
        let k = 4u * i;
        let bits = vec4<u32>(x[k], x[k + 1u], x[k + 2u], x[k + 3u]) & vec4<u32>(0x7fffffffu);
        return min(bits, vec4<u32>(1u));
    }
    return min(vec4<u32>(abs(ints(i))), vec4<u32>(1u));
}

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_index(id, groups);
    if (i > (params.numel - 1u) / 4u) {
        return;
    }
    var four: vec4<u32>;
    if (to_kind == 0u) {
        four = bitcast<vec4<u32>>(vec4<f32>(ints(i)));
    } else if (to_kind == 4u) {
        four = truths(i);
    } else {
        four = bitcast<vec4<u32>>(ints(i));
    }
    if (to_kind >= 2u) {
        let left = vec4<u32>(params.numel - 4u * i);
        let bytes = select(vec4<u32>(), four & vec4<u32>(0xffu), left > vec4<u32>(0u, 1u, 2u, 3u));
        y[i] = bytes.x | (bytes.y << 8u) | (bytes.z << 16u) | (bytes.w << 24u);
    } else {
        for (var k = 0u; k < 4u; k++) {
            y[4u * i + k] = four[k];
        }
    }
}
