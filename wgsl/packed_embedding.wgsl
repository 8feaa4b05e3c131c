//! lib: grid, fault, packed
// Rows of a packed weight by index, four elements an invocation: rows and groups are whole fours.
// The grid is (columns, indices folded over y and z).

struct Params {
    count: u32,
    fours: u32,
    rows: u32,
    first: u32,
    here: u32,
    row_bytes: u32,
    scale_row: u32,
    scale_step: u32,
    scale_base: u32,
    node: u32,
}

@group(0) @binding(0) var<storage, read> indices: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(10) var<uniform> params: Params;

// Elements k to k+3 of a row, as `quad` gives them.
fn four(row: u32, k: u32) -> vec4<f32> {
    let start = row * params.row_bytes;
    if (code_kind <= 1u) {
        let at = start + (k >> 1u);
        return nibbles(nibble_order(code_word(at >> 2u)) >> (8u * (at & 2u)));
    }
    if (code_kind == 2u) {
        return quad(vec4<u32>(code_word((start + k) >> 2u)), 0u);
    }
    if (code_kind == 5u) {
        let at = (start >> 2u) + k;
        return quad(vec4<u32>(
            code_word(at), code_word(at + 1u), code_word(at + 2u), code_word(at + 3u)), 0u);
    }
    let at = (start >> 2u) + (k >> 1u);
    return quad(vec4<u32>(code_word(at), code_word(at + 1u), 0u, 0u), 0u);
}

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let at = id.y + id.z * groups.y;
    if (at >= params.count) {
        return;
    }
    let index = indices[at];
    let row = index - params.first;
    // A weight in several parts: each writes its own rows, the first part the faults.
    let known = index < params.rows;
    if (row >= params.here && (known || params.first > 0u)) {
        return;
    }
    if (!known && id.x == 0u) {
        raise_fault(params.node, at, index);
    }
    for (var i = id.x; i < params.fours; i += groups.x * wg_size) {
        var v = vec4<f32>(0.0);
        if (known) {
            let s = scale_of(row, 4u * i);
            v = four(row, 4u * i) * place() * s.x + s.y;
        }
        y[at * params.fours + i] = v;
    }
}
