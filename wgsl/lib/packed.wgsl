// A packed weight: `codes` row by row and `scales` beside them, see webgpu_py/quant/layouts.py.
// The kernel's Params has row_bytes (codes), scale_row, scale_step and scale_base (scale records).
//
// Codes of one u32 are turned into floats without an integer conversion, which GPUs do slowly:
// a code or-ed into the mantissa of 2^23 and minus 2^23 is exact. It is left at its place in the
// word, so that no shift is needed either: nibble i of a half word is 16^i times the value.
// `place()` is what undoes that; multiply either the weight or the activation by it.

override code_kind: u32 = 0u; // 0 u4, 1 u4 with the high nibble first, 2 i8, 3 f16, 4 bf16, 5 f32
override scale_kind: u32 = 0u; // 0 none, 1 f16, 2 f16_min, 3 f32, 4 k, 5 k_min
override group: u32 = 32u; // elements of a row that one scale covers
override zero: f32 = 0.0; // what is subtracted from a code

@group(0) @binding(1) var<storage, read> codes: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> scales: array<vec4<u32>>;

const MANTISSA = 0x4b000000u;
const UNIT = 8388608.0;

fn place() -> vec4<f32> {
    if (code_kind <= 1u) {
        return vec4<f32>(1.0, 0.0625, 0.00390625, 0.000244140625);
    }
    if (code_kind == 2u) {
        return vec4<f32>(1.0, 0.00390625, 1.0, 0.00390625);
    }
    return vec4<f32>(1.0);
}

// Four nibbles of the low half word.
fn nibbles(half: u32) -> vec4<f32> {
    let bits = vec4<u32>(half) & vec4<u32>(0xfu, 0xf0u, 0xf00u, 0xf000u);
    let base = vec4<f32>(UNIT) + zero * vec4<f32>(1.0, 16.0, 256.0, 4096.0);
    return bitcast<vec4<f32>>(bits | vec4<u32>(MANTISSA)) - base;
}

fn byte_values(word: u32) -> vec4<f32> {
    let flipped = word ^ 0x80808080u;
    let bits = vec4<u32>(flipped, flipped, flipped >> 16u, flipped >> 16u)
        & vec4<u32>(0xffu, 0xff00u, 0xffu, 0xff00u);
    let base = vec4<f32>(UNIT) + vec4<f32>(128.0, 32768.0, 128.0, 32768.0);
    return bitcast<vec4<f32>>(bits | vec4<u32>(MANTISSA)) - base;
}

fn bf16_pair(word: u32) -> vec2<f32> {
    return bitcast<vec2<f32>>(vec2<u32>(word << 16u, word & 0xffff0000u));
}

fn nibble_order(word: u32) -> u32 {
    if (code_kind == 1u) {
        return ((word & 0x0f0f0f0fu) << 4u) | ((word >> 4u) & 0x0f0f0f0fu);
    }
    return word;
}

fn code_word(i: u32) -> u32 {
    return codes[i >> 2u][i & 3u];
}

fn scale_word(i: u32) -> u32 {
    return scales[i >> 2u][i & 3u];
}

// Four elements out of the 16 bytes that hold them: quad j of 8, 4, 2 or 1.
fn quad(q: vec4<u32>, j: u32) -> vec4<f32> {
    if (code_kind <= 1u) {
        return nibbles(nibble_order(q[j >> 1u]) >> (16u * (j & 1u)));
    }
    if (code_kind == 2u) {
        return byte_values(q[j]);
    }
    if (code_kind == 5u) {
        return bitcast<vec4<f32>>(q);
    }
    let pair = select(q.xy, q.zw, j == 1u);
    if (code_kind == 3u) {
        return vec4<f32>(unpack2x16float(pair.x), unpack2x16float(pair.y));
    }
    return vec4<f32>(bf16_pair(pair.x), bf16_pair(pair.y));
}

// One element at its true size.
fn element(row: u32, k: u32) -> f32 {
    let start = row * params.row_bytes;
    if (code_kind <= 1u) {
        let at = start + (k >> 1u);
        let odd = (k ^ code_kind) & 1u;
        return f32((code_word(at >> 2u) >> (8u * (at & 3u) + 4u * odd)) & 15u) - zero;
    }
    if (code_kind == 2u) {
        let at = start + k;
        return f32(bitcast<i32>(code_word(at >> 2u) << (24u - 8u * (at & 3u))) >> 24u);
    }
    if (code_kind == 5u) {
        return bitcast<f32>(code_word((start >> 2u) + k));
    }
    let half = code_word((start >> 2u) + (k >> 1u)) >> (16u * (k & 1u));
    if (code_kind == 3u) {
        return unpack2x16float(half).x;
    }
    return bitcast<f32>(half << 16u);
}

fn has_minima() -> bool {
    return scale_kind == 2u || scale_kind == 5u;
}

// Scale and minimum of the group that holds element k of a row: value = element * x + y.
fn scale_of(row: u32, k: u32) -> vec2<f32> {
    if (scale_kind == 0u) {
        return vec2<f32>(1.0, 0.0);
    }
    if (scale_kind <= 3u) {
        let at = params.scale_base + row * params.scale_row + k / group * params.scale_step;
        if (scale_kind == 1u) {
            return vec2<f32>(unpack2x16float(scale_word(at >> 1u) >> (16u * (at & 1u))).x, 0.0);
        }
        if (scale_kind == 2u) {
            return unpack2x16float(scale_word(at));
        }
        return vec2<f32>(bitcast<f32>(scale_word(at)), 0.0);
    }
    let at = 5u * (params.scale_base + row * params.scale_row + (k >> 8u));
    let head = unpack2x16float(scale_word(at));
    if (scale_kind == 4u) {
        let j = (k >> 4u) & 15u;
        let word = scale_word(at + 1u + (j >> 2u));
        return vec2<f32>(head.x * f32(bitcast<i32>(word << (24u - 8u * (j & 3u))) >> 24u), 0.0);
    }
    let j = (k >> 5u) & 7u;
    let pair = scale_word(at + 1u + (j >> 1u)) >> (16u * (j & 1u));
    return head * vec2<f32>(f32(pair & 255u), -f32((pair >> 8u) & 255u));
}

// The float16 scale of a row's group i, where a row has an even number of groups: which half of a
// word it is does not depend on the row then.
fn half_scale(row: u32, i: u32) -> vec2<f32> {
    let word = scale_word((params.scale_base + row * params.scale_row) / 2u + i / 2u);
    return vec2<f32>(unpack2x16float(word >> (16u * (i & 1u))).x, 0.0);
}

// float32 scales of four neighbouring rows, where those lie side by side from whole fours on.
fn scales_of_four(row: u32, k: u32) -> vec4<f32> {
    let at = params.scale_base + row + k / group * params.scale_step;
    return bitcast<vec4<f32>>(scales[at >> 2u]);
}
