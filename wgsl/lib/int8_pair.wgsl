// Numbers as pairs of int8, 256 * high + low, for hardware that multiplies int8 only. A pair is at
// most 32600 in size, so that its high byte, rounded, stays within 127.
const PAIR_LARGEST = 32600.0;
// 1.5 * 2^23, which leaves an integer in the sum's low bits, and 128, which rounds the high byte.
const PAIR_SUM = 12583040.0;

fn size_bits(v: f32) -> u32 {
    return bitcast<u32>(v) & 0x7fffffffu;
}

fn most_bits(v: vec4<f32>) -> u32 {
    return max(max(size_bits(v.x), size_bits(v.y)), max(size_bits(v.z), size_bits(v.w)));
}

// What brings numbers of at most that size to pairs, and back; NaN back if one is not finite.
// Bits, as compilers may take it that no float is NaN. Numbers that are all below 2^-100 get fewer
// bits, so that neither factor overflows.
fn pair_scales(most: u32) -> vec2<f32> {
    if (most >= 0x7f800000u) {
        return vec2<f32>(0.0, bitcast<f32>(most | 0x7fc00000u));
    }
    let bits = max(most, 27u << 23u);
    let mantissa = bitcast<f32>((bits & 0x7fffffu) | 0x3f800000u);
    let exponent = bits >> 23u;
    return vec2<f32>(
        PAIR_LARGEST / 32768.0 / mantissa * bitcast<f32>((269u - exponent) << 23u),
        32768.0 / PAIR_LARGEST * mantissa * bitcast<f32>((exponent - 15u) << 23u),
    );
}

// The pairs of four scaled numbers: a word of high bytes and a word of low ones.
fn pair_words(scaled: vec4<f32>) -> vec2<u32> {
    let bits = bitcast<vec4<u32>>(scaled + PAIR_SUM);
    let even = (bits.x & 0xffffu) | (bits.z << 16u);
    let odd = (bits.y & 0xffffu) | (bits.w << 16u);
    return vec2<u32>(
        ((even >> 8u) & 0x00ff00ffu) | (odd & 0xff00ff00u),
        ((even & 0x00ff00ffu) | ((odd << 8u) & 0xff00ff00u)) ^ 0x80808080u,
    );
}

// What rounding to pairs left of four scaled numbers, in 254ths, a byte each.
fn rest_word(scaled: vec4<f32>) -> u32 {
    // By way of integers, as a compiler may drop a sum that a difference undoes.
    let whole = bitcast<vec4<i32>>(scaled + PAIR_SUM) - bitcast<vec4<i32>>(vec4<f32>(PAIR_SUM));
    let rest = bitcast<vec4<u32>>((scaled - vec4<f32>(whole)) * 254.0 + PAIR_SUM) ^ vec4<u32>(128u);
    let even = (rest.x & 0xffu) | ((rest.z & 0xffu) << 16u);
    let odd = (rest.y & 0xffu) | ((rest.w & 0xffu) << 16u);
    return even | (odd << 8u);
}
