//! lib: grid, live, strided, attention, attention_load, attention_heads
// Attention of one token over one stretch of the keys, as attention_split has it for any number of
// rows: a workgroup takes the query heads of a stream, so keys and values are read once for all of
// them, and one of `params.splits` stretches. 128 invocations: two a key for the scores, then
// one for each vec4 of the head in each of several groups of keys for the values.
// Loops of few turns are written out: browsers guard each with a counter, which compilers seem to
// keep, so that its loads wait for each other and what it indexes lies in memory.

override heads: u32 = 4u; // at most 8
override vectors: u32 = 16u; // vec4 of a head, a power of two from 2 to 64
// Named, since naga 29 panics where such an expression is an array's length.
override q_count: u32 = heads * vectors;
override score_count: u32 = heads * 128u;
override partial_count: u32 = heads * 64u;

override key_groups: u32 = 128u / vectors;

const TILE = 64u;
const LANES = 8u; // lanes of a head's softmax

@group(0) @binding(4) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> stats: array<vec2<f32>>;

var<workgroup> q_tile: array<vec4<f32>, q_count>;
var<workgroup> scores: array<f32, score_count>; // [half][head][key], then weights [head][key]
var<workgroup> lane_max: array<f32, 64>;
var<workgroup> lane_sum: array<f32, 64>;
var<workgroup> partial: array<vec4<f32>, partial_count>;

// Scores of a key so far and 4 vec4 of it, every other from `first` on, as far as there are.
fn four_dots(dots: Eight, key_base: u32, first: u32) -> Eight {
    let k0 = key4(key_base, 4u * first);
    let k1 = key4(key_base, 4u * min(first + 2u, vectors - 1u));
    let k2 = key4(key_base, 4u * min(first + 4u, vectors - 1u));
    let k3 = key4(key_base, 4u * min(first + 6u, vectors - 1u));
    var found = dots_onto(dots, first, k0);
    if (vectors >= 4u) {
        found = dots_onto(found, first + 2u, k1);
    }
    if (vectors >= 8u) {
        found = dots_onto(found, first + 4u, k2);
        found = dots_onto(found, first + 6u, k3);
    }
    return found;
}

// Values of 4 keys of a tile, every `key_groups`th from t on. Past the end weights are 0: the last
// value stands in.
fn four_values(sums: Sums, tile_base: u32, t: u32, last: u32, at: u32) -> Sums {
    let v0 = value4(tile_base + min(t, last) * params.kv_token, at);
    let v1 = value4(tile_base + min(t + key_groups, last) * params.kv_token, at);
    let v2 = value4(tile_base + min(t + 2u * key_groups, last) * params.kv_token, at);
    let v3 = value4(tile_base + min(t + 3u * key_groups, last) * params.kv_token, at);
    var found = sums_onto(sums, t, v0);
    if (vectors >= 4u) {
        found = sums_onto(found, t + key_groups, v1);
    }
    if (vectors >= 8u) {
        found = sums_onto(found, t + 2u * key_groups, v2);
        found = sums_onto(found, t + 3u * key_groups, v3);
    }
    return found;
}

// Score of key t of a tile that begins at key `tile`, for head `r`.
fn score_at(r: u32, t: u32, tile: u32, end: u32) -> f32 {
    let raw = scores[r * TILE + t] + scores[(heads + r) * TILE + t];
    return select(EXCLUDED, score(raw, r, tile + t, 0u), tile + t < end);
}

fn weight_of(value: f32, most: f32) -> f32 {
    return select(0.0, exp(value - most), value > EXCLUDED);
}

fn lane_maxima(i: u32) -> vec4<f32> {
    return vec4<f32>(lane_max[i], lane_max[i + 1u], lane_max[i + 2u], lane_max[i + 3u]);
}

fn lane_sums(i: u32) -> vec4<f32> {
    return vec4<f32>(lane_sum[i], lane_sum[i + 1u], lane_sum[i + 2u], lane_sum[i + 3u]);
}

fn largest(v: vec4<f32>) -> f32 {
    return max(max(v.x, v.y), max(v.z, v.w));
}

// Adds up the groups of keys, halving them.
fn halved(sums: Sums, step: u32, own_group: u32, at: u32) -> Sums {
    workgroupBarrier();
    if (own_group >= step && own_group < 2u * step) {
        leave((own_group - step) * vectors + at, sums);
    }
    workgroupBarrier();
    if (own_group < step) {
        return joined(own_group * vectors + at, sums);
    }
    return sums;
}

@compute @workgroup_size(128)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = group_index(group, groups);
    let split = index % params.splits;
    let stream = index / params.splits;
    if (stream >= params.streams) {
        return;
    }
    let keys = row_keys(0u);
    let stretch = up_div(up_div(keys.y - keys.x, TILE), params.splits) * TILE;
    let begin = keys.x + split * stretch;
    let end = min(begin + stretch, keys.y);
    if (begin >= end) {
        return;
    }
    if (lane < q_count) {
        q_tile[lane] = query4(row_base(stream, lane / vectors), 4u * (lane % vectors));
    }
    for (var i = lane + 128u; i < q_count; i += 128u) {
        q_tile[i] = query4(row_base(stream, i / vectors), 4u * (i % vectors));
    }
    let base = stream_base(stream);
    let half = lane & 1u;
    let at = lane % vectors;
    let own_group = lane / vectors;
    let softmax_head = lane / LANES;
    let softmax_lane = lane % LANES;
    // Of head softmax_head: the largest score so far, and the sum of exp(score - it).
    var most = EXCLUDED;
    var total = 0.0;
    var sums: Sums;

    for (var tile = begin; tile < end; tile += TILE) {
        workgroupBarrier();
        let key = tile + lane / 2u;
        var dots = Eight(vec4<f32>(), vec4<f32>());
        if (key < end) {
            let key_base = base + key * params.kv_token;
            dots = four_dots(dots, key_base, half);
            if (vectors >= 16u) {
                dots = four_dots(dots, key_base, half + 8u);
            }
            for (var v = 16u + half; v < vectors; v += 8u) {
                dots = four_dots(dots, key_base, v);
            }
        }
        store_scores(half * heads * TILE + lane / 2u, dots);
        workgroupBarrier();
        // The heads' softmax: 8 lanes a head, 8 keys a lane.
        var left = vec4<f32>(EXCLUDED);
        var right = vec4<f32>(EXCLUDED);
        if (softmax_head < heads) {
            left = vec4<f32>(
                score_at(softmax_head, softmax_lane, tile, end),
                score_at(softmax_head, softmax_lane + LANES, tile, end),
                score_at(softmax_head, softmax_lane + 2u * LANES, tile, end),
                score_at(softmax_head, softmax_lane + 3u * LANES, tile, end),
            );
            right = vec4<f32>(
                score_at(softmax_head, softmax_lane + 4u * LANES, tile, end),
                score_at(softmax_head, softmax_lane + 5u * LANES, tile, end),
                score_at(softmax_head, softmax_lane + 6u * LANES, tile, end),
                score_at(softmax_head, softmax_lane + 7u * LANES, tile, end),
            );
            lane_max[lane] = max(largest(left), largest(right));
        }
        workgroupBarrier();
        let before = most;
        if (softmax_head < heads) {
            let first = softmax_head * LANES;
            most = max(most, max(largest(lane_maxima(first)), largest(lane_maxima(first + 4u))));
            let to = softmax_head * TILE + softmax_lane;
            let a = vec4<f32>(
                weight_of(left.x, most),
                weight_of(left.y, most),
                weight_of(left.z, most),
                weight_of(left.w, most),
            );
            let b = vec4<f32>(
                weight_of(right.x, most),
                weight_of(right.y, most),
                weight_of(right.z, most),
                weight_of(right.w, most),
            );
            scores[to] = a.x;
            scores[to + LANES] = a.y;
            scores[to + 2u * LANES] = a.z;
            scores[to + 3u * LANES] = a.w;
            scores[to + 4u * LANES] = b.x;
            scores[to + 5u * LANES] = b.y;
            scores[to + 6u * LANES] = b.z;
            scores[to + 7u * LANES] = b.w;
            let both = a + b;
            total = total * exp(before - most) + (both.x + both.y) + (both.z + both.w);
            if (softmax_lane == 0u) {
                lane_sum[softmax_head] = exp(before - most);
            }
        }
        workgroupBarrier();
        sums = faded(sums);
        let last = min(TILE, end - tile) - 1u;
        let tile_base = base + tile * params.kv_token;
        sums = four_values(sums, tile_base, own_group, last, 4u * at);
        if (vectors >= 16u) {
            sums = four_values(sums, tile_base, own_group + 4u * key_groups, last, 4u * at);
        }
        for (var t = own_group + 8u * key_groups; t < TILE; t += 4u * key_groups) {
            sums = four_values(sums, tile_base, t, last, 4u * at);
        }
    }

    for (var step = key_groups / 2u; step > 0u; step /= 2u) {
        sums = halved(sums, step, own_group, at);
    }
    workgroupBarrier();
    if (softmax_head < heads) {
        lane_sum[lane] = total;
    }
    workgroupBarrier();
    if (own_group == 0u) {
        store_sums(stream, split, at, sums);
    }
    if (softmax_head < heads && softmax_lane == 0u) {
        let first = softmax_head * LANES;
        let all = lane_sums(first) + lane_sums(first + 4u);
        let row = stream * params.rows + softmax_head;
        stats[row * params.splits + split] = vec2(most, (all.x + all.y) + (all.z + all.w));
    }
}
