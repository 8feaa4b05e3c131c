//! lib: grid
// y = a op b, word by word; `flip` is what op 2 turns over; bytes past the content become 0.

struct Params {
    words: u32,
    flip: u32,
    last_mask: u32,
}

override op: u32 = 0u;

@group(0) @binding(0) var<storage, read> a: array<u32>;
@group(0) @binding(1) var<storage, read> b: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;
@group(0) @binding(10) var<uniform> params: Params;

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_index(id, groups);
    if (i >= params.words) {
        return;
    }
    var word = a[i];
    switch op {
        case 0u: { word &= b[i]; }
        case 1u: { word |= b[i]; }
        default: { word ^= params.flip; }
    }
    if (i == params.words - 1u) {
        word &= params.last_mask;
    }
    y[i] = word;
}
