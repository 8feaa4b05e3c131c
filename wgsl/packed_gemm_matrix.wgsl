//! lib: grid, packed, gate, packed_linear, packed_tile
enable f16;
enable subgroups;
enable chromium_experimental_subgroup_matrix;
// Packed linear for many rows by subgroup matrices, which are a GPU's tensor cores: float16
// factors, float32 sums. x is what half_rows made of it. Tiles of 128 columns by 128 or 64 rows; 8
// subgroups of 32 hold 64 columns of a quarter of the rows each. As in packed_gemm, weights are
// dequantized once a tile, the next tile's words are on their way meanwhile, and `splits`
// workgroups share the k of a tile. With a gate, a subgroup's columns are 32 gates and what they
// gate.
// Of workgroups this small two run side by side, one computing while the other waits: with 256
// columns and 512 invocations, which fill a processor, it took 3 to 25 % more time (H200).
// Workgroup memory is vec4<u32>, 8 halves each: written half by half it took 40 % more time (H200).
// The order of k within 8 is half_rows's, the same for both factors.

override tall: bool = true; // 128 rows a tile, else 64

const DEPTH = 32u;
const COLUMNS = 128u;
const SPAN = 64u; // columns of a subgroup
// vec4 from row to row of a tile: one more than a row has, to spread rows over the memory banks.
const STRIDE = 5u;
const W_TILE = 640u; // where the weights' tile begins, behind 128 rows of x
const FRAGMENT = 64u; // vec4 of 16 by 16 sums

alias Left = subgroup_matrix_left<f16, 16, 16>;
alias Right = subgroup_matrix_right<f16, 16, 16>;
alias Sums = subgroup_matrix_result<f32, 16, 16>;

@group(0) @binding(0) var<storage, read> x: array<vec4<u32>>;
@group(0) @binding(6) var<storage, read> row_scales: array<f32>;

// Both tiles, and at the end two fragments of every subgroup.
var<workgroup> tile: array<vec4<u32>, 1280>;

struct Ahead {
    x: vec4<u32>,
    low_x: vec4<u32>, // 64 rows further down
    w: array<vec4<u32>, 4>,
}

fn fetch_x(row: u32, k: u32) -> vec4<u32> {
    if (row < params.m && k < params.k) {
        return x[(row * params.k + k) / 8u];
    }
    return vec4<u32>(0u);
}

fn fetch(thread: u32, first_row: u32, w_row: u32, k0: u32) -> Ahead {
    var next: Ahead;
    let row = first_row + thread / 4u;
    let k = k0 + 8u * (thread % 4u);
    next.x = fetch_x(row, k);
    if (tall) {
        next.low_x = fetch_x(row + 64u, k);
    }
    next.w = fetch_words(thread, w_row, k0);
    return next;
}

// 8 elements of a row of w from quad j of its words on.
fn w_halves(words: array<vec4<u32>, 4>, thread: u32, j: u32, s: vec2<f32>) -> vec4<u32> {
    let a = code_quad(words, thread, j) * (place() * s.x) + s.y;
    let b = code_quad(words, thread, j + 1u) * (place() * s.x) + s.y;
    return vec4<u32>(
        pack2x16float(vec2<f32>(a.x, b.x)),
        pack2x16float(vec2<f32>(a.y, b.y)),
        pack2x16float(vec2<f32>(a.z, b.z)),
        pack2x16float(vec2<f32>(a.w, b.w)),
    );
}

fn store_w(thread: u32, words: array<vec4<u32>, 4>, row: u32, k0: u32) {
    let k = k0 + 16u * (thread & 1u);
    let base = W_TILE + thread / 2u * STRIDE + 2u * (thread & 1u);
    let s = scale_of(row, min(k, params.k - 1u));
    var t = s;
    if (per_word || chunk <= 8u) {
        t = scale_of(row, min(k + 8u, params.k - 1u));
    }
    let none = vec4<u32>(0u);
    tile[base] = select(none, w_halves(words, thread, 0u, s), k < params.k);
    tile[base + 1u] = select(none, w_halves(words, thread, 2u, t), k + 8u < params.k);
}

// The row of w behind column t of the tile.
fn tile_row(first_col: u32, t: u32) -> u32 {
    if (gate == 0u) {
        return min(first_col + t, params.n - 1u);
    }
    let col = first_col + t / SPAN * (SPAN / 2u) + t % (SPAN / 2u);
    return min(col, params.n - 1u) + select(0u, params.n, t % SPAN >= SPAN / 2u);
}

fn put(row: u32, col: u32, split: u32, left: f32, right: f32) {
    if (row >= params.m) {
        return;
    }
    let u = left * row_scales[row];
    let v = right * row_scales[row];
    if (params.splits > 1u) {
        let at = (split * params.m + row) * params.y_row + params.n_first + col;
        if (col < params.n) {
            y[at] = u;
        }
        if (col + SPAN / 2u < params.n) {
            y[at + SPAN / 2u] = v;
        }
    } else if (gate != 0u) {
        write_gated(row, col, u, v);
    } else {
        write(row, col, u);
        write(row, col + SPAN / 2u, v);
    }
}

// Of two fragments' 512 sums those that invocation `lane` writes in turn i.
fn put_turn(i: u32, row: u32, col: u32, split: u32, mine: u32, lane: u32) {
    let at = mine + 8u * i + lane / 4u;
    let u = bitcast<f32>(tile[at][lane % 4u]);
    let v = bitcast<f32>(tile[at + FRAGMENT][lane % 4u]);
    put(row + 2u * i + lane / 16u, col + lane % 16u, split, u, v);
}

// Two fragments of 16 rows, SPAN / 2 columns apart or a gate and what it gates.
fn put_both(row: u32, col: u32, split: u32, subgroup: u32, lane: u32, left: Sums, right: Sums) {
    let mine = 2u * FRAGMENT * subgroup;
    subgroupMatrixStore<row_major>(&tile, mine, left, 4u);
    subgroupMatrixStore<row_major>(&tile, mine + FRAGMENT, right, 4u);
    workgroupBarrier();
    // By hand, as browsers guard loops with a counter, which compilers seem to keep.
    put_turn(0u, row, col, split, mine, lane);
    put_turn(1u, row, col, split, mine, lane);
    put_turn(2u, row, col, split, mine, lane);
    put_turn(3u, row, col, split, mine, lane);
    put_turn(4u, row, col, split, mine, lane);
    put_turn(5u, row, col, split, mine, lane);
    put_turn(6u, row, col, split, mine, lane);
    put_turn(7u, row, col, split, mine, lane);
    workgroupBarrier();
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(subgroup_invocation_id) lane: u32,
) {
    let edge = select(64u, 128u, tall);
    let down = (params.m + edge - 1u) / edge;
    let index = group_index(group, groups);
    let at = index / params.splits;
    let split = index % params.splits;
    let first_row = at % down * edge;
    let first_col = at / down * select(COLUMNS, COLUMNS / 2u, gate != 0u);
    if (first_col >= params.n) {
        return;
    }
    let stretch = (params.k + DEPTH * params.splits - 1u) / (DEPTH * params.splits) * DEPTH;
    let begin = split * stretch;
    let end = min(begin + stretch, params.k);
    let w_row = tile_row(first_col, thread / 2u);
    let my_row = subgroup / 2u * (edge / 4u);
    let my_span = subgroup % 2u;
    var a0: Sums;
    var a1: Sums;
    var a2: Sums;
    var a3: Sums;
    var b0: Sums;
    var b1: Sums;
    var b2: Sums;
    var b3: Sums;
    var next = fetch(thread, first_row, w_row, begin);
    for (var k0 = begin; k0 < end; k0 += DEPTH) {
        tile[thread / 4u * STRIDE + thread % 4u] = next.x;
        if (tall) {
            tile[(64u + thread / 4u) * STRIDE + thread % 4u] = next.low_x;
        }
        store_w(thread, next.w, w_row, k0);
        workgroupBarrier();
        next = fetch(thread, first_row, w_row, k0 + DEPTH);
        // Two steps of 16 by hand: as a loop they took 30 % more time (H200).
        let w_at = W_TILE + my_span * SPAN * STRIDE;
        let x_at = my_row * STRIDE;
        let w00 = subgroupMatrixLoad<Right, col_major>(&tile, w_at + 0u + 0u * STRIDE, STRIDE);
        let w01 = subgroupMatrixLoad<Right, col_major>(&tile, w_at + 0u + 16u * STRIDE, STRIDE);
        let w02 = subgroupMatrixLoad<Right, col_major>(&tile, w_at + 0u + 32u * STRIDE, STRIDE);
        let w03 = subgroupMatrixLoad<Right, col_major>(&tile, w_at + 0u + 48u * STRIDE, STRIDE);
        let u0 = subgroupMatrixLoad<Left, row_major>(&tile, x_at + 0u, STRIDE);
        a0 = subgroupMatrixMultiplyAccumulate(u0, w00, a0);
        a1 = subgroupMatrixMultiplyAccumulate(u0, w01, a1);
        a2 = subgroupMatrixMultiplyAccumulate(u0, w02, a2);
        a3 = subgroupMatrixMultiplyAccumulate(u0, w03, a3);
        if (tall) {
            let v0 = subgroupMatrixLoad<Left, row_major>(&tile, x_at + 0u + 16u * STRIDE, STRIDE);
            b0 = subgroupMatrixMultiplyAccumulate(v0, w00, b0);
            b1 = subgroupMatrixMultiplyAccumulate(v0, w01, b1);
            b2 = subgroupMatrixMultiplyAccumulate(v0, w02, b2);
            b3 = subgroupMatrixMultiplyAccumulate(v0, w03, b3);
        }
        let w20 = subgroupMatrixLoad<Right, col_major>(&tile, w_at + 2u + 0u * STRIDE, STRIDE);
        let w21 = subgroupMatrixLoad<Right, col_major>(&tile, w_at + 2u + 16u * STRIDE, STRIDE);
        let w22 = subgroupMatrixLoad<Right, col_major>(&tile, w_at + 2u + 32u * STRIDE, STRIDE);
        let w23 = subgroupMatrixLoad<Right, col_major>(&tile, w_at + 2u + 48u * STRIDE, STRIDE);
        let u2 = subgroupMatrixLoad<Left, row_major>(&tile, x_at + 2u, STRIDE);
        a0 = subgroupMatrixMultiplyAccumulate(u2, w20, a0);
        a1 = subgroupMatrixMultiplyAccumulate(u2, w21, a1);
        a2 = subgroupMatrixMultiplyAccumulate(u2, w22, a2);
        a3 = subgroupMatrixMultiplyAccumulate(u2, w23, a3);
        if (tall) {
            let v2 = subgroupMatrixLoad<Left, row_major>(&tile, x_at + 2u + 16u * STRIDE, STRIDE);
            b0 = subgroupMatrixMultiplyAccumulate(v2, w20, b0);
            b1 = subgroupMatrixMultiplyAccumulate(v2, w21, b1);
            b2 = subgroupMatrixMultiplyAccumulate(v2, w22, b2);
            b3 = subgroupMatrixMultiplyAccumulate(v2, w23, b3);
        }
        workgroupBarrier();
    }
    let row = first_row + my_row;
    let col = first_col + my_span * select(SPAN, SPAN / 2u, gate != 0u);
    put_both(row, col, split, subgroup, lane, a0, a2);
    put_both(row, col + 16u, split, subgroup, lane, a1, a3);
    if (tall) {
        put_both(row + 16u, col, split, subgroup, lane, b0, b2);
        put_both(row + 16u, col + 16u, split, subgroup, lane, b1, b3);
    }
}
