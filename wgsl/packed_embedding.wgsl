//! lib: grid, fault, packed
// Rows of a packed weight by index: `lanes` invocations a row, each of which takes four vec4 a
// quarter of the row apart, so that enough is on its way, or with `turns` one after the other, or a
// `single` one. Rows and groups are whole fours.

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
    lanes: u32,
}

override turns: bool = false;
override single: bool = false;
override quarters: bool = false; // rows are whole fours of vec4

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

// Vec4 i of a row, or its last.
fn value(row: u32, i: u32) -> vec4<f32> {
    let k = 4u * select(min(i, params.fours - 1u), i, quarters);
    let s = scale_of(row, k);
    return four(row, k) * place() * s.x + s.y;
}

fn put(at: u32, i: u32, v: vec4<f32>) {
    if (quarters || i < params.fours) {
        y[at * params.fours + i] = v;
    }
}

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let invocation = linear_index(id, groups);
    let at = invocation / params.lanes;
    let lane = invocation % params.lanes;
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
    if (!known) {
        if (lane == 0u) {
            raise_fault(params.node, at, index);
        }
        for (var i = lane; i < params.fours; i += params.lanes) {
            put(at, i, vec4<f32>(0.0));
        }
        return;
    }
    if (single) {
        put(at, lane, value(row, lane));
        return;
    }
    if (turns) {
        for (var i = lane; i < params.fours; i += params.lanes) {
            put(at, i, value(row, i));
        }
        return;
    }
    let quarter = (params.fours + 3u) / 4u;
    let a = value(row, lane);
    let b = value(row, lane + quarter);
    let c = value(row, lane + 2u * quarter);
    let d = value(row, lane + 3u * quarter);
    put(at, lane, a);
    put(at, lane + quarter, b);
    put(at, lane + 2u * quarter, c);
    put(at, lane + 3u * quarter, d);
}
