//! lib: grid, axes, fault, wrapped
// y = x at places that an index tensor says, for 1-byte elements, a word of y a thread; see
// lib/take.wgsl.

struct Params {
    count: u32,
    size: i32,
    step: u32,
    node: u32,
    axes: array<vec4<u32>, 12>,
}

override wrap: bool = false;
override offsets: bool = false;

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> index: array<i32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;
@group(0) @binding(10) var<uniform> params: Params;

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let w = linear_index(id, groups);
    if (w > (params.count - 1u) / 4u) {
        return;
    }
    var word = 0u;
    for (var k = 0u; k < 4u && 4u * w + k < params.count; k++) {
        let at = axis_indices(4u * w + k);
        let value = index[at.y];
        var src = at.x + u32(value);
        if (!offsets) {
            let row = wrapped(value, params.size, wrap);
            if (row >= u32(params.size)) {
                raise_fault(params.node, at.y, u32(value));
                continue;
            }
            src = at.x + row * params.step;
        }
        word |= ((x[src / 4u] >> (8u * (src % 4u))) & 0xffu) << (8u * k);
    }
    y[w] = word;
}
