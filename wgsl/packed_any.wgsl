//! lib: grid, packed, gate, packed_linear
// Packed linear for shapes that are no whole vectors: any K, any group, an element at a time.
// Each invocation owns one column of up to 4 rows.

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;

fn x_at(row: u32, k: u32) -> f32 {
    let i = min(row, params.m - 1u) * params.k + k;
    return x[i >> 2u][i & 3u];
}

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let at = linear_index(id, groups);
    let row = at / params.n * 4u;
    let col = at % params.n;
    if (row >= params.m) {
        return;
    }
    var sum = vec4<f32>(0.0);
    for (var start = 0u; start < params.k; start += group) {
        let end = min(start + group, params.k);
        var part = vec4<f32>(0.0);
        var total = vec4<f32>(0.0);
        for (var k = start; k < end; k++) {
            let v = vec4<f32>(x_at(row, k), x_at(row + 1u, k), x_at(row + 2u, k), x_at(row + 3u, k));
            part += v * element(col, k);
            total += v;
        }
        let s = scale_of(col, start);
        sum += part * s.x + total * s.y;
    }
    write(row, col, sum.x);
    write(row + 1u, col, sum.y);
    write(row + 2u, col, sum.z);
    write(row + 3u, col, sum.w);
}
