//! lib: grid
// Penalties and bias on every logit, and per workgroup what picking needs of them:
// the largest adjusted logit with its id, and max and sum of exponentials of the raw ones.

struct Params {
    vocab: u32,
    per_group: u32,
}

@group(0) @binding(0) var<storage, read> logits: array<f32>;
@group(0) @binding(1) var<storage, read> counts: array<i32>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read> settings: array<u32>;
@group(0) @binding(4) var<storage, read_write> adjusted: array<f32>;
@group(0) @binding(5) var<storage, read_write> partials: array<vec4<f32>>;
@group(0) @binding(10) var<uniform> params: Params;

// The lowest number there is: masks are made of it.
const LOWEST = -0x1.fffffep+127f;

// x: largest adjusted logit, y: its id (exact below 2^24), z: largest raw logit, w: sum of exp(raw - z).
var<workgroup> found: array<vec4<f32>, wg_size>;

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

@compute @workgroup_size(wg_size)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
) {
    let g = group_index(group, groups);
    let end = min((g + 1u) * params.per_group, params.vocab);
    var mine = vec4(LOWEST, 1e9, LOWEST, 0.0);
    for (var i = g * params.per_group + local.x; i < end; i += wg_size) {
        let raw = logits[i];
        let count = f32(counts[i]);
        var x = raw;
        if (count > 0.0) {
            x = select(x * setting(4u), x / setting(4u), x > 0.0);
            x -= setting(5u) + setting(6u) * count;
        }
        x += bias[i];
        adjusted[i] = x;
        mine = merged(mine, vec4(x, f32(i), raw, 1.0));
    }
    found[local.x] = mine;
    workgroupBarrier();
    for (var step = wg_size / 2u; step > 0u; step /= 2u) {
        if (local.x < step) {
            found[local.x] = merged(found[local.x], found[local.x + step]);
        }
        workgroupBarrier();
    }
    if (local.x == 0u) {
        partials[g] = found[0];
    }
}
