// y[dst] = x[src] over a box of elements: axes hold the strides of src and dst, in units of
// `Unit`, which the kernel says. `live_word` names a live integer that moves src by `live_step`.
struct Params {
    count: u32,
    src: u32,
    dst: u32,
    live_word: u32,
    live_step: u32,
    axes: array<vec4<u32>, 12>,
}

override moves: bool = false;

@group(0) @binding(0) var<storage, read> x: array<Unit>;
@group(0) @binding(1) var<storage, read_write> y: array<Unit>;
@group(0) @binding(10) var<uniform> params: Params;

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_index(id, groups);
    if (i >= params.count) {
        return;
    }
    let at = axis_indices(i);
    var src = params.src + at.x;
    if (moves) {
        src += u32(live[params.live_word]) * params.live_step;
    }
    y[params.dst + at.y] = x[src];
}
