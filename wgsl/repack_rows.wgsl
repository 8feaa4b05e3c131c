//! lib: grid
// Rows of float16 or bfloat16 of any even number of bytes to rows of whole words, which end in
// zeros: a word an invocation.

struct Params {
    words: u32,
    row_bytes: u32,
    row_words: u32,
}

@group(0) @binding(0) var<storage, read> source: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(10) var<uniform> params: Params;

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_index(id, groups);
    if (i >= params.words) {
        return;
    }
    let column = 4u * (i % params.row_words);
    let byte = i / params.row_words * params.row_bytes + column;
    let at = byte >> 2u;
    var word = source[at];
    if ((byte & 2u) != 0u) {
        word = (word >> 16u) | (source[at + 1u] << 16u);
    }
    if (params.row_bytes - column < 4u) {
        word &= 0xffffu;
    }
    y[i] = word;
}
