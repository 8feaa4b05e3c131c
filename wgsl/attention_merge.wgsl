//! lib: grid, live, attention, reduce
// Joins the stretches of attention_split and attention_decode: a workgroup a row. Its lanes weigh
// the stretches, then add them up, some along the head dimension and the others along the stretches.

override block_rows: u32 = 4u;
override dim_lanes: u32 = 64u; // a power of two up to wg_size

const MOST_SPLITS: u32 = 128u;

@group(0) @binding(0) var<storage, read> partial: array<f32>;
@group(0) @binding(1) var<storage, read> stats: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

var<workgroup> weights: array<f32, MOST_SPLITS>;
var<workgroup> sums: array<f32, wg_size>;

// Element d of stretch i, weighed; past the last stretch 0.
fn part(first: u32, i: u32, used: u32, d: u32) -> f32 {
    let at = min(i, used - 1u);
    return select(0.0, partial[(first + at) * params.dim + d] * weights[at], i < used);
}

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
    let used = stretches_used(row, block_rows);
    let first = index * params.splits;
    var own_most = EXCLUDED;
    for (var i = lane; i < used; i += wg_size) {
        own_most = max(own_most, stats[first + i].x);
    }
    let most = workgroup_max(lane, own_most);
    var own_total = 0.0;
    for (var i = lane; i < used; i += wg_size) {
        let part = stats[first + i];
        weights[i] = exp(part.x - most);
        own_total += part.y * weights[i];
    }
    let total = workgroup_sum(lane, own_total);
    let share = select(0.0, 1.0 / total, total > 0.0);
    let to = row_base(index / params.rows, row);
    for (var d0 = 0u; d0 < params.dim; d0 += dim_lanes) {
        let d = d0 + lane % dim_lanes;
        var sum = 0.0;
        if (d < params.dim) {
            // Four at a time, so that their loads do not wait for each other.
            let step = wg_size / dim_lanes;
            for (var i = lane / dim_lanes; i < used; i += 4u * step) {
                let left = part(first, i, used, d) + part(first, i + step, used, d);
                let right = part(first, i + 2u * step, used, d) + part(first, i + 3u * step, used, d);
                sum += left + right;
            }
        }
        workgroupBarrier();
        sums[lane] = sum;
        workgroupBarrier();
        if (lane < dim_lanes && d < params.dim) {
            for (var i = lane + dim_lanes; i < wg_size; i += dim_lanes) {
                sum += sums[i];
            }
            y[to + d] = sum * share;
        }
    }
}
