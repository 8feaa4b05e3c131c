//! lib: grid
// GGUF blocks to packed codes and scale records (webgpu_py/quant/layouts.py). An invocation makes one
// vec4 of codes, so that neighbours write side by side, and some of the records. All integer work:
// the result is exact.

struct Params {
    blocks: u32,
}

// 1 Q4_0, 2 Q4_1, 3 Q5_0, 4 Q5_1, 5 Q8_0, 6 Q4_K, 7 Q5_K, 8 Q6_K
override kind: u32 = 1u;
override block_bytes: u32 = 18u;
override vectors: u32 = 1u; // of codes that a block becomes

@group(0) @binding(0) var<storage, read> source: array<u32>;
// The same bytes, for blocks that are whole vec4.
@group(0) @binding(1) var<storage, read> wide: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> codes: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read_write> records: array<u32>;
@group(0) @binding(10) var<uniform> params: Params;

const NIBBLES = 0x0f0f0f0fu;

fn four_at(i: u32) -> vec4<u32> {
    return vec4<u32>(source[i], source[i + 1u], source[i + 2u], source[i + 3u]);
}

// The four words that begin two bytes after `w`.
fn halfway(w: vec4<u32>, next: u32) -> vec4<u32> {
    return (w >> vec4<u32>(16u)) | (vec4<u32>(w.yzw, next) << vec4<u32>(16u));
}

// The low nibbles of 16 bytes, or with `side` 1 the high ones.
fn nibbles(v: vec4<u32>, side: u32) -> vec4<u32> {
    return (v >> vec4<u32>(4u * side)) & vec4<u32>(NIBBLES);
}

// 16 nibbles, each in a byte, as two words.
fn squeezed(v: vec4<u32>) -> vec2<u32> {
    let pairs = (v | (v >> vec4<u32>(4u))) & vec4<u32>(0x00ff00ffu);
    let fours = (pairs | (pairs >> vec4<u32>(8u))) & vec4<u32>(0xffffu);
    return fours.xz | (fours.yw << vec2<u32>(16u));
}

// Bits 0 to 15 as bit 4 of 16 bytes. The factor adds up four bits at shifts where none meet.
fn fifth_bits(bits: u32) -> vec4<u32> {
    let fours = (vec4<u32>(bits) >> vec4<u32>(0u, 4u, 8u, 12u)) & vec4<u32>(15u);
    return ((fours * 0x00204081u) & vec4<u32>(0x01010101u)) << vec4<u32>(4u);
}

fn five_bit(q: vec4<u32>, bits: u32) -> vec4<u32> {
    let fifth = fifth_bits(bits);
    if (kind == 4u) {
        return q | fifth;
    }
    // c - 16 in eight bits: the low nibble, and ones above it where bit 4 is clear.
    return q | ((~fifth & vec4<u32>(0x10101010u)) * 15u);
}

// Four words, or if `odd` those two bytes later.
fn words_at(i: u32, odd: bool) -> vec4<u32> {
    let w = four_at(i);
    return select(w, halfway(w, source[i + 4u]), odd);
}

// A block of 32 elements: `part` is which half of Q5_0, Q5_1 and Q8_0.
fn small_block(block: u32, part: u32) {
    let start = block * block_bytes;
    let at = start >> 2u;
    let minima = kind == 2u || kind == 4u;
    let head_bytes = select(2u, 4u, minima);
    var codes_at = start + head_bytes + select(0u, 4u, kind == 3u || kind == 4u);
    if (kind == 5u) {
        codes_at += 16u * part;
    }
    let q = words_at(codes_at >> 2u, (codes_at & 2u) != 0u);
    var made = q;
    if (kind <= 2u) {
        made = vec4<u32>(squeezed(nibbles(q, 0u)), squeezed(nibbles(q, 1u)));
    } else if (kind <= 4u) {
        let bits_at = start + head_bytes + 2u * part;
        let bits = source[bits_at >> 2u] >> (8u * (bits_at & 2u));
        made = five_bit(nibbles(q, part), bits & 0xffffu);
    }
    codes[vectors * block + part] = made;
    if (part != 0u) {
        return;
    }
    if (minima) {
        records[block] = source[at];
    } else if ((block & 1u) == 0u) {
        // Pairs begin on a word: the last word of a first block holds the float16 of the second.
        let second = select(0u, source[at + block_bytes / 4u], block + 1u < params.blocks);
        records[block >> 1u] = (source[at] & 0xffffu) | (second & 0xffff0000u);
    }
}

// The 6-bit scales and minima of groups 2i and 2i+1 of a K block, as four bytes.
fn six_bit_pair(head: vec4<u32>, i: u32) -> u32 {
    var scales = head.y & 0x3f3f3f3fu;
    var minima = head.z & 0x3f3f3f3fu;
    if (i >= 2u) {
        scales = (head.w & NIBBLES) | ((head.y >> 2u) & 0x30303030u);
        minima = ((head.w >> 4u) & NIBBLES) | ((head.z >> 2u) & 0x30303030u);
    }
    let s = scales >> (16u * (i & 1u));
    let m = minima >> (16u * (i & 1u));
    return (s & 255u) | ((m & 255u) << 8u) | ((s & 0xff00u) << 8u) | ((m & 0xff00u) << 16u);
}

// Q4_K and Q5_K.
fn block_with_minima(block: u32, part: u32) {
    let at = block * (block_bytes / 16u);
    let run = part >> 1u;
    let side = part & 1u;
    var made: vec4<u32>;
    if (kind == 6u) {
        let v = nibbles(wide[at + 1u + 2u * run], side);
        let w = nibbles(wide[at + 2u + 2u * run], side);
        made = vec4<u32>(squeezed(v), squeezed(w));
    } else {
        let fifth = (wide[at + 1u + side] >> vec4<u32>(run)) & vec4<u32>(0x01010101u);
        let q = nibbles(wide[at + 3u + 2u * (run >> 1u) + side], run & 1u);
        made = q | (fifth << vec4<u32>(4u));
    }
    codes[vectors * block + part] = made;
    if (part < 4u) {
        records[5u * block + 1u + part] = six_bit_pair(wide[at], part);
    } else if (part == 4u) {
        records[5u * block] = wide[at].x;
    }
}

// Q6_K: every other block begins in the middle of a word.
fn block_of_six_bits(block: u32, part: u32) {
    let odd = (block & 1u) == 1u;
    let at = (block * block_bytes) >> 2u;
    let column = 4u * (part & 1u);
    let run = (part >> 1u) & 3u;
    let half = part >> 3u;
    let q = nibbles(words_at(at + 16u * half + 8u * (run & 1u) + column, odd), run >> 1u);
    let bits = words_at(at + 32u + 8u * half + column, odd) >> vec4<u32>(2u * run);
    let c = q | ((bits & vec4<u32>(0x03030303u)) << vec4<u32>(4u));
    // c - 32 in eight bits.
    codes[vectors * block + part] =
        (c & vec4<u32>(0x1f1f1f1fu)) | ((~c & vec4<u32>(0x20202020u)) * 7u);
    if (part < 4u) {
        let a = source[at + 48u + part];
        let b = source[at + 49u + part];
        records[5u * block + 1u + part] = select(a, (a >> 16u) | (b << 16u), odd);
    } else if (part == 4u) {
        let d = source[at + 52u];
        records[5u * block] = select(d & 0xffffu, d >> 16u, odd);
    }
}

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_index(id, groups);
    let block = i / vectors;
    let part = i % vectors;
    if (block >= params.blocks) {
        return;
    }
    if (kind <= 5u) {
        small_block(block, part);
    } else if (kind <= 7u) {
        block_with_minima(block, part);
    } else {
        block_of_six_bits(block, part);
    }
}
