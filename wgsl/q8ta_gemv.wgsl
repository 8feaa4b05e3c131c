//! lib: grid, int8, requant, int8_dot
// The same product for few rows, or for rows that don't fill words: a workgroup computes one word
// of four neighbouring results, and its lanes share the depth.

var<workgroup> sums: array<vec4<i32>, 256>;

@compute @workgroup_size(wg_size)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let numel = params.rows * params.cols;
    let first = group_index(group, groups) * 4u;
    if (first >= numel) {
        return;
    }
    let places = min(vec4<u32>(first) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(numel - 1u));
    let rows = places / params.cols;
    let cols = places % params.cols;
    var sum = vec4<i32>();
    for (var k = lane * 4u; k < params.depth; k += wg_size * 4u) {
        var v = x_bytes(rows.x, k);
        sum.x += dot(v, weight_bytes(cols.x, k));
        if (rows.w != rows.x) {
            sum.y += dot(x_bytes(rows.y, k), weight_bytes(cols.y, k));
            sum.z += dot(x_bytes(rows.z, k), weight_bytes(cols.z, k));
            v = x_bytes(rows.w, k);
        } else {
            sum.y += dot(v, weight_bytes(cols.y, k));
            sum.z += dot(v, weight_bytes(cols.z, k));
        }
        sum.w += dot(v, weight_bytes(cols.w, k));
    }
    sums[lane] = sum;
    workgroupBarrier();
    for (var half = wg_size / 2u; half > 0u; half /= 2u) {
        if (lane < half) {
            sums[lane] += sums[lane + half];
        }
        workgroupBarrier();
    }
    if (lane > 0u) {
        return;
    }
    let count = min(4u, numel - first);
    var codes = vec4<i32>();
    var columns = cols;
    for (var i = 0u; i < count; i++) {
        let value = scaled(sums[0][i], columns[i]);
        if (int8_result == 0u) {
            y[first + i] = bitcast<u32>(value);
        }
        codes[i] = requantized(value, params.inverse, params.output_zero_point);
    }
    if (int8_result != 0u) {
        y[first / 4u] = pack_signed_bytes(codes, count);
    }
}
