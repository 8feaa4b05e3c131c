//! lib: grid
// Scale and zero point of each row to int8: a workgroup for four rows, whose zero points are a word.

struct Params {
    rows: u32,
    width: u32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> scale: array<f32>;
@group(0) @binding(2) var<storage, read_write> zero_point: array<u32>;
@group(0) @binding(10) var<uniform> params: Params;

// At most 64 invocations a workgroup.
var<workgroup> lows: array<vec4<f32>, 64>;
var<workgroup> highs: array<vec4<f32>, 64>;

const SMALLEST = 6.1e-5;

// (scale, zero point) of a row whose values, 0 included, lie from low to high.
fn chosen(low_: f32, high_: f32) -> vec2<f32> {
    var low = low_;
    var high = high_;
    var s = (high - low) / 255.0;
    if (s == 0.0) {
        s = 0.1;
    }
    if (s < SMALLEST) {
        let stretch = SMALLEST / s;
        s = SMALLEST;
        if (low == 0.0) {
            high = SMALLEST * 255.0;
        } else if (high == 0.0) {
            low = -SMALLEST * 255.0;
        } else {
            low *= stretch;
            high *= stretch;
        }
    }
    let by_low = -128.0 - low / s;
    let by_high = 127.0 - high / s;
    let low_error = 128.0 - abs(low / s);
    let high_error = 127.0 - abs(high / s);
    let z = select(by_high, by_low, low_error < high_error);
    return vec2<f32>(s, round(clamp(z, -128.0, 127.0)));
}

@compute @workgroup_size(wg_size)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let word = group_index(group, groups);
    let first = word * 4u;
    if (first >= params.rows) {
        return;
    }
    let last = params.rows - 1u;
    let row = min(vec4<u32>(first) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(last)) * params.width;
    var low = vec4<f32>(0.0);
    var high = vec4<f32>(0.0);
    for (var k = lane; k < params.width; k += wg_size) {
        let v = vec4<f32>(x[row.x + k], x[row.y + k], x[row.z + k], x[row.w + k]);
        low = min(low, v);
        high = max(high, v);
    }
    lows[lane] = low;
    highs[lane] = high;
    workgroupBarrier();
    for (var step = wg_size / 2u; step > 0u; step /= 2u) {
        if (lane < step) {
            lows[lane] = min(lows[lane], lows[lane + step]);
            highs[lane] = max(highs[lane], highs[lane + step]);
        }
        workgroupBarrier();
    }
    if (lane > 0u) {
        return;
    }
    low = lows[0];
    high = highs[0];
    var packed = 0u;
    for (var i = 0u; i < 4u && first + i < params.rows; i++) {
        let found = chosen(low[i], high[i]);
        scale[first + i] = found.x;
        packed |= (bitcast<u32>(i32(found.y)) & 255u) << (8u * i);
    }
    zero_point[word] = packed;
}
