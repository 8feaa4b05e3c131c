// A number or a vec4 for each of up to 8 heads that read the same keys and values, in registers:
// what a variable indexes is in none. Needs attention_decode's tiles.

// A number for each head.
struct Eight {
    a: vec4<f32>,
    b: vec4<f32>,
}

// A vec4 for each head.
struct Sums {
    h0: vec4<f32>,
    h1: vec4<f32>,
    h2: vec4<f32>,
    h3: vec4<f32>,
    h4: vec4<f32>,
    h5: vec4<f32>,
    h6: vec4<f32>,
    h7: vec4<f32>,
}

// Scores of a key so far, and vec4 `at` of it.
fn dots_onto(dots: Eight, at: u32, k4: vec4<f32>) -> Eight {
    var found = dots;
    found.a.x += dot(q_tile[at], k4);
    if (heads > 1u) {
        found.a.y += dot(q_tile[1u * vectors + at], k4);
    }
    if (heads > 2u) {
        found.a.z += dot(q_tile[2u * vectors + at], k4);
    }
    if (heads > 3u) {
        found.a.w += dot(q_tile[3u * vectors + at], k4);
    }
    if (heads > 4u) {
        found.b.x += dot(q_tile[4u * vectors + at], k4);
    }
    if (heads > 5u) {
        found.b.y += dot(q_tile[5u * vectors + at], k4);
    }
    if (heads > 6u) {
        found.b.z += dot(q_tile[6u * vectors + at], k4);
    }
    if (heads > 7u) {
        found.b.w += dot(q_tile[7u * vectors + at], k4);
    }
    return found;
}

fn sums_onto(sums: Sums, t: u32, v4: vec4<f32>) -> Sums {
    var found = sums;
    found.h0 += scores[t] * v4;
    if (heads > 1u) {
        found.h1 += scores[1u * TILE + t] * v4;
    }
    if (heads > 2u) {
        found.h2 += scores[2u * TILE + t] * v4;
    }
    if (heads > 3u) {
        found.h3 += scores[3u * TILE + t] * v4;
    }
    if (heads > 4u) {
        found.h4 += scores[4u * TILE + t] * v4;
    }
    if (heads > 5u) {
        found.h5 += scores[5u * TILE + t] * v4;
    }
    if (heads > 6u) {
        found.h6 += scores[6u * TILE + t] * v4;
    }
    if (heads > 7u) {
        found.h7 += scores[7u * TILE + t] * v4;
    }
    return found;
}

fn store_scores(at: u32, dots: Eight) {
    scores[at] = dots.a.x;
    if (heads > 1u) {
        scores[1u * TILE + at] = dots.a.y;
    }
    if (heads > 2u) {
        scores[2u * TILE + at] = dots.a.z;
    }
    if (heads > 3u) {
        scores[3u * TILE + at] = dots.a.w;
    }
    if (heads > 4u) {
        scores[4u * TILE + at] = dots.b.x;
    }
    if (heads > 5u) {
        scores[5u * TILE + at] = dots.b.y;
    }
    if (heads > 6u) {
        scores[6u * TILE + at] = dots.b.z;
    }
    if (heads > 7u) {
        scores[7u * TILE + at] = dots.b.w;
    }
}

// What the values so far fade by.
fn faded(sums: Sums) -> Sums {
    var found = sums;
    found.h0 *= lane_sum[0];
    if (heads > 1u) {
        found.h1 *= lane_sum[1];
    }
    if (heads > 2u) {
        found.h2 *= lane_sum[2];
    }
    if (heads > 3u) {
        found.h3 *= lane_sum[3];
    }
    if (heads > 4u) {
        found.h4 *= lane_sum[4];
    }
    if (heads > 5u) {
        found.h5 *= lane_sum[5];
    }
    if (heads > 6u) {
        found.h6 *= lane_sum[6];
    }
    if (heads > 7u) {
        found.h7 *= lane_sum[7];
    }
    return found;
}

fn leave(at: u32, sums: Sums) {
    partial[at] = sums.h0;
    if (heads > 1u) {
        partial[64u + at] = sums.h1;
    }
    if (heads > 2u) {
        partial[128u + at] = sums.h2;
    }
    if (heads > 3u) {
        partial[192u + at] = sums.h3;
    }
    if (heads > 4u) {
        partial[256u + at] = sums.h4;
    }
    if (heads > 5u) {
        partial[320u + at] = sums.h5;
    }
    if (heads > 6u) {
        partial[384u + at] = sums.h6;
    }
    if (heads > 7u) {
        partial[448u + at] = sums.h7;
    }
}

fn joined(at: u32, sums: Sums) -> Sums {
    var found = sums;
    found.h0 += partial[at];
    if (heads > 1u) {
        found.h1 += partial[64u + at];
    }
    if (heads > 2u) {
        found.h2 += partial[128u + at];
    }
    if (heads > 3u) {
        found.h3 += partial[192u + at];
    }
    if (heads > 4u) {
        found.h4 += partial[256u + at];
    }
    if (heads > 5u) {
        found.h5 += partial[320u + at];
    }
    if (heads > 6u) {
        found.h6 += partial[384u + at];
    }
    if (heads > 7u) {
        found.h7 += partial[448u + at];
    }
    return found;
}

fn store_sums(stream: u32, split: u32, at: u32, sums: Sums) {
    let step = params.splits * vectors;
    let to = (stream * params.rows * params.splits + split) * vectors + at;
    y[to] = sums.h0;
    if (heads > 1u) {
        y[to + 1u * step] = sums.h1;
    }
    if (heads > 2u) {
        y[to + 2u * step] = sums.h2;
    }
    if (heads > 3u) {
        y[to + 3u * step] = sums.h3;
    }
    if (heads > 4u) {
        y[to + 4u * step] = sums.h4;
    }
    if (heads > 5u) {
        y[to + 5u * step] = sums.h5;
    }
    if (heads > 6u) {
        y[to + 6u * step] = sums.h6;
    }
    if (heads > 7u) {
        y[to + 7u * step] = sums.h7;
    }
}
