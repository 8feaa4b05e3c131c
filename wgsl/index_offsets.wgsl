//! lib: grid, axes, fault, wrapped
// offsets = step * index, added to what earlier dispatches left there where `adds` says so: the
// place in x that several index tensors select together. Axis strides: of the index tensor.

struct Params {
    count: u32,
    size: i32,
    step: u32,
    node: u32,
    axes: array<vec4<u32>, 12>,
}

override adds: bool = false;

@group(0) @binding(0) var<storage, read> index: array<i32>;
@group(0) @binding(1) var<storage, read_write> offsets: array<u32>;
@group(0) @binding(10) var<uniform> params: Params;

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_index(id, groups);
    if (i >= params.count) {
        return;
    }
    let at = axis_indices(i).x;
    var row = wrapped(index[at], params.size, true);
    if (row >= u32(params.size)) {
        raise_fault(params.node, at, u32(index[at]));
        row = 0u;
    }
    let before = offsets[i];
    offsets[i] = row * params.step + select(0u, before, adds);
}
