// Four elements of q, of a key and of a value; past `dim` they are 0.
override packed: u32 = 0u;
override masked: u32 = 0u;
override capped: u32 = 0u;

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> k: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> v: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> mask: array<f32>;

fn query4(base: u32, d: u32) -> vec4<f32> {
    if (whole != 0u) {
        return q[(base + d) >> 2u];
    }
    var found = vec4<f32>();
    for (var i = 0u; i < 4u && d + i < params.dim; i++) {
        let at = base + d + i;
        found[i] = q[at >> 2u][at & 3u];
    }
    return found;
}

fn halves(words: vec4<u32>, at: u32) -> vec4<f32> {
    let pair = select(words.xy, words.zw, (at & 4u) != 0u);
    return vec4(unpack2x16float(pair.x), unpack2x16float(pair.y));
}

fn half_of(word: u32, at: u32) -> f32 {
    let pair = unpack2x16float(word);
    return select(pair.x, pair.y, (at & 1u) != 0u);
}

fn key4(base: u32, d: u32) -> vec4<f32> {
    let first = base + d;
    if (whole != 0u) {
        if (packed != 0u) {
            return halves(k[first >> 3u], first);
        }
        return bitcast<vec4<f32>>(k[first >> 2u]);
    }
    var found = vec4<f32>();
    for (var i = 0u; i < 4u && d + i < params.dim; i++) {
        let at = first + i;
        if (packed != 0u) {
            found[i] = half_of(k[at >> 3u][(at >> 1u) & 3u], at);
        } else {
            found[i] = bitcast<f32>(k[at >> 2u][at & 3u]);
        }
    }
    return found;
}

fn value4(base: u32, d: u32) -> vec4<f32> {
    let first = base + d;
    if (whole != 0u) {
        if (packed != 0u) {
            return halves(v[first >> 3u], first);
        }
        return bitcast<vec4<f32>>(v[first >> 2u]);
    }
    var found = vec4<f32>();
    for (var i = 0u; i < 4u && d + i < params.dim; i++) {
        let at = first + i;
        if (packed != 0u) {
            found[i] = half_of(v[at >> 3u][(at >> 1u) & 3u], at);
        } else {
            found[i] = bitcast<f32>(v[at >> 2u][at & 3u]);
        }
    }
    return found;
}

// Where key 0 of a stream begins, in elements.
fn stream_base(stream: u32) -> u32 {
    return stream / params.kv_heads * params.kv_batch
        + stream % params.kv_heads * params.kv_head;
}

// Where the mask of a stream begins.
fn mask_base(stream: u32) -> u32 {
    if (masked == 0u) {
        return 0u;
    }
    return strided_index(stream, params.mask_dims, params.mask_strides);
}

// The score of a raw dot product: scaled, capped, masked, finite.
fn score(dot_product: f32, row: u32, key: u32, mask_at: u32) -> f32 {
    var found = dot_product * params.scale;
    if (capped != 0u) {
        // tanh by exponentials overflows for large arguments, and is 1 in float32 from 10 on.
        found = params.softcap * tanh(clamp(found / params.softcap, -15.0, 15.0));
    }
    if (masked != 0u) {
        let token = row / params.heads;
        found += mask[mask_at + token * params.mask_token + key * params.mask_key];
    }
    return max(found, MASKED);
}
