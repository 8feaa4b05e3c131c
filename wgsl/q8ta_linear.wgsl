//! lib: grid, int8, requant, int8_dot
// Rows of x times rows of weight: a thread computes four rows by one word of four columns.

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let across = params.cols / 4u;
    let at = linear_index(id, groups);
    let row0 = at / across * 4u;
    let col0 = at % across * 4u;
    if (row0 >= params.rows) {
        return;
    }
    // Rows past the last repeat it: their sums are not stored.
    var rows = min(vec4<u32>(row0) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(params.rows - 1u));
    var sums: array<vec4<i32>, 4>;
    for (var k = 0u; k < params.depth; k += 4u) {
        let w0 = weight_bytes(col0, k);
        let w1 = weight_bytes(col0 + 1u, k);
        let w2 = weight_bytes(col0 + 2u, k);
        let w3 = weight_bytes(col0 + 3u, k);
        for (var i = 0u; i < 4u; i++) {
            let v = x_bytes(rows[i], k);
            sums[i] += vec4<i32>(dot(v, w0), dot(v, w1), dot(v, w2), dot(v, w3));
        }
    }
    for (var i = 0u; i < 4u && row0 + i < params.rows; i++) {
        var codes = vec4<i32>();
        for (var j = 0u; j < 4u; j++) {
            let value = scaled(sums[i][j], col0 + j);
            if (int8_result == 0u) {
                y[(row0 + i) * params.cols + col0 + j] = bitcast<u32>(value);
            }
            codes[j] = requantized(value, params.inverse, params.output_zero_point);
        }
        if (int8_result != 0u) {
            y[(row0 + i) * across + col0 / 4u] = pack_signed_bytes(codes, 4u);
        }
    }
}
