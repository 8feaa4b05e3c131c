//! lib: grid, live, rope
// rope on adapters that run on the CPU: a thread takes 4 pairs of a token in every head of q and k,
// so that their cosines and sines are loaded once, or 4 elements past the rotary part, which are
// copied. `dim` is a multiple of 4 and `rotary` of 8.

alias Unit = vec4<f32>;

// Eight elements in two vec4: 4 pairs.
struct Eight {
    a: vec4<f32>,
    b: vec4<f32>,
}

fn neighbours() -> bool {
    return arrangement != HALVES && arrangement != LIVE_HALVES;
}

// The pairs' first elements and their second, from where they lie; and back.
fn parted(x: Eight) -> Eight {
    if (neighbours()) {
        return Eight(vec4(x.a.xz, x.b.xz), vec4(x.a.yw, x.b.yw));
    }
    return x;
}

fn joined(x: Eight) -> Eight {
    if (neighbours()) {
        return Eight(vec4(x.a.x, x.b.x, x.a.y, x.b.y), vec4(x.a.z, x.b.z, x.a.w, x.b.w));
    }
    return x;
}

fn turned(x: Eight, cosine: Eight, sine: Eight) -> Eight {
    let p = parted(x);
    return joined(Eight(p.a * cosine.a - p.b * sine.a, p.b * cosine.b + p.a * sine.b));
}

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let at = linear_index(id, groups);
    let quads = params.rotary / 8u;
    let dim = params.dim / 4u;
    let items = dim - quads;
    let row = at / items;
    if (row >= params.count) {
        return;
    }
    let i = at % items;
    let q_base = row * params.q_heads * dim;
    let k_base = row * params.k_heads * dim;
    if (i >= quads) {
        for (var h = 0u; h < params.q_heads; h++) {
            q_out[q_base + h * dim + quads + i] = q[q_base + h * dim + quads + i];
        }
        for (var h = 0u; h < params.k_heads; h++) {
            k_out[k_base + h * dim + quads + i] = k[k_base + h * dim + quads + i];
        }
        return;
    }
    let table = table_row(row % params.tokens);
    var cosine: Eight;
    var sine: Eight;
    if (arrangement == HALVES) {
        let place = table * 2u * quads + i;
        cosine = Eight(cosines[place], cosines[place + quads]);
        sine = Eight(sines[place], sines[place + quads]);
    } else if (arrangement == INTERLEAVED) {
        let place = 2u * (table * quads + i);
        let both = parted(Eight(cosines[place], cosines[place + 1u]));
        cosine = Eight(both.a, both.a);
        sine = Eight(both.b, both.b);
    } else {
        let place = table * quads + i;
        cosine = Eight(cosines[place], cosines[place]);
        sine = Eight(sines[place], sines[place]);
    }
    let first = select(i, 2u * i, neighbours());
    let second = select(i + quads, 2u * i + 1u, neighbours());
    for (var h = 0u; h < params.q_heads; h++) {
        let head = q_base + h * dim;
        let found = turned(Eight(q[head + first], q[head + second]), cosine, sine);
        q_out[head + first] = found.a;
        q_out[head + second] = found.b;
    }
    for (var h = 0u; h < params.k_heads; h++) {
        let head = k_base + h * dim;
        let found = turned(Eight(k[head + first], k[head + second]), cosine, sine);
        k_out[head + first] = found.a;
        k_out[head + second] = found.b;
    }
}
