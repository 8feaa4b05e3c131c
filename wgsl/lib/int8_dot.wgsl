// Interface of the int8 matrix products, and four codes at a time of rows that may start at any
// byte. Needs int8 and requant.
struct Params {
    rows: u32,
    cols: u32,
    depth: u32,
    zero: u32,
    input_scale: f32,
    inverse: f32,
    input_zero_point: i32,
    output_zero_point: i32,
    has_bias: u32,
    relu: u32,
}

override int8_result: u32 = 1u;

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> weight: array<u32>;
@group(0) @binding(2) var<storage, read> weight_scales: array<f32>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<u32>;
@group(0) @binding(10) var<uniform> params: Params;

// Bytes past a row's end meet a zero weight.
fn x_word(at: u32) -> u32 {
    let shift = (at & 3u) * 8u;
    let word = x[at / 4u] >> shift;
    if (shift == 0u) {
        return word;
    }
    return word | (x[at / 4u + 1u] << (32u - shift));
}

fn weight_word(at: u32) -> u32 {
    let shift = (at & 3u) * 8u;
    let word = weight[at / 4u] >> shift;
    if (shift == 0u) {
        return word;
    }
    return word | (weight[at / 4u + 1u] << (32u - shift));
}

fn x_bytes(row: u32, k: u32) -> vec4<i32> {
    return signed_bytes(x_word(row * params.depth + k)) - vec4<i32>(params.input_zero_point);
}

fn weight_bytes(row: u32, k: u32) -> vec4<i32> {
    var word = weight_word(row * params.depth + k);
    if (k + 4u > params.depth) {
        word &= (1u << ((params.depth - k) * 8u)) - 1u;
    }
    return signed_bytes(word);
}

// ((sum * input_scale) * weight_scale) + bias, each step rounded, then the activation.
fn scaled(sum: i32, col: u32) -> f32 {
    var value = exactly(f32(sum) * params.input_scale);
    value = exactly(value * weight_scales[col]);
    if (params.has_bias != 0u) {
        value += bias[col];
    }
    return select(value, max(value, 0.0), params.relu != 0u);
}
