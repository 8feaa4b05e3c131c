//! lib: grid, reduce
// Rows of x as float16, each divided by a power of two that brings its largest value to between
// 2^13 and 2^14: no row overflows, and what is 2^-27 of the largest is still a normal number. Eight
// neighbours lie in the order 0 4 1 5 2 6 3 7, which is how packed_gemm_matrix unpacks a word of
// 4-bit codes. A workgroup takes a row.

struct Params {
    rows: u32,
    width: u32,
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> scaled: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> row_scales: array<f32>;
@group(0) @binding(10) var<uniform> params: Params;

const LARGEST = 14; // the exponent that a row's largest value stays below

@compute @workgroup_size(wg_size)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = group_index(group, groups);
    if (row >= params.rows) {
        return;
    }
    let vectors = params.width / 4u;
    let base = row * vectors;
    var most = 0.0;
    for (var i = lane; i < vectors; i += wg_size) {
        let v = abs(x[base + i]);
        most = max(most, max(max(v.x, v.y), max(v.z, v.w)));
    }
    // A row of zeros, or one that holds an infinity or NaN, keeps its values.
    let bits = bitcast<u32>(workgroup_max(lane, most));
    var exponent = i32(bits >> 23u) - 126 - LARGEST;
    if (bits == 0u || bits >= 0x7f800000u) {
        exponent = 0;
    }
    let down = ldexp(1.0, clamp(-exponent, -126, 126));
    for (var i = 2u * lane; i < vectors; i += 2u * wg_size) {
        let a = x[base + i] * down;
        let b = x[base + i + 1u] * down;
        scaled[(base + i) / 2u] = vec4<u32>(
            pack2x16float(vec2<f32>(a.x, b.x)),
            pack2x16float(vec2<f32>(a.y, b.y)),
            pack2x16float(vec2<f32>(a.z, b.z)),
            pack2x16float(vec2<f32>(a.w, b.w)),
        );
    }
    if (lane == 0u) {
        row_scales[row] = ldexp(1.0, clamp(exponent, -126, 126));
    }
}
