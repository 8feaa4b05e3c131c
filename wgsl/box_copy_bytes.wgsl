//! lib: grid, live
// y = x at a window of y, for 1-byte elements. A thread owns a word of y, so bytes are never torn
// between threads: around the window it keeps y's bytes, or writes `filler`. An axis holds x's
// stride, the window's start and size, and y's size, innermost first.

struct Params {
    numel: u32,
    src: u32,
    filler: u32,
    live_word: u32,
    live_step: u32,
    axes: array<vec4<u32>, 12>,
}

override keep: bool = false;
override moves: bool = false;

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(10) var<uniform> params: Params;

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let w = linear_index(id, groups);
    if (w > (params.numel - 1u) / 4u) {
        return;
    }
    var start = params.src;
    if (moves) {
        start += u32(live[params.live_word]) * params.live_step;
    }
    let before = y[w];
    var word = 0u;
    for (var k = 0u; k < 4u; k++) {
        let i = 4u * w + k;
        if (i >= params.numel) {
            break;
        }
        var inside = true;
        var src = start;
        var rest = i;
        for (var n = 0u; n < 12u; n++) {
            let axis = params.axes[n];
            if (axis.w == 0u) {
                break;
            }
            let at = rest % axis.w - axis.y;
            inside = inside && at < axis.z;
            src += at * axis.x;
            rest /= axis.w;
        }
        var byte = params.filler;
        if (inside) {
            byte = x[src / 4u] >> (8u * (src % 4u));
        } else if (keep) {
            byte = before >> (8u * k);
        }
        word |= (byte & 0xffu) << (8u * k);
    }
    y[w] = word;
}
