//! lib: grid, axes
// y = condition ? a : b, broadcast, four elements a thread. `bytes` says that a, b and y hold
// 1-byte elements. `reach` and the splats are as in binary.wgsl.

struct Params {
    numel: u32,
    axes: array<vec4<u32>, 12>,
}

override bytes: bool = false;
override reach: u32 = 0u;
override a_splat: bool = false;
override b_splat: bool = false;
override c_splat: bool = false;

@group(0) @binding(0) var<storage, read> condition: array<u32>;
@group(0) @binding(1) var<storage, read> a: array<u32>;
@group(0) @binding(2) var<storage, read> b: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<u32>;
@group(0) @binding(10) var<uniform> params: Params;

fn a_one(i: u32) -> u32 {
    if (bytes) {
        return (a[i / 4u] >> (8u * (i % 4u))) & 0xffu;
    }
    return a[i];
}

fn b_one(i: u32) -> u32 {
    if (bytes) {
        return (b[i / 4u] >> (8u * (i % 4u))) & 0xffu;
    }
    return b[i];
}

fn four_bytes(word: u32) -> vec4<u32> {
    return (vec4<u32>(word) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(0xffu);
}

fn a_four(i: u32) -> vec4<u32> {
    if (bytes) {
        return four_bytes(a[i / 4u]);
    }
    return vec4<u32>(a[i], a[i + 1u], a[i + 2u], a[i + 3u]);
}

fn b_four(i: u32) -> vec4<u32> {
    if (bytes) {
        return four_bytes(b[i / 4u]);
    }
    return vec4<u32>(b[i], b[i + 1u], b[i + 2u], b[i + 3u]);
}

fn c_one(i: u32) -> u32 {
    return (condition[i / 4u] >> (8u * (i % 4u))) & 0xffu;
}

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_index(id, groups);
    if (i > (params.numel - 1u) / 4u) {
        return;
    }
    var c: vec4<u32>;
    var u: vec4<u32>;
    var v: vec4<u32>;
    if (reach == 0u) {
        c = four_bytes(condition[i]);
        u = a_four(4u * i);
        v = b_four(4u * i);
    } else if (reach == 1u) {
        let at = axis_indices(4u * i);
        if (c_splat) {
            c = vec4<u32>(c_one(at.x));
        } else {
            c = four_bytes(condition[at.x / 4u]);
        }
        if (a_splat) {
            u = vec4<u32>(a_one(at.y));
        } else {
            u = a_four(at.y);
        }
        if (b_splat) {
            v = vec4<u32>(b_one(at.z));
        } else {
            v = b_four(at.z);
        }
    } else {
        for (var k = 0u; k < 4u; k++) {
            let at = axis_indices(min(4u * i + k, params.numel - 1u));
            c[k] = c_one(at.x);
            u[k] = a_one(at.y);
            v[k] = b_one(at.z);
        }
    }
    let four = select(v, u, c != vec4<u32>());
    if (bytes) {
        let left = vec4<u32>(params.numel - 4u * i) > vec4<u32>(0u, 1u, 2u, 3u);
        let kept = select(vec4<u32>(), four, left);
        y[i] = kept.x | (kept.y << 8u) | (kept.z << 16u) | (kept.w << 24u);
    } else {
        for (var k = 0u; k < 4u; k++) {
            y[4u * i + k] = four[k];
        }
    }
}
