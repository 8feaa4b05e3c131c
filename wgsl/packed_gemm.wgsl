//! lib: grid, packed, gate, packed_linear, packed_tile
// Packed linear for many rows: tiles of 64 columns by 1, 2 or 4 blocks of 32 rows, 128 invocations,
// 4 columns by 4 rows of each block. Weights are dequantized once a tile, into workgroup memory, and
// the next tile's words are on their way while this one is multiplied. Both tiles lie as vec4 along
// k; `slot` spreads the rows over the memory banks. With a gate, a tile's columns are 32 gates and
// what they gate, so that an invocation holds both. Where tiles are too few for a GPU, `splits`
// workgroups share the k of one and packed_merge adds up what they write.

override blocks: u32 = 2u; // 1, 2 or 4
override x_count: u32 = 256u * blocks;

const DEPTH = 32u;
const QUADS = 8u;
const THREADS = 128u;

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;

var<workgroup> x_tile: array<vec4<f32>, x_count>;
var<workgroup> w_tile: array<vec4<f32>, 512>;

// An invocation's share of the next tiles: 2 vec4 of x a block, 16 elements of one row of w.
struct Ahead {
    x: array<vec4<f32>, 8>,
    w: array<vec4<u32>, 4>,
}

fn slot(row: u32, quad: u32) -> u32 {
    return row * QUADS + (quad ^ (row & 7u));
}

fn fetch_x(thread: u32, i: u32, first_row: u32, k0: u32) -> vec4<f32> {
    let at = thread + i * THREADS;
    let row = first_row + at / QUADS;
    let k = k0 + 4u * (at % QUADS);
    if (row < params.m && k < params.k) {
        return x[(row * params.k + k) / 4u];
    }
    return vec4<f32>(0.0);
}

fn fetch(thread: u32, first_row: u32, w_row: u32, k0: u32) -> Ahead {
    var next: Ahead;
    for (var i = 0u; i < 2u * blocks; i++) {
        next.x[i] = fetch_x(thread, i, first_row, k0);
    }
    next.w = fetch_words(thread, w_row, k0);
    return next;
}

fn store_w(thread: u32, words: array<vec4<u32>, 4>, row: u32, k0: u32) {
    let first = k0 + 16u * (thread & 1u);
    var s = vec2<f32>(0.0);
    for (var j = 0u; j < 4u; j++) {
        let k = first + 4u * j;
        if (k < params.k && (j == 0u || (per_word && j == 2u) || 4u * j % chunk == 0u)) {
            s = scale_of(row, k);
        }
        var v = vec4<f32>(0.0);
        if (k < params.k) {
            v = code_quad(words, thread, j) * s.x;
            if (scale_kind == 2u || scale_kind == 5u) {
                // The activation carries place(), so the minimum takes it off again.
                v += s.y / place();
            }
        }
        w_tile[slot(thread / 2u, 4u * (thread & 1u) + j)] = v;
    }
}

// The row of w behind column t of the tile.
fn tile_row(first_col: u32, t: u32) -> u32 {
    if (gate == 0u) {
        return min(first_col + t, params.n - 1u);
    }
    return min(first_col + (t & 31u), params.n - 1u) + select(0u, params.n, t >= 32u);
}

fn dot_onto(sum: f32, u: vec4<f32>, v: vec4<f32>) -> f32 {
    return sum + u.x * v.x + u.y * v.y + u.z * v.z + u.w * v.w;
}

struct Rows {
    r0: vec4<f32>,
    r1: vec4<f32>,
    r2: vec4<f32>,
    r3: vec4<f32>,
}

fn x_rows(ty: u32, first: u32, quad: u32) -> Rows {
    return Rows(
        x_tile[slot(ty + first, quad)],
        x_tile[slot(ty + first + 8u, quad)],
        x_tile[slot(ty + first + 16u, quad)],
        x_tile[slot(ty + first + 24u, quad)],
    );
}

fn onto(sum: vec4<f32>, u: Rows, w: vec4<f32>) -> vec4<f32> {
    return vec4<f32>(
        dot_onto(sum.x, u.r0, w),
        dot_onto(sum.y, u.r1, w),
        dot_onto(sum.z, u.r2, w),
        dot_onto(sum.w, u.r3, w),
    );
}

// Splits follow each other in y, each with all rows.
fn write_split(row: u32, col: u32, value: f32, split: u32) {
    if (row < params.m && col < params.n) {
        y[(split * params.m + row) * params.y_row + params.n_first + col] = value;
    }
}

// An invocation's 4 columns of 4 rows, one every 8.
fn write_block(row: u32, col: u32, sums: array<vec4<f32>, 4>, split: u32) {
    for (var i = 0u; i < 4u; i++) {
        let at = row + 8u * i;
        if (params.splits > 1u) {
            write_split(at, col, sums[0][i], split);
            write_split(at, col + 16u, sums[1][i], split);
            write_split(at, col + 32u, sums[2][i], split);
            write_split(at, col + 48u, sums[3][i], split);
        } else if (gate != 0u) {
            write_gated(at, col, sums[0][i], sums[2][i]);
            write_gated(at, col + 16u, sums[1][i], sums[3][i]);
        } else {
            write(at, col, sums[0][i]);
            write(at, col + 16u, sums[1][i]);
            write(at, col + 32u, sums[2][i]);
            write(at, col + 48u, sums[3][i]);
        }
    }
}

@compute @workgroup_size(128)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let edge = 32u * blocks;
    let down = (params.m + edge - 1u) / edge;
    let index = group_index(group, groups);
    let at = index / params.splits;
    let first_row = at % down * edge;
    let first_col = at / down * select(64u, 32u, gate != 0u);
    if (first_col >= params.n) {
        return;
    }
    let stretch = (params.k + DEPTH * params.splits - 1u) / (DEPTH * params.splits) * DEPTH;
    let begin = index % params.splits * stretch;
    let end = min(begin + stretch, params.k);
    let w_row = tile_row(first_col, thread / 2u);
    let tx = thread & 15u;
    let ty = thread / 16u;
    let none = vec4<f32>(0.0);
    var a0 = none;
    var a1 = none;
    var a2 = none;
    var a3 = none;
    var b0 = none;
    var b1 = none;
    var b2 = none;
    var b3 = none;
    var c0 = none;
    var c1 = none;
    var c2 = none;
    var c3 = none;
    var d0 = none;
    var d1 = none;
    var d2 = none;
    var d3 = none;
    var next = fetch(thread, first_row, w_row, begin);
    for (var k0 = begin; k0 < end; k0 += DEPTH) {
        for (var i = 0u; i < 2u * blocks; i++) {
            let v = thread + i * THREADS;
            x_tile[slot(v / QUADS, v % QUADS)] = next.x[i] * place();
        }
        store_w(thread, next.w, w_row, k0);
        workgroupBarrier();
        next = fetch(thread, first_row, w_row, k0 + DEPTH);
        for (var q = 0u; q < QUADS; q++) {
            let w0 = w_tile[slot(tx, q)];
            let w1 = w_tile[slot(tx + 16u, q)];
            let w2 = w_tile[slot(tx + 32u, q)];
            let w3 = w_tile[slot(tx + 48u, q)];
            let u = x_rows(ty, 0u, q);
            a0 = onto(a0, u, w0);
            a1 = onto(a1, u, w1);
            a2 = onto(a2, u, w2);
            a3 = onto(a3, u, w3);
            if (blocks >= 2u) {
                let v = x_rows(ty, 32u, q);
                b0 = onto(b0, v, w0);
                b1 = onto(b1, v, w1);
                b2 = onto(b2, v, w2);
                b3 = onto(b3, v, w3);
            }
            if (blocks == 4u) {
                let s = x_rows(ty, 64u, q);
                c0 = onto(c0, s, w0);
                c1 = onto(c1, s, w1);
                c2 = onto(c2, s, w2);
                c3 = onto(c3, s, w3);
                let t = x_rows(ty, 96u, q);
                d0 = onto(d0, t, w0);
                d1 = onto(d1, t, w1);
                d2 = onto(d2, t, w2);
                d3 = onto(d3, t, w3);
            }
        }
        workgroupBarrier();
    }
    let row = first_row + ty;
    let col = first_col + tx;
    write_block(row, col, array(a0, a1, a2, a3), index % params.splits);
    if (blocks >= 2u) {
        write_block(row + 32u, col, array(b0, b1, b2, b3), index % params.splits);
    }
    if (blocks == 4u) {
        write_block(row + 64u, col, array(c0, c1, c2, c3), index % params.splits);
        write_block(row + 96u, col, array(d0, d1, d2, d3), index % params.splits);
    }
}
