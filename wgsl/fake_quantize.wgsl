//! lib: grid, int8
// y = (clamp(round(x / scale) + zero point, -128, 127) - zero point) * scale, row by row.

struct Params {
    numel: u32,
    width: u32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> scale: array<f32>;
@group(0) @binding(2) var<storage, read> zero_point: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(10) var<uniform> params: Params;

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_index(id, groups);
    if (i >= params.numel) {
        return;
    }
    let row = i / params.width;
    let s = scale[row];
    let z = f32(signed_byte(zero_point[row >> 2u], row));
    let steps = clamp(round(x[i] / s), -65536.0, 65536.0);
    y[i] = (clamp(steps + z, -128.0, 127.0) - z) * s;
}
