//! lib: grid, live, attention
// Joins the stretches of attention_split: a workgroup a row, its lanes along the head dimension.

override block_rows: u32 = 4u;

const TILE: u32 = 64u;

@group(0) @binding(0) var<storage, read> partial: array<f32>;
@group(0) @binding(1) var<storage, read> stats: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(wg_size)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = group_index(group, groups);
    if (index >= params.streams * params.rows) {
        return;
    }
    let row = index % params.rows;
    // Which stretches were used is decided as in attention_split, for the row's whole block.
    let first_row = row / block_rows * block_rows;
    let keys = rows_keys(first_row, min(first_row + block_rows, params.rows) - 1u);
    let tiles = up_div(keys.y - keys.x, TILE);
    let used = up_div(tiles, up_div(tiles, params.splits));
    let first = index * params.splits;
    var most = EXCLUDED;
    for (var i = 0u; i < used; i++) {
        most = max(most, stats[first + i].x);
    }
    let to = row_base(index / params.rows, row);
    for (var d = lane; d < params.dim; d += wg_size) {
        var sum = 0.0;
        var total = 0.0;
        for (var i = 0u; i < used; i++) {
            let part = stats[first + i];
            let weight = exp(part.x - most);
            total += part.y * weight;
            sum += partial[(first + i) * params.dim + d] * weight;
        }
        y[to + d] = sum * select(0.0, 1.0 / total, total > 0.0);
    }
}
