//! lib: grid, quotient
// 4-bit codes of a matrix whose scales are known: a word of four packed bytes a thread.

struct Params {
    nbytes: u32,
    cols: u32,
    row_bytes: u32,
    group_size: u32,
    scale_step: u32,
}

@group(0) @binding(0) var<storage, read> latent: array<f32>;
@group(0) @binding(1) var<storage, read> scales: array<f32>;
@group(0) @binding(2) var<storage, read_write> packed: array<u32>;
@group(0) @binding(10) var<uniform> params: Params;

// The code of column k, 0 past the last.
fn code(row: u32, k: u32) -> u32 {
    if (k >= params.cols) {
        return 0u;
    }
    let scale = scales[k / params.group_size * params.scale_step + row];
    if (scale == 0.0) {
        return 8u;
    }
    let steps = round_quotient(latent[row * params.cols + k], scale);
    return u32(clamp(steps, -8.0, 7.0) + 8.0);
}

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let first = linear_index(id, groups) * 4u;
    if (first >= params.nbytes) {
        return;
    }
    var word = 0u;
    for (var i = 0u; i < 4u && first + i < params.nbytes; i++) {
        let row = (first + i) / params.row_bytes;
        let k = (first + i) % params.row_bytes * 2u;
        word |= (code(row, k) | (code(row, k + 1u) << 4u)) << (8u * i);
    }
    packed[first / 4u] = word;
}
