// What a thread of attention_tile does with 4 rows: where they are, what they see, and arithmetic.
// Fours are written out and not looped over: browsers guard loops with a counter, which compilers
// seem to keep; as loops over arrays all this took 1.15 times as long (H200).

// 4 rows by 4 keys or by a vec4 of the output; or any four vec4 of a thread.
struct Four {
    a: vec4<f32>,
    b: vec4<f32>,
    c: vec4<f32>,
    d: vec4<f32>,
}

fn largest(s: Four) -> vec4<f32> {
    return max(max(s.a, s.b), max(s.c, s.d));
}

fn total(s: Four) -> vec4<f32> {
    return (s.a + s.b) + (s.c + s.d);
}

// A multiply-add an element: dot() and an addition are one instruction more.
fn dot_onto(sum: f32, u: vec4<f32>, v: vec4<f32>) -> f32 {
    return sum + u.x * v.x + u.y * v.y + u.z * v.z + u.w * v.w;
}

fn dots_onto(sum: vec4<f32>, q: Four, k4: vec4<f32>) -> vec4<f32> {
    return vec4(
        dot_onto(sum.x, q.a, k4),
        dot_onto(sum.y, q.b, k4),
        dot_onto(sum.z, q.c, k4),
        dot_onto(sum.w, q.d, k4),
    );
}

fn faded(rows: Four, by: vec4<f32>) -> Four {
    return Four(rows.a * by.x, rows.b * by.y, rows.c * by.z, rows.d * by.w);
}

fn onto(rows: Four, w: vec4<f32>, v4: vec4<f32>) -> Four {
    return Four(rows.a + w.x * v4, rows.b + w.y * v4, rows.c + w.z * v4, rows.d + w.w * v4);
}

// 4 rows: where they lie in q, and the keys they see.
struct Rows {
    first: u32,
    q_base: vec4<u32>,
    seen_from: vec4<u32>,
    seen_to: vec4<u32>,
}

fn rows_from(stream: u32, first: u32, last_row: u32) -> Rows {
    let rows = min(vec4(first) + vec4(0u, 1u, 2u, 3u), vec4(last_row));
    let a = row_keys(rows.x);
    let b = row_keys(rows.y);
    let c = row_keys(rows.z);
    let d = row_keys(rows.w);
    let q_base = vec4(
        row_base(stream, rows.x),
        row_base(stream, rows.y),
        row_base(stream, rows.z),
        row_base(stream, rows.w),
    );
    return Rows(first, q_base, vec4(a.x, b.x, c.x, d.x), vec4(a.y, b.y, c.y, d.y));
}

fn query_quads(rows: Rows, d: u32) -> Four {
    return Four(
        query4(rows.q_base.x, d),
        query4(rows.q_base.y, d),
        query4(rows.q_base.z, d),
        query4(rows.q_base.w, d),
    );
}

// The running softmax of 4 rows.
struct Softmax {
    most: vec4<f32>,
    sum: vec4<f32>,
}

fn weight_of(s: vec4<f32>, most: vec4<f32>) -> vec4<f32> {
    return select(vec4<f32>(), exp(s - most), s > vec4(EXCLUDED));
}

// Where the keys of a tile are, and whether every row sees all of them.
struct Keys {
    first: u32, // a thread's
    end: u32,
    last_row: u32,
    mask_at: u32,
    open: bool,
}

// EXCLUDED where a row may not see the key.
fn row_score(s: f32, row: u32, seen_from: u32, seen_to: u32, key: u32, keys: Keys) -> f32 {
    if (keys.open || (key < keys.end && key >= seen_from && key < seen_to)) {
        return score(s, min(row, keys.last_row), key, keys.mask_at);
    }
    return EXCLUDED;
}

fn key_scores(s: vec4<f32>, rows: Rows, key: u32, keys: Keys) -> vec4<f32> {
    return vec4(
        row_score(s.x, rows.first, rows.seen_from.x, rows.seen_to.x, key, keys),
        row_score(s.y, rows.first + 1u, rows.seen_from.y, rows.seen_to.y, key, keys),
        row_score(s.z, rows.first + 2u, rows.seen_from.z, rows.seen_to.z, key, keys),
        row_score(s.w, rows.first + 3u, rows.seen_from.w, rows.seen_to.w, key, keys),
    );
}

fn scores(s: Four, rows: Rows, keys: Keys) -> Four {
    return Four(
        key_scores(s.a, rows, keys.first, keys),
        key_scores(s.b, rows, keys.first + 16u, keys),
        key_scores(s.c, rows, keys.first + 32u, keys),
        key_scores(s.d, rows, keys.first + 48u, keys),
    );
}
