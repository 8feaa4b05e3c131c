//! lib: grid, int8_pair
// Rows of x as pairs of int8, each row with a scale of its own. 32 numbers are 32 high bytes and
// then 32 low ones; rows end in zeros, at a multiple of 64. A workgroup takes a row.

struct Params {
    rows: u32,
    width: u32,
}

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> scaled: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> row_scales: array<f32>;
@group(0) @binding(10) var<uniform> params: Params;

var<workgroup> most: atomic<u32>;

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
    if (lane == 0u) {
        atomicStore(&most, 0u);
    }
    workgroupBarrier();
    let base = row * (params.width / 4u);
    var own = 0u;
    for (var i = lane; i < params.width / 4u; i += wg_size) {
        own = max(own, most_bits(x[base + i]));
    }
    atomicMax(&most, own);
    workgroupBarrier();
    let scales = pair_scales(atomicLoad(&most));
    let sixteens = (params.width + 63u) / 64u * 4u;
    for (var i = lane; i < sixteens; i += wg_size) {
        var high = vec4<u32>(0u);
        var low = vec4<u32>(0u);
        if (16u * i < params.width) {
            let a = pair_words(x[base + 4u * i] * scales.x);
            let b = pair_words(x[base + 4u * i + 1u] * scales.x);
            let c = pair_words(x[base + 4u * i + 2u] * scales.x);
            let d = pair_words(x[base + 4u * i + 3u] * scales.x);
            high = vec4<u32>(a.x, b.x, c.x, d.x);
            low = vec4<u32>(a.y, b.y, c.y, d.y);
        }
        let at = row * (2u * sixteens) + i / 2u * 4u + i % 2u;
        scaled[at] = high;
        scaled[at + 2u] = low;
    }
    if (lane == 0u) {
        row_scales[row] = scales.y;
    }
}
