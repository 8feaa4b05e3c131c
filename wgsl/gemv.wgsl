//! lib: grid, product
// y = alpha * a . b + beta * c for few rows: a workgroup computes `columns` columns of four rows,
// and its lanes share the depth.

var<workgroup> sums: array<vec4<f32>, 256>;

@compute @workgroup_size(wg_size)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let columns = params.columns;
    let across = (params.cols + columns - 1u) / columns;
    let blocks = across * ((params.rows + 3u) / 4u);
    let at = group_index(group, groups);
    if (at >= blocks * params.batch) {
        return;
    }
    let batch = at / blocks;
    let row0 = at % blocks / across * 4u;
    let col = at % across * columns + lane % columns;
    // Rows past the last repeat it: their sums are not stored.
    let last = params.rows - 1u;
    let rows = min(vec4<u32>(row0) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(last));
    let a0 = rows * params.a_row + batch * params.a_batch;
    let b0 = min(col, params.cols - 1u) * params.b_col + batch * params.b_batch;
    let slices = wg_size / columns;
    var sum = vec4<f32>();
    if (params.rows == 1u) {
        for (var k = lane / columns; k < params.depth; k += slices) {
            sum.x += a[a0.x + k * params.a_k] * b[b0 + k * params.b_k];
        }
    } else {
        for (var k = lane / columns; k < params.depth; k += slices) {
            let i = a0 + k * params.a_k;
            sum += vec4<f32>(a[i.x], a[i.y], a[i.z], a[i.w]) * b[b0 + k * params.b_k];
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
        let place = params.col_offset + col;
        for (var i = 0u; i < 4u && row0 + i < params.rows; i++) {
            var value = params.alpha * sums[lane][i];
            if (params.beta != 0.0) {
                value += params.beta * c[(row0 + i) * params.c_row + place * params.c_col];
            }
            y[batch * params.y_batch + (row0 + i) * params.y_row + place * params.y_col] = value;
        }
    }
}
