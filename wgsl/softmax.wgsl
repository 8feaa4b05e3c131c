//! lib: grid, nan
// Softmax along one dimension: a line of elements `inner` apart per group of lanes. Each lane keeps a
// running maximum and the sum of exponentials below it; lanes merge, then write.

struct Params {
    lines: u32,
    size: u32,
    inner: u32,
}

override logarithm: bool = false;
override lanes: u32 = 1u;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(10) var<uniform> params: Params;

var<workgroup> most: array<f32, wg_size>;
var<workgroup> sums: array<f32, wg_size>;

// The lowest number there is: masks are made of it.
const LOWEST: f32 = -0x1.fffffep+127f;

@compute @workgroup_size(wg_size)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let line = group_index(group, groups) * (wg_size / lanes) + local / lanes;
    let lane = local % lanes;
    let live = line < params.lines;
    let base = line / params.inner * params.size * params.inner + line % params.inner;
    // Constants that are no numbers do not compile.
    var infinity = 0x7f800000u;
    var nan = 0x7fc00000u;
    var m = LOWEST;
    var s = 0.0;
    if (live) {
        for (var i = lane; i < params.size; i += lanes) {
            let v = x[base + i * params.inner];
            // Neither max() nor exp() need know NaN: it counts as infinity, which loses the row, too.
            let higher = select(max(m, v), bitcast<f32>(infinity), is_nan(vec4<f32>(v)).x);
            s = s * exp(m - higher) + exp(v - higher);
            m = higher;
        }
    }
    most[local] = m;
    sums[local] = s;
    workgroupBarrier();
    for (var step = lanes / 2u; step > 0u; step /= 2u) {
        if (lane < step) {
            let a = most[local];
            let b = most[local + step];
            let higher = max(a, b);
            sums[local] = sums[local] * exp(a - higher) + sums[local + step] * exp(b - higher);
            most[local] = higher;
        }
        workgroupBarrier();
    }
    let first = local - lane;
    let total = sums[first];
    let top = most[first];
    // A row without a number above -inf, or with a NaN or infinity, has no softmax.
    let lost = total == 0.0 || bitcast<u32>(top) == infinity;
    let log_total = log(total);
    if (live) {
        for (var i = lane; i < params.size; i += lanes) {
            let v = x[base + i * params.inner] - top;
            let found = select(exp(v) / total, v - log_total, logarithm);
            y[base + i * params.inner] = select(found, bitcast<f32>(nan), lost);
        }
    }
}
