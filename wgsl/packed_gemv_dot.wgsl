//! lib: grid, reduce, packed, packed_linear, gate, int8_pair
enable subgroups;
// Packed linear for few rows by integer dot products: 4 products an instruction, on codes as
// they are, where packed_gemv makes a float of each. On its way to workgroup memory a number of x
// becomes a pair of int8 and one more, what rounding left, with a scale every 32 numbers: off by
// about 2^-23 of the largest of those. As there, `lanes` invocations share a set of columns and read
// 16 bytes of codes at a time; the first two of them are asked for before x is.
// Neighbours of a workgroup are taken to be neighbours of a subgroup, as they are on GPUs that are
// known; the self test tries it.

override chunk: u32 = 32u; // elements in 16 bytes of codes: 32 or 16
override columns: u32 = 4u; // of a set: 4 or 2
override lanes: u32 = 64u; // a power of two from 4 to wg_size
override slots: u32 = 64u; // chunks of x at a time, a multiple of lanes
override subgroup: u32 = 4u; // invocations that are surely neighbours in a subgroup: 4 to 32
override has_norm: bool = false;
override beside: bool = false; // scales of a set are one vec4
override halves: bool = false; // float16 scales, one a chunk and an even number a row
override items: u32 = chunk / 8u;
// One more than a chunk has, so that neighbours read from different banks.
override pitch: u32 = items + 1u;
override x_count: u32 = slots * pitch;
override sum_count: u32 = wg_size / min(lanes, subgroup) * columns;

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read> norm: array<vec4<f32>>;

// 8 numbers: words of their high bytes, then of their low ones; of 4-bit codes the even ones first.
var<workgroup> x_tile: array<vec4<u32>, x_count>;
var<workgroup> x_rest: array<vec2<u32>, x_count>;
// Of each chunk of x the sum of its pairs, that of its rests, and what pairs are multiplied by.
var<workgroup> x_sums: array<vec3<i32>, slots>;
var<workgroup> partial: array<f32, sum_count>;

const ONES = 0x01010101u;

fn sum_of(words: vec2<u32>) -> i32 {
    return dot4I8Packed(words.x, ONES) + dot4I8Packed(words.y, ONES);
}

// As `pair_scales`, of powers of two: a division here is what everything else waits for.
fn shift_scales(most: u32) -> vec2<f32> {
    if (most >= 0x7f800000u) {
        return vec2<f32>(0.0, bitcast<f32>(most | 0x7fc00000u));
    }
    // Carries into the exponent where the mantissa times 2^14 is more than PAIR_LARGEST.
    let bits = max(most, 27u << 23u) + 0x14fffu;
    let exponent = bits >> 23u;
    return vec2<f32>(bitcast<f32>((268u - exponent) << 23u), bitcast<f32>((exponent - 14u) << 23u));
}

// The invocation's part of the chunks of x from `first` on: 8 numbers, a quad 32; returns their
// squares.
fn stage_part(i: u32, row: u32, first: u32) -> f32 {
    var found = 0.0;
    let vectors = params.k / 4u;
    let at = 2u * (first * items + i);
    var a = vec4<f32>(0.0);
    var b = vec4<f32>(0.0);
    if (i < slots * items && at < vectors) {
        a = x[row * vectors + at];
        b = x[row * vectors + at + 1u];
        if (has_norm) {
            found = dot(a, a) + dot(b, b);
            a *= norm[at];
            b *= norm[at + 1u];
        }
    }
    var most = max(most_bits(a), most_bits(b));
    most = max(most, quadSwapX(most));
    most = max(most, quadSwapY(most));
    let scales = shift_scales(most);
    a *= scales.x;
    b *= scales.x;
    if (chunk == 32u) {
        let even = vec4<f32>(a.xz, b.xz);
        b = vec4<f32>(a.yw, b.yw);
        a = even;
    }
    let p = pair_words(a);
    let q = pair_words(b);
    let high = vec2<u32>(p.x, q.x);
    let low = vec2<u32>(p.y, q.y);
    let rest = vec2<u32>(rest_word(a), rest_word(b));
    var sums = vec2<i32>((sum_of(high) << 8u) + sum_of(low), sum_of(rest));
    sums += quadSwapX(sums);
    if (chunk == 32u) {
        sums += quadSwapY(sums);
    }
    if (i < slots * items) {
        x_tile[i / items * pitch + i % items] = vec4<u32>(high, low);
        x_rest[i / items * pitch + i % items] = rest;
        x_sums[i / items] = vec3<i32>(sums, bitcast<i32>(scales.y));
    }
    return found;
}

// The first parts are no loop: browsers guard loops with a counter, which compilers seem to keep.
fn stage(thread: u32, row: u32, first: u32) -> f32 {
    var found = stage_part(thread, row, first);
    if (slots * items > wg_size) {
        found += stage_part(thread + wg_size, row, first);
    }
    for (var begin = 2u * wg_size; begin < slots * items; begin += wg_size) {
        found += stage_part(begin + thread, row, first);
    }
    return found;
}

// The row of w behind column c of the set that begins at column `col` of y: with a gate, the
// second half is what the first half gates.
fn w_row(col: u32, c: u32) -> u32 {
    if (gate == 0u) {
        return min(col + c, params.n - 1u);
    }
    let half = columns / 2u;
    return min(col + c % half, params.n - 1u) + select(0u, params.n, c >= half);
}

// 16 bytes of each of a set's rows, and their scales and minima.
struct Codes {
    a: vec4<u32>,
    b: vec4<u32>,
    c: vec4<u32>,
    d: vec4<u32>,
    a_scale: vec2<f32>,
    b_scale: vec2<f32>,
    c_scale: vec2<f32>,
    d_scale: vec2<f32>,
}

fn code_chunk(row: u32, k: u32) -> vec4<u32> {
    return codes[(row * params.row_bytes + k / chunk * 16u) >> 4u];
}

fn chunk_scale(row: u32, k: u32) -> vec2<f32> {
    if (halves) {
        return half_scale(row, k / chunk);
    }
    return scale_of(row, k);
}

// Chunk i of the rows, or the last one: lanes past the end of a row staged zeros.
fn fetch(rows: vec4<u32>, i: u32) -> Codes {
    let k = min(i * chunk, params.k - chunk);
    var found: Codes;
    found.a = code_chunk(rows.x, k);
    found.b = code_chunk(rows.y, k);
    if (columns == 4u) {
        found.c = code_chunk(rows.z, k);
        found.d = code_chunk(rows.w, k);
    }
    if (beside && columns == 4u && gate == 0u) {
        let scales = scales_of_four(rows.x, k);
        found.a_scale = vec2<f32>(scales.x, 0.0);
        found.b_scale = vec2<f32>(scales.y, 0.0);
        found.c_scale = vec2<f32>(scales.z, 0.0);
        found.d_scale = vec2<f32>(scales.w, 0.0);
        return found;
    }
    found.a_scale = chunk_scale(rows.x, k);
    found.b_scale = chunk_scale(rows.y, k);
    if (columns == 4u) {
        found.c_scale = chunk_scale(rows.z, k);
        found.d_scale = chunk_scale(rows.w, k);
    }
    return found;
}

fn dot_words(q: vec2<u32>, w: vec2<u32>) -> i32 {
    return dot4I8Packed(q.x, w.x) + dot4I8Packed(q.y, w.y);
}

// What a chunk adds to the sum of a row of w; slot `at` has the numbers of x beside it.
fn chunk_sum(q: vec4<u32>, scale: vec2<f32>, at: u32) -> f32 {
    let base = at * pitch;
    let w0 = x_tile[base];
    let w1 = x_tile[base + 1u];
    var high = 0;
    var low = 0;
    var rest = 0;
    if (chunk == 32u) {
        let w2 = x_tile[base + 2u];
        let w3 = x_tile[base + 3u];
        let mask = vec4<u32>(0x0f0f0f0fu);
        let first = select(q & mask, (q >> vec4<u32>(4u)) & mask, code_kind == 1u);
        let second = select((q >> vec4<u32>(4u)) & mask, q & mask, code_kind == 1u);
        let e0 = vec2<u32>(first.x, second.x);
        let e1 = vec2<u32>(first.y, second.y);
        let e2 = vec2<u32>(first.z, second.z);
        let e3 = vec2<u32>(first.w, second.w);
        high = dot_words(e0, w0.xy) + dot_words(e1, w1.xy);
        high += dot_words(e2, w2.xy) + dot_words(e3, w3.xy);
        low = dot_words(e0, w0.zw) + dot_words(e1, w1.zw);
        low += dot_words(e2, w2.zw) + dot_words(e3, w3.zw);
        rest = dot_words(e0, x_rest[base]) + dot_words(e1, x_rest[base + 1u]);
        rest += dot_words(e2, x_rest[base + 2u]) + dot_words(e3, x_rest[base + 3u]);
    } else {
        high = dot_words(q.xy, w0.xy) + dot_words(q.zw, w1.xy);
        low = dot_words(q.xy, w0.zw) + dot_words(q.zw, w1.zw);
        rest = dot_words(q.xy, x_rest[base]) + dot_words(q.zw, x_rest[base + 1u]);
    }
    let sums = x_sums[at];
    let factor = bitcast<f32>(sums.z);
    let pairs = (high << 8u) + low - i32(zero) * sums.x;
    let value = f32(pairs) + f32(rest - i32(zero) * sums.y) * (1.0 / 254.0);
    if (has_minima()) {
        let sum = f32(sums.x) + f32(sums.y) * (1.0 / 254.0);
        return (value * scale.x + sum * scale.y) * factor;
    }
    // In this order, since factor times scale may be too small for a float where neither is.
    return value * factor * scale.x;
}

fn chunk_sums(q: Codes, at: u32) -> vec4<f32> {
    let left = vec2<f32>(chunk_sum(q.a, q.a_scale, at), chunk_sum(q.b, q.b_scale, at));
    if (columns == 2u) {
        return vec4<f32>(left, 0.0, 0.0);
    }
    return vec4<f32>(left, chunk_sum(q.c, q.c_scale, at), chunk_sum(q.d, q.d_scale, at));
}

// Sums over the lanes of a set, as far as they are neighbours: of column lane % columns alone, since
// what a lane leaves to its neighbours first need not be exchanged later.
fn together(sums: vec4<f32>, lane: u32) -> f32 {
    let odd = (lane & 1u) != 0u;
    var found = 0.0;
    if (columns == 2u) {
        found = select(sums.x, sums.y, odd) + quadSwapX(select(sums.y, sums.x, odd));
        found += quadSwapY(found);
    } else {
        let pair = select(sums.xz, sums.yw, odd) + quadSwapX(select(sums.yw, sums.xz, odd));
        let high = (lane & 2u) != 0u;
        found = select(pair.x, pair.y, high) + quadSwapY(select(pair.y, pair.x, high));
    }
    if (lanes >= 8u && subgroup >= 8u) {
        found += subgroupShuffleXor(found, 4u);
    }
    if (lanes >= 16u && subgroup >= 16u) {
        found += subgroupShuffleXor(found, 8u);
    }
    if (lanes >= 32u && subgroup >= 32u) {
        found += subgroupShuffleXor(found, 16u);
    }
    return found;
}

@compute @workgroup_size(wg_size)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let per_set = select(columns, columns / 2u, gate != 0u);
    let cols = per_set * (wg_size / lanes);
    let across = (params.n + cols - 1u) / cols;
    let at = group_index(group, groups);
    let row = at / across;
    if (row >= params.m) {
        return;
    }
    let col = at % across * cols + thread / lanes * per_set;
    let lane = thread % lanes;
    let rows = vec4<u32>(w_row(col, 0u), w_row(col, 1u), w_row(col, 2u), w_row(col, 3u));
    let added = residual_at(row, select(params.n, col + lane, lane < per_set));
    let chunks = params.k / chunk;
    var sums = vec4<f32>(0.0);
    var own_squares = 0.0;
    let q = fetch(rows, lane);
    var next: Codes;
    if (lanes < slots) {
        next = fetch(rows, lane + lanes);
    }
    own_squares = stage(thread, row, 0u);
    workgroupBarrier();
    // As for x, the first turns are no loop.
    var third: Codes;
    if (2u * lanes < slots) {
        third = fetch(rows, lane + 2u * lanes);
    }
    sums = chunk_sums(q, lane);
    var fourth: Codes;
    if (3u * lanes < slots) {
        fourth = fetch(rows, lane + 3u * lanes);
    }
    if (lanes < slots) {
        sums += chunk_sums(next, lane + lanes);
    }
    var fifth: Codes;
    if (4u * lanes < slots) {
        fifth = fetch(rows, lane + 4u * lanes);
    }
    if (2u * lanes < slots) {
        sums += chunk_sums(third, lane + 2u * lanes);
    }
    if (3u * lanes < slots) {
        sums += chunk_sums(fourth, lane + 3u * lanes);
    }
    if (4u * lanes < slots) {
        sums += chunk_sums(fifth, lane + 4u * lanes);
    }
    for (var turn = 5u * lanes; turn < slots; turn += lanes) {
        sums += chunk_sums(fetch(rows, turn + lane), turn + lane);
    }
    for (var first = slots; first < chunks; first += slots) {
        workgroupBarrier();
        own_squares += stage(thread, row, first);
        workgroupBarrier();
        for (var turn = 0u; turn < slots; turn += lanes) {
            sums += chunk_sums(fetch(rows, first + turn + lane), turn + lane);
        }
    }
    var sum = together(sums, lane);
    let joined = min(lanes, subgroup);
    if (lanes > joined) {
        if (thread % joined < columns) {
            partial[thread / joined * columns + thread % joined] = sum;
        }
        workgroupBarrier();
        let first = thread / lanes * (lanes / joined) * columns + lane % columns;
        sum = partial[first] + partial[first + columns];
        if (lanes >= 4u * joined) {
            sum += partial[first + 2u * columns] + partial[first + 3u * columns];
        }
        for (var i = 4u; i < lanes / joined; i++) {
            sum += partial[first + i * columns];
        }
    }
    if (has_norm) {
        sum *= inverseSqrt(workgroup_sum(thread, own_squares) / f32(params.k) + params.eps);
    }
    if (gate != 0u) {
        let up = subgroupShuffleXor(sum, per_set);
        sum = gated_sum(col + lane, sum, up);
    } else if (lane < per_set) {
        sum = biased(sum, col + lane);
    }
    if (lane < per_set) {
        store(row, col + lane, sum, added);
    }
}
