//! lib: grid
// GGUF blocks to packed codes and scale records (webgpu_py/quant/layouts.py), a word an invocation.
// Blocks have any length and alignment. All integer work: the result is exact.

struct Params {
    words: u32,
    blocks: u32, // in `source`
    offset: u32, // bytes in `source` before the first block
    row_bytes: u32, // floats only: a stored row, and the words it becomes
    row_words: u32,
}

// 0 plain rows, 1 Q4_0, 2 Q4_1, 3 Q5_0, 4 Q5_1, 5 Q8_0, 6 Q4_K, 7 Q5_K, 8 Q6_K
override kind: u32 = 0u;
override records: bool = false; // scale records instead of codes
override block_bytes: u32 = 18u;
override block_words: u32 = 4u; // words of codes that a block becomes
override codes_at: u32 = 2u; // byte of a block where codes begin
override aligned: bool = false; // blocks begin on words

@group(0) @binding(0) var<storage, read> source: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(10) var<uniform> params: Params;

const NIBBLES = 0x0f0f0f0fu;

fn word_at(byte: u32) -> u32 {
    let i = byte >> 2u;
    if (aligned) {
        return source[i];
    }
    let shift = 8u * (byte & 3u);
    // In two steps, as a shift by 32 is none.
    return (source[i] >> shift) | ((source[i + 1u] << 1u) << (31u - shift));
}

fn half_at(byte: u32) -> u32 {
    let low = source[byte >> 2u] >> (8u * (byte & 3u));
    if ((byte & 3u) == 3u) {
        return ((low & 255u) | (source[(byte >> 2u) + 1u] << 8u)) & 0xffffu;
    }
    return low & 0xffffu;
}

// Four nibbles in bytes to 16 bits.
fn squeezed(v: u32) -> u32 {
    let pairs = (v | (v >> 4u)) & 0x00ff00ffu;
    return (pairs | (pairs >> 8u)) & 0xffffu;
}

// Word j of u4 codes: of every 2 * run elements the low nibbles of run bytes, then the high ones.
fn four_bit(at: u32, j: u32, run: u32) -> u32 {
    let half = run / 8u;
    let byte = at + run * (j / (2u * half)) + 8u * (j % half);
    let shift = 4u * (j / half % 2u);
    let low = (word_at(byte) >> shift) & NIBBLES;
    let high = (word_at(byte + 4u) >> shift) & NIBBLES;
    return squeezed(low) | (squeezed(high) << 16u);
}

// The same nibbles as bytes: word j of 4 elements.
fn nibble_bytes(at: u32, j: u32, run: u32) -> u32 {
    let half = run / 4u;
    let byte = at + run * (j / (2u * half)) + 4u * (j % half);
    return (word_at(byte) >> (4u * (j / half % 2u))) & NIBBLES;
}

// Bits 4j to 4j+3 as bit 4 of four bytes.
fn fifth_bits(bits: u32, j: u32) -> u32 {
    let b = bits >> (4u * j);
    return ((b & 1u) << 4u) | ((b & 2u) << 11u) | ((b & 4u) << 18u) | ((b & 8u) << 25u);
}

fn code_word(at: u32, j: u32) -> u32 {
    let codes = at + codes_at;
    switch kind {
        case 1u, 2u: { return four_bit(codes, j, 16u); }
        case 3u, 4u: {
            let fifth = fifth_bits(word_at(codes - 4u), j);
            let low = nibble_bytes(codes, j, 16u);
            if (kind == 4u) {
                return low | fifth;
            }
            // c - 16 in eight bits: the low nibble, and ones above it where bit 4 is clear.
            return low | ((~fifth & 0x10101010u) * 15u);
        }
        case 5u: { return word_at(codes + 4u * j); }
        case 6u: { return four_bit(codes, j, 32u); }
        case 7u: {
            let high = word_at(at + 16u + 4u * (j % 8u)) >> (j / 8u);
            return nibble_bytes(codes, j, 32u) | ((high & 0x01010101u) << 4u);
        }
        default: {
            let run = j / 8u % 4u;
            let column = 4u * (j % 8u);
            let low = word_at(at + 64u * (j / 32u) + 32u * (run & 1u) + column) >> (4u * (run >> 1u));
            let high = word_at(at + 128u + 32u * (j / 32u) + column) >> (2u * run);
            let c = (low & NIBBLES) | ((high & 0x03030303u) << 4u);
            // c - 32 in eight bits.
            return (c & 0x1f1f1f1fu) | ((~c & 0x20202020u) * 7u);
        }
    }
}

// The 6-bit scales and minima of groups 2i and 2i+1 of a K block's twelve bytes, as four bytes.
fn six_bit_pair(at: u32, i: u32) -> u32 {
    let a = word_at(at);
    let b = word_at(at + 4u);
    let c = word_at(at + 8u);
    var scales = a & 0x3f3f3f3fu;
    var minima = b & 0x3f3f3f3fu;
    if (i >= 2u) {
        scales = (c & NIBBLES) | ((a >> 2u) & 0x30303030u);
        minima = ((c >> 4u) & NIBBLES) | ((b >> 2u) & 0x30303030u);
    }
    let s = scales >> (16u * (i & 1u));
    let m = minima >> (16u * (i & 1u));
    return (s & 255u) | ((m & 255u) << 8u) | ((s & 0xff00u) << 8u) | ((m & 0xff00u) << 16u);
}

fn record_word(i: u32) -> u32 {
    switch kind {
        case 1u, 3u, 5u: {
            let low = half_at(params.offset + 2u * i * block_bytes);
            if (2u * i + 1u >= params.blocks) {
                return low;
            }
            return low | (half_at(params.offset + (2u * i + 1u) * block_bytes) << 16u);
        }
        case 2u, 4u: { return word_at(params.offset + i * block_bytes); }
        default: {
            let at = params.offset + i / 5u * block_bytes;
            let part = i % 5u;
            if (kind == 8u) {
                if (part == 0u) {
                    return half_at(at + 208u);
                }
                return word_at(at + 188u + 4u * part);
            }
            if (part == 0u) {
                return word_at(at);
            }
            return six_bit_pair(at + 4u, part - 1u);
        }
    }
}

fn plain_word(i: u32) -> u32 {
    let column = 4u * (i % params.row_words);
    let at = params.offset + i / params.row_words * params.row_bytes + column;
    if (params.row_bytes - column < 4u) {
        return half_at(at);
    }
    return word_at(at);
}

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_index(id, groups);
    if (i >= params.words) {
        return;
    }
    if (kind == 0u) {
        y[i] = plain_word(i);
    } else if (records) {
        y[i] = record_word(i);
    } else {
        y[i] = code_word(params.offset + i / block_words * block_bytes, i % block_words);
    }
}
