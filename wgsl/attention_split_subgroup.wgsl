//! lib: grid, live, strided, attention, attention_load
enable subgroups;
// attention_split on adapters that run on the CPU: a quad takes 4 rows of a stream over one stretch of
// the keys, in registers. Loads are what takes the time there, so every invocation loads elements of
// its own: for the scores a quarter of the head of 8 keys, for the values a vec4 of each key.
// `dim` is a multiple of 16.

override direct: u32 = 0u;

const ROWS: u32 = 4u;
const TILE: u32 = 64u;

@group(0) @binding(4) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> stats: array<vec2<f32>>;

// Scores, then weights, of a key; an element a row.
var<workgroup> weights: array<vec4<f32>, TILE>;

fn quad_max(v: vec4<f32>) -> vec4<f32> {
    let most = max(v, quadSwapX(v));
    return max(most, quadSwapY(most));
}

fn quad_sum(v: vec4<f32>) -> vec4<f32> {
    let sum = v + quadSwapX(v);
    return sum + quadSwapY(sum);
}

fn dot_onto(sum: f32, u: vec4<f32>, v: vec4<f32>) -> f32 {
    return sum + u.x * v.x + u.y * v.y + u.z * v.z + u.w * v.w;
}

// Keys [first, end) of each row.
struct Seen {
    a: vec2<u32>,
    b: vec2<u32>,
    c: vec2<u32>,
    d: vec2<u32>,
}

// The scores of a key, by row; none past the last.
fn key_scores(
    dots: vec4<f32>,
    rows: vec4<u32>,
    seen: Seen,
    key_: u32,
    last: u32,
    mask_at: u32,
) -> vec4<f32> {
    let key = min(key_, last);
    let found = vec4<f32>(
        score(dots.x, rows.x, key, mask_at),
        score(dots.y, rows.y, key, mask_at),
        score(dots.z, rows.z, key, mask_at),
        score(dots.w, rows.w, key, mask_at),
    );
    let at = vec4<u32>(key);
    let first = vec4<u32>(seen.a.x, seen.b.x, seen.c.x, seen.d.x);
    let end = vec4<u32>(seen.a.y, seen.b.y, seen.c.y, seen.d.y);
    let sees = (at >= first) & (at < end) & vec4<bool>(key == key_);
    return select(vec4<f32>(EXCLUDED), found, sees);
}

struct Rows {
    a: vec4<f32>,
    b: vec4<f32>,
    c: vec4<f32>,
    d: vec4<f32>,
}

// What a key adds to its products with the rows.
fn scores_onto(sum: vec4<f32>, q: Rows, k4: vec4<f32>) -> vec4<f32> {
    return vec4<f32>(
        dot_onto(sum.x, q.a, k4),
        dot_onto(sum.y, q.b, k4),
        dot_onto(sum.z, q.c, k4),
        dot_onto(sum.w, q.d, k4),
    );
}

fn values_onto(s: Rows, w: vec4<f32>, v4: vec4<f32>) -> Rows {
    return Rows(s.a + w.x * v4, s.b + w.y * v4, s.c + w.z * v4, s.d + w.w * v4);
}

// An invocation's own of 4.
fn own(lane: u32, a: vec4<f32>, b: vec4<f32>, c: vec4<f32>, d: vec4<f32>) -> vec4<f32> {
    return select(select(a, b, lane == 1u), select(c, d, lane == 3u), lane >= 2u);
}

// Where the output of a row begins.
fn out_base(stream: u32, row: u32, split: u32) -> u32 {
    if (direct != 0u) {
        return row_base(stream, row);
    }
    return ((stream * params.rows + row) * params.splits + split) * params.dim;
}

@compute @workgroup_size(wg_size)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(subgroup_invocation_id) invocation: u32,
) {
    let lane = invocation & 3u;
    let index = group_index(group, groups);
    let blocks = up_div(params.rows, ROWS);
    let split = index % params.splits;
    let first_row = (index / params.splits) % blocks * ROWS;
    let stream = index / params.splits / blocks;
    if (stream >= params.streams) {
        return;
    }
    let last_row = min(first_row + ROWS, params.rows) - 1u;
    let keys = rows_keys(first_row, last_row);
    let stretch = up_div(up_div(keys.y - keys.x, TILE), params.splits) * TILE;
    let begin = keys.x + split * stretch;
    let end = min(begin + stretch, keys.y);
    if (begin >= end) {
        return;
    }
    // Past the last row it is computed again.
    let rows = min(vec4<u32>(first_row) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(last_row));
    let q_at = vec4<u32>(
        row_base(stream, rows.x),
        row_base(stream, rows.y),
        row_base(stream, rows.z),
        row_base(stream, rows.w),
    );
    let y_at = vec4<u32>(
        out_base(stream, rows.x, split),
        out_base(stream, rows.y, split),
        out_base(stream, rows.z, split),
        out_base(stream, rows.w, split),
    );
    let seen = Seen(row_keys(rows.x), row_keys(rows.y), row_keys(rows.z), row_keys(rows.w));
    let base = stream_base(stream);
    let mask_at = mask_base(stream);
    var row_max = vec4<f32>(EXCLUDED);
    var row_sum = vec4<f32>();
    for (var tile = begin; tile < end; tile += TILE) {
        let count = min(TILE, end - tile);
        let last = tile + count - 1u;
        var own_max = row_max;
        for (var t = 0u; t < count; t += 8u) {
            let key = tile + t;
            let k0 = base + key * params.kv_token;
            let k1 = base + min(key + 1u, last) * params.kv_token;
            let k2 = base + min(key + 2u, last) * params.kv_token;
            let k3 = base + min(key + 3u, last) * params.kv_token;
            let k4 = base + min(key + 4u, last) * params.kv_token;
            let k5 = base + min(key + 5u, last) * params.kv_token;
            let k6 = base + min(key + 6u, last) * params.kv_token;
            let k7 = base + min(key + 7u, last) * params.kv_token;
            var s0 = vec4<f32>();
            var s1 = vec4<f32>();
            var s2 = vec4<f32>();
            var s3 = vec4<f32>();
            var s4 = vec4<f32>();
            var s5 = vec4<f32>();
            var s6 = vec4<f32>();
            var s7 = vec4<f32>();
            for (var d0 = 0u; d0 < params.dim; d0 += 16u) {
                let d = d0 + 4u * lane;
                let q4 = Rows(query4(q_at.x, d), query4(q_at.y, d), query4(q_at.z, d), query4(q_at.w, d));
                s0 = scores_onto(s0, q4, key4(k0, d));
                s1 = scores_onto(s1, q4, key4(k1, d));
                s2 = scores_onto(s2, q4, key4(k2, d));
                s3 = scores_onto(s3, q4, key4(k3, d));
                s4 = scores_onto(s4, q4, key4(k4, d));
                s5 = scores_onto(s5, q4, key4(k5, d));
                s6 = scores_onto(s6, q4, key4(k6, d));
                s7 = scores_onto(s7, q4, key4(k7, d));
            }
            let low = own(lane, quad_sum(s0), quad_sum(s1), quad_sum(s2), quad_sum(s3));
            let high = own(lane, quad_sum(s4), quad_sum(s5), quad_sum(s6), quad_sum(s7));
            let low_scores = key_scores(low, rows, seen, key + lane, last, mask_at);
            let high_scores = key_scores(high, rows, seen, key + 4u + lane, last, mask_at);
            weights[t + lane] = low_scores;
            weights[t + 4u + lane] = high_scores;
            own_max = max(own_max, max(low_scores, high_scores));
        }
        // An invocation's own scores: no barrier yet.
        let next_max = quad_max(own_max);
        let fade = exp(row_max - next_max);
        var own_sum = vec4<f32>();
        for (var t = 0u; t < count; t += 4u) {
            let s = weights[t + lane];
            let w = select(vec4<f32>(), exp(s - next_max), s > vec4<f32>(EXCLUDED));
            weights[t + lane] = w;
            own_sum += w;
        }
        row_max = next_max;
        row_sum = row_sum * fade + quad_sum(own_sum);
        workgroupBarrier();
        var scale = vec4<f32>(1.0);
        if (direct != 0u && tile + TILE >= end) {
            scale = select(vec4<f32>(), 1.0 / row_sum, row_sum > vec4<f32>());
        }
        for (var d0 = 0u; d0 < params.dim; d0 += 16u) {
            let d = d0 + 4u * lane;
            let to = (y_at + d) >> vec4<u32>(2u);
            // Zeroed by hand: SwiftShader keeps what a bare declaration had the last time round.
            var sums = Rows(vec4<f32>(), vec4<f32>(), vec4<f32>(), vec4<f32>());
            if (tile > begin) {
                sums = Rows(y[to.x] * fade.x, y[to.y] * fade.y, y[to.z] * fade.z, y[to.w] * fade.w);
            }
            for (var t = 0u; t < count; t += 4u) {
                let key = tile + t;
                let w = weights[t + lane];
                let v0 = value4(base + key * params.kv_token, d);
                let v1 = value4(base + min(key + 1u, last) * params.kv_token, d);
                let v2 = value4(base + min(key + 2u, last) * params.kv_token, d);
                let v3 = value4(base + min(key + 3u, last) * params.kv_token, d);
                sums = values_onto(sums, quadBroadcast(w, 0u), v0);
                sums = values_onto(sums, quadBroadcast(w, 1u), v1);
                sums = values_onto(sums, quadBroadcast(w, 2u), v2);
                sums = values_onto(sums, quadBroadcast(w, 3u), v3);
            }
            y[to.x] = sums.a * scale.x;
            y[to.y] = sums.b * scale.y;
            y[to.z] = sums.c * scale.z;
            y[to.w] = sums.d * scale.w;
        }
        workgroupBarrier();
    }
    if (direct == 0u && lane == 0u) {
        let first = (stream * params.rows) * params.splits + split;
        stats[first + rows.x * params.splits] = vec2<f32>(row_max.x, row_sum.x);
        stats[first + rows.y * params.splits] = vec2<f32>(row_max.y, row_sum.y);
        stats[first + rows.z * params.splits] = vec2<f32>(row_max.z, row_sum.z);
        stats[first + rows.w * params.splits] = vec2<f32>(row_max.w, row_sum.w);
    }
}
