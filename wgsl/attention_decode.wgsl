//! lib: grid, live, strided, attention, attention_load
// Attention of one token over one stretch of the keys, as attention_split has it for any number of
// rows: a workgroup takes the query heads of a stream, so keys and values are read once for all of
// them, and one of `params.splits` stretches. 128 invocations: two a key for the scores, then
// one for each vec4 of the head in each of several groups of keys for the values.

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
    for (var i = lane; i < heads * vectors; i += 128u) {
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
    var sums = array<vec4<f32>, 8>();

    for (var tile = begin; tile < end; tile += TILE) {
        workgroupBarrier();
        let key = tile + lane / 2u;
        var dots = array<f32, 8>();
        if (key < end) {
            let key_base = base + key * params.kv_token;
            for (var i = 0u; i < vectors / 2u; i++) {
                let v = 2u * i + half;
                let k4 = key4(key_base, 4u * v);
                for (var r = 0u; r < heads; r++) {
                    dots[r] += dot(q_tile[r * vectors + v], k4);
                }
            }
        }
        for (var r = 0u; r < heads; r++) {
            scores[(half * heads + r) * TILE + lane / 2u] = dots[r];
        }
        workgroupBarrier();
        // The heads' softmax: 8 lanes a head, 8 keys a lane.
        var found = array<f32, 8>();
        var lane_most = EXCLUDED;
        if (softmax_head < heads) {
            for (var i = 0u; i < 8u; i++) {
                let t = softmax_lane + LANES * i;
                found[i] = EXCLUDED;
                if (tile + t < end) {
                    let raw = scores[softmax_head * TILE + t] + scores[(heads + softmax_head) * TILE + t];
                    found[i] = score(raw, softmax_head, tile + t, 0u);
                }
                lane_most = max(lane_most, found[i]);
            }
            lane_max[lane] = lane_most;
        }
        workgroupBarrier();
        let before = most;
        if (softmax_head < heads) {
            for (var i = 0u; i < LANES; i++) {
                most = max(most, lane_max[softmax_head * LANES + i]);
            }
            total *= exp(before - most);
            for (var i = 0u; i < 8u; i++) {
                let weight = select(0.0, exp(found[i] - most), found[i] > EXCLUDED);
                scores[softmax_head * TILE + softmax_lane + LANES * i] = weight;
                total += weight;
            }
            if (softmax_lane == 0u) {
                // What the values so far fade by.
                lane_sum[softmax_head] = exp(before - most);
            }
        }
        workgroupBarrier();
        for (var r = 0u; r < heads; r++) {
            sums[r] *= lane_sum[r];
        }
        let count = min(TILE, end - tile);
        for (var i = 0u; i < TILE / key_groups; i++) {
            let t = i * key_groups + own_group;
            // Past the end weights are 0: the last value stands in.
            let v4 = value4(base + (tile + min(t, count - 1u)) * params.kv_token, 4u * at);
            for (var r = 0u; r < heads; r++) {
                sums[r] += scores[r * TILE + t] * v4;
            }
        }
    }

    // Adds up the groups of keys, halving them.
    for (var step = key_groups / 2u; step > 0u; step /= 2u) {
        workgroupBarrier();
        if (own_group >= step && own_group < 2u * step) {
            for (var r = 0u; r < heads; r++) {
                partial[r * 64u + (own_group - step) * vectors + at] = sums[r];
            }
        }
        workgroupBarrier();
        if (own_group < step) {
            for (var r = 0u; r < heads; r++) {
                sums[r] += partial[r * 64u + own_group * vectors + at];
            }
        }
    }
    workgroupBarrier();
    if (softmax_head < heads) {
        lane_sum[lane] = total;
    }
    workgroupBarrier();
    if (own_group == 0u) {
        for (var r = 0u; r < heads; r++) {
            y[((stream * params.rows + r) * params.splits + split) * vectors + at] = sums[r];
        }
    }
    if (softmax_head < heads && softmax_lane == 0u) {
        var sum = 0.0;
        for (var i = 0u; i < LANES; i++) {
            sum += lane_sum[softmax_head * LANES + i];
        }
        stats[(stream * params.rows + softmax_head) * params.splits + split] = vec2(most, sum);
    }
}
