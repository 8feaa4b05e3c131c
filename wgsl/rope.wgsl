//! lib: grid, live, rope
// Rotary position embedding of q and of k in one dispatch: a thread for each pair to rotate, and for
// each element past the rotary part, which is copied.

alias Unit = f32;

struct Pair {
    at: vec2<u32>,
    cosine: vec2<f32>,
    sine: vec2<f32>,
}

// Pair i of a head's row, which begins at `base`.
fn pair_of(base: u32, token: u32, i: u32) -> Pair {
    let half = params.rotary / 2u;
    let row = table_row(token);
    if (arrangement == HALVES) {
        let at = row * params.rotary + i;
        return Pair(
            vec2(base + i, base + i + half),
            vec2(cosines[at], cosines[at + half]),
            vec2(sines[at], sines[at + half]),
        );
    }
    if (arrangement == INTERLEAVED) {
        let at = row * params.rotary + 2u * i;
        return Pair(vec2(base + 2u * i, base + 2u * i + 1u), vec2(cosines[at]), vec2(sines[at + 1u]));
    }
    let at = row * half + i;
    let place = select(vec2(2u * i, 2u * i + 1u), vec2(i, i + half), arrangement == LIVE_HALVES);
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
    let half = params.rotary / 2u;
    let items = half + params.dim - params.rotary;
    let q_items = params.count * params.q_heads * items;
    if (at >= q_items + params.count * params.k_heads * items) {
        return;
    }
    let is_q = at < q_items;
    at = select(at - q_items, at, is_q);
    let row = at / items;
    let i = at % items;
    let base = row * params.dim;
    if (i < half) {
        let token = row / select(params.k_heads, params.q_heads, is_q) % params.tokens;
        let pair = pair_of(base, token, i);
        if (is_q) {
            rotate_q(pair);
        } else {
            rotate_k(pair);
        }
        return;
    }
    let copied = base + params.rotary + i - half;
    if (is_q) {
        q_out[copied] = q[copied];
    } else {
        k_out[copied] = k[copied];
    }
}
