// Every workgroup computes a tile of a product; needs product, and tile or block.
var<private> batch: u32;

fn a_quad(row: u32, rows: u32, k: u32) -> vec4<f32> {
    let first = batch * params.a_batch + k * params.a_k;
    var values = vec4<f32>();
    for (var i = 0u; i < 4u && row + i < rows; i++) {
        values[i] = a[first + (row + i) * params.a_row];
    }
    return values;
}

fn b_quad(col: u32, cols: u32, k: u32) -> vec4<f32> {
    let first = batch * params.b_batch + k * params.b_k;
    var values = vec4<f32>();
    for (var i = 0u; i < 4u && col + i < cols; i++) {
        values[i] = b[first + (col + i) * params.b_col];
    }
    return values;
}

@compute @workgroup_size(wg_size)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let edge = 4u * side;
    let across = (params.cols + edge - 1u) / edge;
    let tiles = across * ((params.rows + edge - 1u) / edge);
    let at = group_index(group, groups);
    if (at >= tiles * params.batch) {
        return;
    }
    batch = at / tiles;
    let tile = at % tiles;
    let origin = vec2<u32>(tile / across, tile % across) * edge;
    let size = vec2<u32>(params.rows, params.cols);
    let along_k = vec2<u32>(params.along_k & 1u, params.along_k >> 1u);
    var sum = tile_product(origin, size, params.depth, along_k, lane);
    for (var i = 0u; i < 4u; i++) {
        let row = origin.x + lane / side * 4u + i;
        for (var j = 0u; j < 4u; j++) {
            let col = origin.y + lane % side * 4u + j;
            if (row < params.rows && col < params.cols) {
                let place = params.col_offset + col;
                var value = params.alpha * sum[i][j];
                if (params.beta != 0.0) {
                    value += params.beta * c[row * params.c_row + place * params.c_col];
                }
                y[batch * params.y_batch + row * params.y_row + place * params.y_col] = value;
            }
        }
    }
}
