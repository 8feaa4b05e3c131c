//! lib: grid, q4gsw_code
// The same for few rows: a workgroup computes `columns` neighbouring results of a row, and its
// lanes share the depth.

struct Params {
    rows: u32,
    cols: u32,
    depth: u32,
    row_bytes: u32,
    group_size: u32,
    scale_step: u32,
    columns: u32,
}

@group(0) @binding(0) var<storage, read> d_out: array<f32>;
@group(0) @binding(1) var<storage, read> weight: array<u32>;
@group(0) @binding(2) var<storage, read> scales: array<f32>;
@group(0) @binding(3) var<storage, read_write> d_x: array<f32>;
@group(0) @binding(10) var<uniform> params: Params;

var<workgroup> sums: array<f32, 256>;

@compute @workgroup_size(wg_size)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let columns = params.columns;
    let across = (params.cols + columns - 1u) / columns;
    let at = group_index(group, groups);
    if (at >= across * params.rows) {
        return;
    }
    let row = at / across;
    let col = at % across * columns + lane % columns;
    let slices = wg_size / columns;
    var sum = 0.0;
    if (col < params.cols) {
        for (var n = lane / columns; n < params.depth; n += slices) {
            sum += d_out[row * params.depth + n] * q4gsw_value(n, col);
        }
    }
    sums[lane] = sum;
    workgroupBarrier();
    for (var half = slices / 2u; half > 0u; half /= 2u) {
        if (lane < half * columns) {
            sums[lane] += sums[lane + half * columns];
        }
        workgroupBarrier();
    }
    if (lane < columns && col < params.cols) {
        d_x[row * params.cols + col] = sums[lane];
    }
}
