// How tiles of x and of packed weights come into packed_gemm_int8's workgroup memory as pairs of
// int8. Needs its `tile` and the sizes of it.

struct Ahead {
    x0: vec4<u32>,
    x1: vec4<u32>,
    w0: vec4<u32>,
    w1: vec4<u32>,
    s0: vec2<f32>,
    s1: vec2<f32>,
}

// Rows of x are whole vec4 up to a multiple of 64 elements.
fn x_vector(at: u32, first_row: u32, k0: u32) -> vec4<u32> {
    let row = min(first_row + at / vectors, params.m - 1u);
    let all = (params.k + 63u) / 64u * 8u;
    return x[row * all + min(k0 / 8u, all - vectors) + at % vectors];
}

// Past the end of a row its numbers are zeros.
fn w_scale(row: u32, k: u32) -> vec2<f32> {
    return select(vec2<f32>(0.0), scale_of(row, min(k, params.k - 1u)), k < params.k);
}

// An invocation's share: up to 2 vec4 of x, and 16 or 32 elements of a row of w.
fn fetch(thread: u32, first_row: u32, w_row: u32, k0: u32) -> Ahead {
    var next: Ahead;
    if (rows >= 32u || thread < 128u) {
        next.x0 = x_vector(thread, first_row, k0);
    }
    if (rows >= 64u) {
        next.x1 = x_vector(thread + 256u, first_row, k0);
    }
    let k = k0 + depth / 2u * (thread & 1u);
    next.w0 = fetch_w(w_row, k);
    next.s0 = w_scale(w_row, k);
    if (depth == 64u) {
        if (chunk == 16u) {
            next.w1 = fetch_w(w_row, k + 16u);
        }
        next.s1 = w_scale(w_row, k + 16u);
    }
    return next;
}

fn store_x(at: u32, vector: vec4<u32>) {
    tile[at / vectors * stride + at % vectors] = vector;
}

// Quad j of 16 bytes of codes as pairs; `s` scales to them.
fn w_pairs(words: vec4<u32>, j: u32, s: vec2<f32>) -> vec2<u32> {
    let v = quad(words, j) * (place() * s.x);
    if (has_minima()) {
        return pair_words(v + s.y);
    }
    return pair_words(v);
}

// Of 16 elements the high bytes, and 2 vec4 behind them the low ones.
fn store_pairs(at: u32, words: vec4<u32>, s: vec2<f32>) {
    let a = w_pairs(words, 0u, s);
    let b = w_pairs(words, 1u, s);
    let c = w_pairs(words, 2u, s);
    let d = w_pairs(words, 3u, s);
    tile[at] = vec4<u32>(a.x, b.x, c.x, d.x);
    tile[at + 2u] = vec4<u32>(a.y, b.y, c.y, d.y);
}

fn store_w(thread: u32, next: Ahead, down_scale: f32) {
    let at = (rows + thread / 2u) * stride;
    let odd = thread & 1u;
    if (depth == 64u) {
        store_pairs(at + 4u * odd, next.w0, next.s0 * down_scale);
        let second = select(next.w0.zwzw, next.w1, chunk == 16u);
        store_pairs(at + 4u * odd + 1u, second, next.s1 * down_scale);
    } else {
        let half = select(next.w0, next.w0.zwzw, chunk == 32u && odd == 1u);
        store_pairs(at + odd, half, next.s0 * down_scale);
    }
}

// The size of the largest number that codes times this scale, plus its minimum, can be.
fn reach(s: vec2<f32>) -> u32 {
    if (code_kind == 2u) {
        return size_bits(128.0 * abs(s.x) + abs(s.y));
    }
    return max(size_bits((0.0 - zero) * s.x + s.y), size_bits((15.0 - zero) * s.x + s.y));
}

// The same at element k of a row, or at the last before `end`.
fn reach_at(row: u32, k: u32, end: u32) -> u32 {
    return reach(scale_of(row, min(k, end - 1u)));
}
