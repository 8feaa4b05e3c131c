// d_x = d_out . dequantized weight; needs q4gsw_code, and tile or block.
struct Params {
    rows: u32,
    cols: u32,
    depth: u32,
    row_bytes: u32,
    group_size: u32,
    scale_step: u32,
}

@group(0) @binding(0) var<storage, read> d_out: array<f32>;
@group(0) @binding(1) var<storage, read> weight: array<u32>;
@group(0) @binding(2) var<storage, read> scales: array<f32>;
@group(0) @binding(3) var<storage, read_write> d_x: array<f32>;
@group(0) @binding(10) var<uniform> params: Params;

fn a_quad(row: u32, rows: u32, n: u32) -> vec4<f32> {
    var values = vec4<f32>();
    for (var i = 0u; i < 4u && row + i < rows; i++) {
        values[i] = d_out[(row + i) * params.depth + n];
    }
    return values;
}

fn b_quad(k: u32, cols: u32, n: u32) -> vec4<f32> {
    var values = vec4<f32>();
    for (var i = 0u; i < 4u && k + i < cols; i++) {
        values[i] = q4gsw_value(n, k + i);
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
    let at = group_index(group, groups);
    if (at >= across * ((params.rows + edge - 1u) / edge)) {
        return;
    }
    let origin = vec2<u32>(at / across, at % across) * edge;
    let size = vec2<u32>(params.rows, params.cols);
    var sum = tile_product(origin, size, params.depth, vec2<u32>(1u, 0u), lane);
    for (var i = 0u; i < 4u; i++) {
        let row = origin.x + lane / side * 4u + i;
        for (var j = 0u; j < 4u; j++) {
            let col = origin.y + lane % side * 4u + j;
            if (row < params.rows && col < params.cols) {
                d_x[row * params.cols + col] = sum[i][j];
            }
        }
    }
}
