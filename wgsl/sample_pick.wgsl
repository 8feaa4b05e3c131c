//! lib: grid, live
// One workgroup picks the token: the largest adjusted logit at temperature 0, else a Gumbel
// draw among those that top-k, top-p and min-p leave. Thresholds are found by bisection over the
// logits' order-preserving bit patterns, so nothing is sorted.

struct Params {
    vocab: u32,
    groups: u32,
    position: u32,
}

@group(0) @binding(0) var<storage, read> adjusted: array<f32>;
@group(0) @binding(1) var<storage, read> partials: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> settings: array<u32>;
@group(0) @binding(3) var<storage, read> logits: array<f32>;
@group(0) @binding(4) var<storage, read_write> counts: array<i32>;
@group(0) @binding(5) var<storage, read_write> token_out: array<u32>;
@group(0) @binding(6) var<storage, read_write> logprob: array<f32>;
@group(0) @binding(10) var<uniform> params: Params;

// The lowest number there is: masks are made of it.
const LOWEST = -0x1.fffffep+127f;

var<workgroup> found: array<vec4<f32>, wg_size>;
var<workgroup> sums: array<f32, wg_size>;

fn setting(i: u32) -> f32 {
    return bitcast<f32>(settings[i]);
}

fn merged(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
    var best = a.xy;
    if (b.x > a.x || (b.x == a.x && b.y < a.y)) {
        best = b.xy;
    }
    let most = max(a.z, b.z);
    return vec4(best, most, a.w * exp(a.z - most) + b.w * exp(b.z - most));
}

fn reduce_found(lane: u32) -> vec4<f32> {
    workgroupBarrier();
    for (var step = wg_size / 2u; step > 0u; step /= 2u) {
        if (lane < step) {
            found[lane] = merged(found[lane], found[lane + step]);
        }
        workgroupBarrier();
    }
    return workgroupUniformLoad(&found[0]);
}

fn reduce_sum(lane: u32, value: f32) -> f32 {
    workgroupBarrier();
    sums[lane] = value;
    workgroupBarrier();
    for (var step = wg_size / 2u; step > 0u; step /= 2u) {
        if (lane < step) {
            sums[lane] += sums[lane + step];
        }
        workgroupBarrier();
    }
    return workgroupUniformLoad(&sums[0]);
}

// Unsigned keys in the order of the floats.
fn key_of(x: f32) -> u32 {
    let bits = bitcast<u32>(x);
    return select(bits | 0x80000000u, ~bits, (bits & 0x80000000u) != 0u);
}

fn pcg(x: u32) -> u32 {
    let state = x * 747796405u + 2891336453u;
    let word = ((state >> ((state >> 28u) + 4u)) ^ state) * 277803737u;
    return (word >> 22u) ^ word;
}

fn gumbel(i: u32) -> f32 {
    let bits = pcg(i ^ pcg(u32(live[params.position]) ^ pcg(settings[7])));
    let u = (f32(bits >> 8u) + 0.5) / 16777216.0;
    return -log(-log(u));
}

// Count (or probability mass, relative to `most`) of the logits whose key is at least `floor_key`.
fn above(lane: u32, floor_key: u32, mass: bool, most: f32, inverse: f32) -> f32 {
    var total = 0.0;
    for (var i = lane; i < params.vocab; i += wg_size) {
        let x = adjusted[i];
        if (key_of(x) >= floor_key) {
            total += select(1.0, exp((x - most) * inverse), mass);
        }
    }
    return reduce_sum(lane, total);
}

// The largest key with at least `wanted` at or above it, among keys >= low.
fn threshold(lane: u32, low: u32, wanted: f32, mass: bool, most: f32, inverse: f32) -> u32 {
    var lower = low;
    var upper = key_of(most);
    while (lower < upper) {
        let middle = upper - (upper - lower) / 2u;
        let reached = above(lane, middle, mass, most, inverse) >= wanted;
        if (reached) {
            lower = middle;
        } else {
            upper = middle - 1u;
        }
    }
    return lower;
}

@compute @workgroup_size(wg_size)
fn main(@builtin(local_invocation_id) local: vec3<u32>) {
    let lane = local.x;
    var mine = vec4(LOWEST, 1e9, LOWEST, 0.0);
    for (var g = lane; g < params.groups; g += wg_size) {
        mine = merged(mine, partials[g]);
    }
    found[lane] = mine;
    let whole = reduce_found(lane);
    var token = u32(whole.y);
    if (setting(0u) > 0.0) {
        let most = whole.x;
        let inverse = 1.0 / setting(0u);
        var floor_key = 0u;
        if (setting(1u) > 0.0) {
            floor_key = threshold(lane, 0u, min(setting(1u), f32(params.vocab)), false, most, inverse);
        }
        if (setting(2u) < 1.0) {
            let total = above(lane, floor_key, true, most, inverse);
            floor_key = threshold(lane, floor_key, setting(2u) * total, true, most, inverse);
        }
        if (setting(3u) > 0.0) {
            floor_key = max(floor_key, key_of(most + setting(0u) * log(setting(3u))));
        }
        var best = vec4(LOWEST, f32(token), LOWEST, 0.0);
        for (var i = lane; i < params.vocab; i += wg_size) {
            let x = adjusted[i];
            if (key_of(x) >= floor_key) {
                best = merged(best, vec4(x * inverse + gumbel(i), f32(i), LOWEST, 0.0));
            }
        }
        workgroupBarrier();
        found[lane] = best;
        token = u32(reduce_found(lane).y);
    }
    if (lane == 0u) {
        token_out[0] = token;
        logprob[0] = logits[token] - whole.z - log(whole.w);
        counts[token] += 1;
    }
}
