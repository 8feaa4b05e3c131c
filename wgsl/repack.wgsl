//! lib: grid
// GGUF blocks to packed codes and scale records (webgpu_py/quant/layouts.py). An invocation takes a
// block of 32 elements, or a quarter of a block of 256, reads what it needs of it once, and makes
// whole vec4 of codes and the records that belong to them. All integer work: the result is exact.

struct Params {
    blocks: u32,
}

// 1 Q4_0, 2 Q4_1, 3 Q5_0, 4 Q5_1, 5 Q8_0, 6 Q4_K, 7 Q5_K, 8 Q6_K
override kind: u32 = 1u;
override block_bytes: u32 = 18u;

@group(0) @binding(0) var<storage, read> source: array<u32>;
// The same bytes, for blocks that are whole vec4.
@group(0) @binding(1) var<storage, read> vectors: array<vec4<u32>>;
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

fn low(v: vec4<u32>) -> vec4<u32> {
    return v & vec4<u32>(NIBBLES);
}

fn high(v: vec4<u32>) -> vec4<u32> {
    return (v >> vec4<u32>(4u)) & vec4<u32>(NIBBLES);
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

fn five_bit(nibbles: vec4<u32>, bits: u32) -> vec4<u32> {
    let fifth = fifth_bits(bits);
    if (kind == 4u) {
        return nibbles | fifth;
    }
    // c - 16 in eight bits: the low nibble, and ones above it where bit 4 is clear.
    return nibbles | ((~fifth & vec4<u32>(0x10101010u)) * 15u);
}

// Of blocks that begin with one float16, pairs begin on a word: the last word of the first block of
// a pair holds the float16 of the second too.
fn small_block(i: u32) {
    let minima = kind == 2u || kind == 4u;
    let first = !minima && (i & 1u) == 0u;
    let at = (i * block_bytes) >> 2u;
    let head = source[at];
    var last: u32;
    if (kind <= 2u) {
        let w = four_at(at);
        last = source[at + 4u];
        let q = select(vec4<u32>(w.yzw, last), halfway(w, last), first);
        codes[i] = vec4<u32>(squeezed(low(q)), squeezed(high(q)));
    } else if (kind <= 4u) {
        let w = four_at(at + 1u);
        last = source[at + 5u];
        let bits = select(w.x, (head >> 16u) | (w.x << 16u), first);
        let q = select(vec4<u32>(w.yzw, last), halfway(w, last), first);
        codes[2u * i] = five_bit(low(q), bits);
        codes[2u * i + 1u] = five_bit(high(q), bits >> 16u);
    } else {
        let v = four_at(at);
        let w = four_at(at + 4u);
        last = source[at + 8u];
        codes[2u * i] = select(vec4<u32>(v.yzw, w.x), halfway(v, w.x), first);
        codes[2u * i + 1u] = select(vec4<u32>(w.yzw, last), halfway(w, last), first);
    }
    if (minima) {
        records[i] = head;
    } else if (first) {
        let second = select(0u, last & 0xffff0000u, i + 1u < params.blocks);
        records[i >> 1u] = (head & 0xffffu) | second;
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

// Nibbles with bit j of `bits` above each.
fn with_fifth(nibbles: vec4<u32>, bits: vec4<u32>, j: u32) -> vec4<u32> {
    return nibbles | (((bits >> vec4<u32>(j)) & vec4<u32>(0x01010101u)) << vec4<u32>(4u));
}

fn quarter_with_minima(block: u32, part: u32) {
    let at = block * (block_bytes / 16u);
    let head = vectors[at];
    if (kind == 6u) {
        let v = vectors[at + 1u + 2u * part];
        let w = vectors[at + 2u + 2u * part];
        let to = 8u * block + 2u * part;
        codes[to] = vec4<u32>(squeezed(low(v)), squeezed(low(w)));
        codes[to + 1u] = vec4<u32>(squeezed(high(v)), squeezed(high(w)));
    } else {
        // 16 elements of each of four runs of 32, as their fifth bits share 16 bytes.
        let column = part & 1u;
        let runs = 4u * (part >> 1u);
        let bits = vectors[at + 1u + column] >> vec4<u32>(runs);
        let v = vectors[at + 3u + runs + column];
        let w = vectors[at + 5u + runs + column];
        let to = 16u * block + 2u * runs + column;
        codes[to] = with_fifth(low(v), bits, 0u);
        codes[to + 2u] = with_fifth(high(v), bits, 1u);
        codes[to + 4u] = with_fifth(low(w), bits, 2u);
        codes[to + 6u] = with_fifth(high(w), bits, 3u);
    }
    records[5u * block + 1u + part] = six_bit_pair(head, part);
    if (part == 0u) {
        records[5u * block] = head.x;
    }
}

// c - 32 in eight bits: nibbles, and bits 2j and 2j+1 above them.
fn six_bit(nibbles: vec4<u32>, bits: vec4<u32>, j: u32) -> vec4<u32> {
    let upper = (bits >> vec4<u32>(2u * j)) & vec4<u32>(0x03030303u);
    let c = nibbles | (upper << vec4<u32>(4u));
    return (c & vec4<u32>(0x1f1f1f1fu)) | ((~c & vec4<u32>(0x20202020u)) * 7u);
}

// Four words, or if `odd` those two bytes later.
fn odd_four_at(i: u32, odd: bool) -> vec4<u32> {
    let w = four_at(i);
    return select(w, halfway(w, source[i + 4u]), odd);
}

// Q6_K: every other block begins in the middle of a word.
fn quarter(block: u32, part: u32) {
    let odd = (block & 1u) == 1u;
    let at = (block * block_bytes) >> 2u;
    // 16 elements of each of four runs of 32, as their upper bits share 16 bytes.
    let column = 4u * (part & 1u);
    let side = part >> 1u;
    let v = odd_four_at(at + 16u * side + column, odd);
    let w = odd_four_at(at + 16u * side + column + 8u, odd);
    let bits = odd_four_at(at + 32u + 8u * side + column, odd);
    let to = 16u * block + 8u * side + (part & 1u);
    codes[to] = six_bit(low(v), bits, 0u);
    codes[to + 2u] = six_bit(low(w), bits, 1u);
    codes[to + 4u] = six_bit(high(v), bits, 2u);
    codes[to + 6u] = six_bit(high(w), bits, 3u);
    let a = source[at + 48u + part];
    let b = source[at + 49u + part];
    records[5u * block + 1u + part] = select(a, (a >> 16u) | (b << 16u), odd);
    if (part == 3u) {
        records[5u * block] = select(b & 0xffffu, b >> 16u, odd);
    }
}

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_index(id, groups);
    if (kind <= 5u) {
        if (i < params.blocks) {
            small_block(i);
        }
        return;
    }
    if (i >= 4u * params.blocks) {
        return;
    }
    if (kind == 8u) {
        quarter(i >> 2u, i & 3u);
    } else {
        quarter_with_minima(i >> 2u, i & 3u);
    }
}
