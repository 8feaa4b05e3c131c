//! lib: grid
// y[row] = (column + offset, line + offset) * stride of the cell `row` of a plane.

struct Params {
    numel: u32,
    width: u32,
    stride: f32,
    offset: f32,
}

@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@group(0) @binding(10) var<uniform> params: Params;

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let at = linear_index(id, groups);
    if (at >= params.numel) {
        return;
    }
    let row = at / 2u;
    let place = select(row / params.width, row % params.width, at % 2u == 0u);
    y[at] = (f32(place) + params.offset) * params.stride;
}
