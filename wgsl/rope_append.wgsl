//! lib: grid, live, reduce
// New queries, keys and values of one projection: queries are rotated, keys are rotated and written
// to their cache with the values, at the live position. A workgroup has a head of a token. Heads of
// queries and keys may be normalized first. `packed` caches hold two float16 a word, a head's last
// word padded. The rotation's table has a row a position: cosine and sine of each pair.

struct Params {
    tokens: u32,
    q_heads: u32,
    kv_heads: u32,
    dim: u32,
    rotary: u32,
    capacity: u32,
    position: u32,
    eps: f32,
}

override packed: bool = false;
override interleaved: bool = false; // pairs are neighbours, else half of `rotary` apart
override has_norm: bool = false;

@group(0) @binding(0) var<storage, read> qkv: array<f32>;
@group(0) @binding(1) var<storage, read> rotation: array<vec2<f32>>;
@group(0) @binding(2) var<storage, read> q_norm: array<f32>;
@group(0) @binding(3) var<storage, read> k_norm: array<f32>;
@group(0) @binding(4) var<storage, read_write> q_out: array<f32>;
@group(0) @binding(5) var<storage, read_write> k_cache: array<u32>;
@group(0) @binding(6) var<storage, read_write> v_cache: array<u32>;
@group(0) @binding(10) var<uniform> params: Params;

const QUERY = 0u;
const KEY = 1u;
const VALUE = 2u;

struct Head {
    kind: u32,
    base: u32,
    scale: f32,
}

fn element(head: Head, d: u32) -> f32 {
    let x = qkv[head.base + d] * head.scale;
    if (!has_norm || head.kind == VALUE) {
        return x;
    }
    if (head.kind == QUERY) {
        return x * q_norm[d];
    }
    return x * k_norm[d];
}

fn turned(head: Head, d: u32, position: u32) -> f32 {
    if (d >= params.dim) {
        return 0.0;
    }
    let x = element(head, d);
    if (head.kind == VALUE || d >= params.rotary) {
        return x;
    }
    let half = params.rotary / 2u;
    var pair = d % half;
    var other = d + half;
    var first = d < half;
    if (interleaved) {
        pair = d / 2u;
        other = d ^ 1u;
        first = (d & 1u) == 0u;
    } else if (!first) {
        other = d - half;
    }
    let turn = rotation[position * half + pair];
    return x * turn.x + element(head, other) * select(turn.y, -turn.y, first);
}

// The largest float16; beyond it pack2x16float's result is indeterminate.
fn fit(x: f32) -> f32 {
    return clamp(x, -65504.0, 65504.0);
}

fn cache_word(head: Head, word: u32, position: u32) -> u32 {
    if (packed) {
        let low = turned(head, 2u * word, position);
        let high = turned(head, 2u * word + 1u, position);
        return pack2x16float(vec2(fit(low), fit(high)));
    }
    return bitcast<u32>(turned(head, word, position));
}

@compute @workgroup_size(wg_size)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let heads = params.q_heads + 2u * params.kv_heads;
    let index = group_index(group, groups);
    let token = index / heads;
    if (token >= params.tokens) {
        return;
    }
    let h = index % heads;
    let kind = select(select(VALUE, KEY, h < params.q_heads + params.kv_heads), QUERY, h < params.q_heads);
    var head = Head(kind, index * params.dim, 1.0);
    if (has_norm) {
        var squares = 0.0;
        for (var d = lane; d < params.dim; d += wg_size) {
            let x = qkv[head.base + d];
            squares += x * x;
        }
        let mean = workgroup_sum(lane, squares) / f32(params.dim);
        head.scale = select(inverseSqrt(mean + params.eps), 1.0, kind == VALUE);
    }
    let position = u32(live[params.position]) + token;
    if (kind == QUERY) {
        let to = (token * params.q_heads + h) * params.dim;
        for (var d = lane; d < params.dim; d += wg_size) {
            q_out[to + d] = turned(head, d, position);
        }
        return;
    }
    if (position >= params.capacity) {
        return;
    }
    let words = select(params.dim, (params.dim + 1u) / 2u, packed);
    let kv = (h - params.q_heads) % params.kv_heads;
    let to = (position * params.kv_heads + kv) * words;
    for (var w = lane; w < words; w += wg_size) {
        let word = cache_word(head, w, position);
        if (kind == KEY) {
            k_cache[to + w] = word;
        } else {
            v_cache[to + w] = word;
        }
    }
}
