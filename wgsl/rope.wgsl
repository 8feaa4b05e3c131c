//! lib: grid, live
// Rotary position embedding of q and of k in one dispatch. A row has a pair to rotate or an element
// past the rotary part to copy for each item; a thread takes a span of items, one after the other.
// `arrangement` picks where a pair and its cos and sin lie.

struct Params {
    q_spans: u32,
    k_spans: u32,
    q_heads: u32,
    k_heads: u32,
    tokens: u32,
    dim: u32,
    rotary: u32,
    rows: u32,
    start: u32,
}

const PAIRS: u32 = 0u;  // (2i, 2i+1); tables [token, i]
const HALVES: u32 = 1u; // (i, i + rotary/2); tables [start + token, element]
const INTERLEAVED: u32 = 2u; // (2i, 2i+1); one table [token, element] of (cos, sin), bound twice
const LIVE_PAIRS: u32 = 3u;  // (2i, 2i+1); tables [start + token, i]
const LIVE_HALVES: u32 = 4u; // (i, i + rotary/2); tables [start + token, i]

override arrangement: u32 = 0u;
override span: u32 = 1u;

@group(0) @binding(0) var<storage, read> q: array<f32>;
@group(0) @binding(1) var<storage, read> k: array<f32>;
@group(0) @binding(2) var<storage, read> cosines: array<f32>;
@group(0) @binding(3) var<storage, read> sines: array<f32>;
@group(0) @binding(4) var<storage, read_write> q_out: array<f32>;
@group(0) @binding(5) var<storage, read_write> k_out: array<f32>;
@group(0) @binding(10) var<uniform> params: Params;

struct Pair {
    at: vec2<u32>,
    cosine: vec2<f32>,
    sine: vec2<f32>,
}

// Pair i of a head's row, which begins at `base`.
fn pair_of(base: u32, token: u32, i: u32) -> Pair {
    let half = params.rotary / 2u;
    if (arrangement == PAIRS) {
        let at = min(token, params.rows - 1u) * half + i;
        return Pair(vec2(base + 2u * i, base + 2u * i + 1u), vec2(cosines[at]), vec2(sines[at]));
    }
    if (arrangement == HALVES) {
        let table_row = min(u32(live[params.start]) + token, params.rows - 1u);
        let at = table_row * params.rotary + i;
        return Pair(
            vec2(base + i, base + i + half),
            vec2(cosines[at], cosines[at + half]),
            vec2(sines[at], sines[at + half]),
        );
    }
    if (arrangement == INTERLEAVED) {
        let at = min(token, params.rows - 1u) * params.rotary + 2u * i;
        return Pair(vec2(base + 2u * i, base + 2u * i + 1u), vec2(cosines[at]), vec2(sines[at + 1u]));
    }
    let at = min(u32(live[params.start]) + token, params.rows - 1u) * half + i;
    let place = select(vec2(i, i + half), vec2(2u * i, 2u * i + 1u), arrangement == LIVE_PAIRS);
    return Pair(base + place, vec2(cosines[at]), vec2(sines[at]));
}

fn rotate_q(p: Pair) {
    let x = vec2(q[p.at.x], q[p.at.y]);
    q_out[p.at.x] = x.x * p.cosine.x - x.y * p.sine.x;
    q_out[p.at.y] = x.y * p.cosine.y + x.x * p.sine.y;
}

fn rotate_k(p: Pair) {
    let x = vec2(k[p.at.x], k[p.at.y]);
    k_out[p.at.x] = x.x * p.cosine.x - x.y * p.sine.x;
    k_out[p.at.y] = x.y * p.cosine.y + x.x * p.sine.y;
}

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    var at = linear_index(id, groups);
    if (at >= params.q_spans + params.k_spans) {
        return;
    }
    let half = params.rotary / 2u;
    let items = half + params.dim - params.rotary;
    let spans = (items + span - 1u) / span;
    let is_q = at < params.q_spans;
    at = select(at - params.q_spans, at, is_q);
    let row = at / spans;
    let first = at % spans * span;
    let base = row * params.dim;
    let token = row / select(params.k_heads, params.q_heads, is_q) % params.tokens;
    for (var j = 0u; j < span && first + j < items; j++) {
        let i = first + j;
        let copied = base + params.rotary + i - half;
        if (i < half && is_q) {
            rotate_q(pair_of(base, token, i));
        } else if (i < half) {
            rotate_k(pair_of(base, token, i));
        } else if (is_q) {
            q_out[copied] = q[copied];
        } else {
            k_out[copied] = k[copied];
        }
    }
}
