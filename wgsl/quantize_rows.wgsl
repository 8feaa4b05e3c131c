//! lib: grid, quotient, reduce
// Stored float rows to codes with a float16 scale every 32 elements (webgpu_py/quant/float_rows.py).
// An invocation takes two groups at a time, as their scales share a word. Scales are computed in
// integers, because neither WGSL's division nor its conversion to float16 is exact.

struct Params {
    groups: u32, // of all rows in `source`
    columns: u32,
    row_groups: u32,
    row_words: u32, // of codes
    parts: u32, // workgroups, of which each adds to its own losses
    losses_at: u32,
}

override stored_kind: u32 = 0u; // 0 F32, 1 F16, 2 BF16
override bits: u32 = 4u;

@group(0) @binding(0) var<storage, read> source: array<u32>;
@group(0) @binding(1) var<storage, read_write> codes: array<u32>;
@group(0) @binding(2) var<storage, read_write> scales: array<u32>;
@group(0) @binding(3) var<storage, read_write> losses: array<f32>;
@group(0) @binding(10) var<uniform> params: Params;

const GROUP = 32u;
const INFINITE = 0x7f800000u;
const INFINITE_HALF = 0x7c00u;

// The float32 that a float16 is, in bits; unpack2x16float may take subnormal numbers for zero.
fn widened(half: u32) -> u32 {
    let exponent = (half >> 10u) & 31u;
    let fraction = half & 1023u;
    let sign_bit = (half & 0x8000u) << 16u;
    if (exponent == 0u) {
        return sign_bit | bitcast<u32>(f32(fraction) * 5.9604644775390625e-8);
    }
    let wide = select(exponent + 112u, 255u, exponent == 31u);
    return sign_bit | (wide << 23u) | (fraction << 13u);
}

// Bits of element i as float32.
fn element(i: u32) -> u32 {
    if (stored_kind == 0u) {
        return source[i];
    }
    let half = (source[i >> 1u] >> (16u * (i & 1u))) & 0xffffu;
    if (stored_kind == 2u) {
        return half << 16u;
    }
    return widened(half);
}

// A magnitude / 8 or / 127 as float32, then as float16; both rounded to nearest even. Takes and
// gives bits; the quotient by 127 has no tie.
fn scale_of(largest: u32) -> u32 {
    let exponent = i32(largest >> 23u);
    if (exponent == 0) {
        return 0u;
    }
    // The quotient, 24 bits, is q * 2^x.
    var q = (largest & 0x7fffffu) | 0x800000u;
    var x = exponent - 153;
    if (bits == 8u) {
        let shift = select(7u, 6u, (q << 7u) / 127u >= 0x1000000u);
        let n = q << shift;
        q = n / 127u + select(0u, 1u, 2u * (n % 127u) > 127u);
        x = exponent - 150 - i32(shift);
    }
    let drop = u32(clamp(-24 - x, 13, 26));
    let half = (q + (1u << (drop - 1u)) - 1u + ((q >> drop) & 1u)) >> drop;
    return (u32(max(x + 37, 0)) << 10u) + half;
}

@compute @workgroup_size(wg_size)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let part = group_index(group, groups);
    let per_word = 32u / bits;
    let lowest = select(-128.0, -8.0, bits == 4u);
    let highest = select(127.0, 7.0, bits == 4u);
    let zero = select(0, 8, bits == 4u);
    let mask = (1u << bits) - 1u;
    var signal = 0.0;
    var noise = 0.0;
    var bad = 0.0;
    var first = 2u * (part * wg_size + lane);
    if (part >= params.parts) {
        first = params.groups;
    }
    for (; first < params.groups; first += 2u * params.parts * wg_size) {
        var scale_word = 0u;
        for (var side = 0u; side < 2u && first + side < params.groups; side++) {
            let row = (first + side) / params.row_groups;
            let column = (first + side) % params.row_groups * GROUP;
            let count = min(GROUP, params.columns - column);
            let start = row * params.columns + column;
            var largest = 0u;
            var extreme = 0u;
            for (var i = 0u; i < count; i++) {
                let w = element(start + i);
                // Magnitudes order as their bits do.
                if ((w & 0x7fffffffu) > largest) {
                    largest = w & 0x7fffffffu;
                    extreme = w;
                }
            }
            var half = 0u;
            if (largest < INFINITE) {
                half = scale_of(largest);
            }
            if (largest >= INFINITE || half >= INFINITE_HALF) {
                half = 0u;
                bad += 1.0;
            }
            if (bits == 4u && half != 0u) {
                // A positive extreme is -8 times a negative scale.
                half |= select(0u, 0x8000u, extreme < 0x80000000u);
            }
            scale_word |= half << (16u * side);
            let scale = bitcast<f32>(widened(half));
            let target_word = row * params.row_words + column / per_word;
            for (var i = 0u; i < count; i += per_word) {
                var word = 0u;
                for (var j = 0u; j < per_word; j++) {
                    var step = 0.0;
                    if (i + j < count) {
                        let w = bitcast<f32>(element(start + i + j));
                        if (half != 0u) {
                            step = clamp(round_quotient(w, scale), lowest, highest);
                        }
                        let lost = w - step * scale;
                        signal += w * w;
                        noise += lost * lost;
                    }
                    word |= (bitcast<u32>(i32(step) + zero) & mask) << (bits * j);
                }
                codes[target_word + i / per_word] = word;
            }
        }
        scales[first / 2u] = scale_word;
    }
    let signals = workgroup_sum(lane, signal);
    let noises = workgroup_sum(lane, noise);
    let bads = workgroup_sum(lane, bad);
    if (lane == 0u && part < params.parts) {
        let at = params.losses_at + 3u * part;
        losses[at] += signals;
        losses[at + 1u] += noises;
        losses[at + 2u] += bads;
    }
}
