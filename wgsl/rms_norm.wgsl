//! lib: grid, reduce
// A workgroup normalizes one row; its lanes stride over the row, a vec4 each where rows are whole.

struct Params {
    rows: u32,
    width: u32,
    eps: f32,
}

override whole: bool = false;

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> weight: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(10) var<uniform> params: Params;

@compute @workgroup_size(wg_size)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = group_index(group, groups);
    if (row >= params.rows) {
        return;
    }
    let base = row * params.width;
    let vectors = params.width / 4u;
    // A lane's first vec4 stays in registers, and its weight is there when the sum is.
    var first = vec4<f32>(0.0);
    var first_weight = vec4<f32>(0.0);
    if (whole && lane < vectors) {
        first = x[base / 4u + lane];
        first_weight = weight[lane];
    }
    var squares = dot(first, first);
    if (whole) {
        for (var i = lane + wg_size; i < vectors; i += wg_size) {
            let v = x[base / 4u + i];
            squares += dot(v, v);
        }
    } else {
        for (var i = lane; i < params.width; i += wg_size) {
            let v = x[(base + i) / 4u][(base + i) % 4u];
            squares += v * v;
        }
    }
    let mean = workgroup_sum(lane, squares) / f32(params.width);
    let scale = inverseSqrt(mean + params.eps);
    if (whole) {
        if (lane < vectors) {
            y[base / 4u + lane] = first * scale * first_weight;
        }
        for (var i = lane + wg_size; i < vectors; i += wg_size) {
            y[base / 4u + i] = x[base / 4u + i] * scale * weight[i];
        }
        return;
    }
    for (var i = lane; i < params.width; i += wg_size) {
        let at = base + i;
        y[at / 4u][at % 4u] = x[at / 4u][at % 4u] * scale * weight[i / 4u][i % 4u];
    }
}
