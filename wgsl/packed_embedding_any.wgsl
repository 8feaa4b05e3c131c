//! lib: grid, fault, packed
// Rows of a packed weight by index, an element an invocation: any width, any group.
// The grid is (columns, indices folded over y and z).

struct Params {
    count: u32,
    width: u32,
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
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(10) var<uniform> params: Params;

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let at = id.y + id.z * groups.y;
    if (at >= params.count) {
        return;
    }
    let index = indices[at];
    let row = index - params.first;
    let known = index < params.rows;
    if (row >= params.here && (known || params.first > 0u)) {
        return;
    }
    if (!known && id.x == 0u) {
        raise_fault(params.node, at, index);
    }
    for (var k = id.x; k < params.width; k += groups.x * wg_size) {
        var v = 0.0;
        if (known) {
            let s = scale_of(row, k);
            v = element(row, k) * s.x + s.y;
        }
        y[at * params.width + k] = v;
    }
}
