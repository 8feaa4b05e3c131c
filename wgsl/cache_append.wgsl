//! lib: grid, live
// Writes new keys and values into their caches at the live position; a thread writes one word of
// one of them. `packed` caches hold two float16 a word, a head's last word padded. With one tensor,
// the second cache is a placeholder of `zeros` words that is cleared.

struct Params {
    words: u32,
    tensors: u32,
    zeros: u32,
    tokens: u32,
    heads: u32,
    dim: u32,
    capacity: u32,
    position: u32,
}

override packed: u32 = 0u;

@group(0) @binding(0) var<storage, read> k: array<f32>;
@group(0) @binding(1) var<storage, read> v: array<f32>;
@group(0) @binding(2) var<storage, read_write> k_cache: array<u32>;
@group(0) @binding(3) var<storage, read_write> v_cache: array<u32>;
@group(0) @binding(10) var<uniform> params: Params;

fn element(is_v: bool, at: u32) -> f32 {
    if (is_v) {
        return v[at];
    }
    return k[at];
}

// The largest float16; beyond it pack2x16float's result is indeterminate.
fn fit(x: f32) -> f32 {
    return clamp(x, -65504.0, 65504.0);
}

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let item = linear_index(id, groups);
    if (item >= params.words * params.tensors) {
        let at = item - params.words * params.tensors;
        if (at < params.zeros) {
            v_cache[at] = 0u;
        }
        return;
    }
    let is_v = item >= params.words;
    let at = item % params.words;
    let head_words = select(params.dim, (params.dim + 1u) / 2u, packed != 0u);
    let row_words = params.heads * head_words;
    let row = at / row_words;
    let position = u32(live[params.position]) + row % params.tokens;
    if (position >= params.capacity) {
        return;
    }
    let to = (row / params.tokens * params.capacity + position) * row_words + at % row_words;
    var word: u32;
    if (packed != 0u) {
        let d = 2u * (at % head_words);
        let source = at / head_words * params.dim + d;
        var pair = vec2(fit(element(is_v, source)), 0.0);
        if (d + 1u < params.dim) {
            pair.y = fit(element(is_v, source + 1u));
        }
        word = pack2x16float(pair);
    } else {
        word = bitcast<u32>(element(is_v, at));
    }
    if (is_v) {
        v_cache[to] = word;
    } else {
        k_cache[to] = word;
    }
}
