//! lib: grid, live, attention
// Joins the stretches of attention_tile, and those of any kernel on adapters that run on the CPU: an
// invocation takes 4 elements of a row.

override block_rows: u32 = 64u;

@group(0) @binding(0) var<storage, read> partial: array<f32>;
@group(0) @binding(1) var<storage, read> stats: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let quads = up_div(params.dim, 4u);
    let at = linear_index(id, groups);
    let index = at / quads;
    if (index >= params.streams * params.rows) {
        return;
    }
    let row = index % params.rows;
    let used = stretches_used(row, block_rows);
    let first = index * params.splits;
    var most = EXCLUDED;
    for (var i = 0u; i < used; i++) {
        most = max(most, stats[first + i].x);
    }
    let d = at % quads * 4u;
    var total = 0.0;
    var sum = vec4<f32>();
    for (var i = 0u; i < used; i++) {
        let part = stats[first + i];
        let weight = exp(part.x - most);
        total += part.y * weight;
        for (var c = 0u; c < 4u && d + c < params.dim; c++) {
            sum[c] += partial[(first + i) * params.dim + d + c] * weight;
        }
    }
    let share = select(0.0, 1.0 / total, total > 0.0);
    let to = row_base(index / params.rows, row) + d;
    for (var c = 0u; c < 4u && d + c < params.dim; c++) {
        y[to + c] = sum[c] * share;
    }
}
