//! lib: grid, live
// y = value everywhere, 16 bytes a thread; bytes of the last word past the content are 0. The
// value is `bits`, or a live integer: as int32 (`live_kind` 1), float32 (2), a byte (3), bool (4).

struct Params {
    words: u32,
    bits: u32,
    last_mask: u32,
    live_word: u32,
}

override live_kind: u32 = 0u;

@group(0) @binding(0) var<storage, read_write> y: array<vec4<u32>>;
@group(0) @binding(10) var<uniform> params: Params;

fn live_bits(value: i32) -> u32 {
    switch live_kind {
        case 1u: { return u32(value); }
        case 2u: { return bitcast<u32>(f32(value)); }
        case 3u: { return (u32(value) & 0xffu) * 0x01010101u; }
        default: { return select(0u, 0x01010101u, value != 0); }
    }
}

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_index(id, groups);
    if (4u * i >= params.words) {
        return;
    }
    var bits = params.bits;
    if (live_kind != 0u) {
        bits = live_bits(live[params.live_word]);
    }
    var four = vec4<u32>(bits);
    if (params.words - 4u * i <= 4u) {
        four[(params.words - 1u) % 4u] &= params.last_mask;
    }
    y[i] = four;
}
