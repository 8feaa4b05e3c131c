// y = x at places that an index tensor says. Axes hold the strides of x, in units of `Unit`, and
// of the index tensor. An index selects one of `size` steps of x, of which this dispatch has
// `here` from `first` on; `offsets` says that the indices are checked offsets already, in elements; a Unit is `unit` of them.
struct Params {
    count: u32,
    size: i32,
    step: u32,
    first: u32,
    here: u32,
    node: u32,
    axes: array<vec4<u32>, 12>,
}

override wrap: bool = false;
override offsets: bool = false;
override unit: u32 = 1u;

@group(0) @binding(0) var<storage, read> x: array<Unit>;
@group(0) @binding(1) var<storage, read> index: array<i32>;
@group(0) @binding(2) var<storage, read_write> y: array<Unit>;
@group(0) @binding(10) var<uniform> params: Params;

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_index(id, groups);
    if (i >= params.count) {
        return;
    }
    let at = axis_indices(i);
    let value = index[at.y];
    if (offsets) {
        y[i] = x[at.x + u32(value) / unit];
        return;
    }
    let row = wrapped(value, params.size, wrap);
    if (row >= u32(params.size)) {
        raise_fault(params.node, at.y, u32(value));
        y[i] = Unit();
        return;
    }
    let local = row - params.first;
    if (local < params.here) {
        y[i] = x[at.x + local * params.step];
    }
}
