//! lib: grid, packed, packed_columns, gate, packed_linear
// Packed linear for few rows on adapters that run on the CPU: an invocation computes 4 sums alone,
// so that nothing is shared and there is no barrier. Rows of codes are whole vec4.

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;

fn x_quad(start: u32, j: u32) -> vec4<f32> {
    if (4u * j < chunk) {
        return x[start + j] * place();
    }
    return vec4<f32>(0.0);
}

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let per_lane = select(4u, 2u, gate != 0u);
    let across = (params.n + per_lane - 1u) / per_lane;
    let at = linear_index(id, groups);
    let row = at / across;
    if (row >= params.m) {
        return;
    }
    let col = at % across * per_lane;
    let r0 = row_of(col, 0u);
    let r1 = row_of(col, 1u);
    let r2 = row_of(col, 2u);
    let r3 = row_of(col, 3u);
    var sums = vec4<f32>(0.0);
    for (var k = 0u; k < params.k; k += chunk) {
        let start = (row * params.k + k) >> 2u;
        let xs = array<vec4<f32>, 8>(
            x_quad(start, 0u),
            x_quad(start, 1u),
            x_quad(start, 2u),
            x_quad(start, 3u),
            x_quad(start, 4u),
            x_quad(start, 5u),
            x_quad(start, 6u),
            x_quad(start, 7u),
        );
        let total = chunk_total(xs);
        sums += vec4<f32>(
            chunk_sum(code_chunk(r0, k), chunk_scales(r0, k), xs, total),
            chunk_sum(code_chunk(r1, k), chunk_scales(r1, k), xs, total),
            chunk_sum(code_chunk(r2, k), chunk_scales(r2, k), xs, total),
            chunk_sum(code_chunk(r3, k), chunk_scales(r3, k), xs, total),
        );
    }
    if (gate != 0u) {
        write_gated(row, col, sums.x, sums.z);
        write_gated(row, col + 1u, sums.y, sums.w);
        return;
    }
    write(row, col, sums.x);
    write(row, col + 1u, sums.y);
    write(row, col + 2u, sums.z);
    write(row, col + 3u, sums.w);
}
