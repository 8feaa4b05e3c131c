//! lib: grid, packed, packed_linear, gate, packed_tile, int8_pair, int8_tile
enable subgroups;
enable chromium_experimental_subgroup_matrix;
// Packed linear for many rows by subgroup matrices of int8. Both factors are pairs of int8: x is
// what pair_rows made of it, codes times scales become pairs once a tile, by the largest of their
// column. Products of high bytes and those of a high and a low one are summed apart, as integers,
// so exactly; products of two low ones, 2^-16 of the largest at most, are left out.
// Tiles of `rows` rows by 128 columns; 8 subgroups of 32. As in packed_gemm the next tile's words
// are on their way meanwhile, and `splits` workgroups share the k of a tile.

override rows: u32 = 128u; // 16, 32, 64 or 128; `chunk` is 32 or 16
// Subgroups one below the other, and the fragments of 16 by 16 sums that each holds.
override down: u32 = select(select(2u, 4u, rows == 128u), 1u, rows == 16u);
override two_high: bool = rows >= 64u;
// Elements of k that a tile has: 64 where that leaves a workgroup's memory small enough.
override depth: u32 = select(64u, 32u, rows == 128u);
override vectors: u32 = depth / 8u;
// vec4 from row to row of a tile: one more than a row has, to spread rows over the memory banks.
override stride: u32 = vectors + 1u;
override tile_vectors: u32 = max((rows + 128u) * stride, 1024u);

const COLUMNS = 128u;
const FRAGMENT = 64u; // vec4 of 16 by 16 sums

alias Left = subgroup_matrix_left<i8, 32, 16>;
alias Right = subgroup_matrix_right<i8, 16, 32>;
alias Sums = subgroup_matrix_result<i32, 16, 16>;

@group(0) @binding(0) var<storage, read> x: array<vec4<u32>>;
@group(0) @binding(6) var<storage, read> row_scales: array<f32>;

// Rows of x, then those of w; at the end two fragments of every subgroup.
var<workgroup> tile: array<vec4<u32>, tile_vectors>;
var<workgroup> column_scales: array<f32, COLUMNS>;
var<workgroup> column_most: array<u32, 256>;

fn left(row: u32, vector: u32) -> Left {
    return subgroupMatrixLoad<Left, row_major>(&tile, row * stride + vector, stride);
}

fn right(row: u32, vector: u32) -> Right {
    return subgroupMatrixLoad<Right, col_major>(&tile, row * stride + vector, stride);
}

fn onto(sums: Sums, a: Left, b: Right) -> Sums {
    return subgroupMatrixMultiplyAccumulate(a, b, sums);
}

fn put(row: u32, at: u32, col: u32, split: u32, value: f32) {
    if (row >= params.m || col >= params.n) {
        return;
    }
    let scaled = value * column_scales[at] * row_scales[row];
    if (params.splits > 1u) {
        y[(split * params.m + row) * params.y_row + params.n_first + col] = scaled;
    } else {
        write(row, col, scaled);
    }
}

// Of a fragment's 256 sums those that invocation `lane` writes in turn i.
fn put_turn(i: u32, row: u32, at: u32, first_col: u32, split: u32, mine: u32, lane: u32) {
    let vector = mine + 8u * i + lane / 4u;
    let high = f32(bitcast<i32>(tile[vector][lane % 4u]));
    let mixed = f32(bitcast<i32>(tile[vector + FRAGMENT][lane % 4u]));
    let c = at + lane % 16u;
    let value = 65536.0 * high + 256.0 * mixed;
    put(row + 2u * i + lane / 16u, c, first_col + c, split, value);
}

// A fragment's sums of high bytes and of mixed ones; it begins at column `at` of the tile.
fn put_all(
    row: u32,
    at: u32,
    first_col: u32,
    split: u32,
    subgroup: u32,
    lane: u32,
    high: Sums,
    mixed: Sums,
) {
    let mine = 2u * FRAGMENT * subgroup;
    subgroupMatrixStore<row_major>(&tile, mine, high, 4u);
    subgroupMatrixStore<row_major>(&tile, mine + FRAGMENT, mixed, 4u);
    workgroupBarrier();
    // By hand, as browsers guard loops with a counter, which compilers seem to keep.
    put_turn(0u, row, at, first_col, split, mine, lane);
    put_turn(1u, row, at, first_col, split, mine, lane);
    put_turn(2u, row, at, first_col, split, mine, lane);
    put_turn(3u, row, at, first_col, split, mine, lane);
    put_turn(4u, row, at, first_col, split, mine, lane);
    put_turn(5u, row, at, first_col, split, mine, lane);
    put_turn(6u, row, at, first_col, split, mine, lane);
    put_turn(7u, row, at, first_col, split, mine, lane);
    workgroupBarrier();
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(subgroup_invocation_id) lane: u32,
) {
    let tiles_down = (params.m + rows - 1u) / rows;
    let index = group_index(workgroup, groups);
    let at = index / params.splits;
    let split = index % params.splits;
    let first_row = at % tiles_down * rows;
    let first_col = at / tiles_down * COLUMNS;
    if (first_col >= params.n) {
        return;
    }
    let stretch = (params.k + depth * params.splits - 1u) / (depth * params.splits) * depth;
    let begin = split * stretch;
    let end = min(begin + stretch, params.k);
    let w_row = min(first_col + thread / 2u, params.n - 1u);
    var next = fetch(thread, first_row, w_row, begin);
    // The largest of a column within the stretch, by two invocations.
    var most = 0u;
    let unit = select(16u, 32u, group % 32u == 0u);
    for (var k = begin + unit * (thread & 1u); k < end; k += 8u * unit) {
        let a = max(reach_at(w_row, k, end), reach_at(w_row, k + 2u * unit, end));
        let b = max(reach_at(w_row, k + 4u * unit, end), reach_at(w_row, k + 6u * unit, end));
        most = max(most, max(a, b));
    }
    column_most[thread] = most;
    workgroupBarrier();
    let scales = pair_scales(max(column_most[thread], column_most[thread ^ 1u]));
    if ((thread & 1u) == 0u) {
        column_scales[thread / 2u] = scales.y;
    }
    var a0_high: Sums;
    var a0_mixed: Sums;
    var b0_high: Sums;
    var b0_mixed: Sums;
    var a1_high: Sums;
    var a1_mixed: Sums;
    var b1_high: Sums;
    var b1_mixed: Sums;
    var a2_high: Sums;
    var a2_mixed: Sums;
    var b2_high: Sums;
    var b2_mixed: Sums;
    var a3_high: Sums;
    var a3_mixed: Sums;
    var b3_high: Sums;
    var b3_mixed: Sums;
    let my_row = subgroup / (8u / down) * select(16u, 32u, two_high);
    let my_col = subgroup % (8u / down) * 16u * down;
    let w_first = rows + my_col;
    for (var k0 = begin; k0 < end; k0 += depth) {
        if (rows >= 32u || thread < 128u) {
            store_x(thread, next.x0);
        }
        if (rows >= 64u) {
            store_x(thread + 256u, next.x1);
        }
        store_w(thread, next, scales.x);
        workgroupBarrier();
        next = fetch(thread, first_row, w_row, k0 + depth);
        // One or two steps of 32, by hand as in packed_gemm_matrix; products that one sum waits for are
        // kept apart.
        let u0 = left(my_row, 0u);
        let u0_low = left(my_row, 2u);
        var v0: Left;
        var v0_low: Left;
        if (two_high) {
            v0 = left(my_row + 16u, 0u);
            v0_low = left(my_row + 16u, 2u);
        }
        let w00 = right(w_first, 0u);
        let w00_low = right(w_first, 2u);
        var w01: Right;
        var w01_low: Right;
        var w02: Right;
        var w02_low: Right;
        var w03: Right;
        var w03_low: Right;
        if (down >= 2u) {
            w01 = right(w_first + 16u, 0u);
            w01_low = right(w_first + 16u, 2u);
        }
        if (down == 4u) {
            w02 = right(w_first + 32u, 0u);
            w02_low = right(w_first + 32u, 2u);
            w03 = right(w_first + 48u, 0u);
            w03_low = right(w_first + 48u, 2u);
        }
        a0_high = onto(a0_high, u0, w00);
        if (down >= 2u) {
            a1_high = onto(a1_high, u0, w01);
        }
        if (two_high) {
            b0_high = onto(b0_high, v0, w00);
            b1_high = onto(b1_high, v0, w01);
        }
        if (down == 4u) {
            a2_high = onto(a2_high, u0, w02);
            a3_high = onto(a3_high, u0, w03);
            b2_high = onto(b2_high, v0, w02);
            b3_high = onto(b3_high, v0, w03);
        }
        a0_mixed = onto(a0_mixed, u0, w00_low);
        if (down >= 2u) {
            a1_mixed = onto(a1_mixed, u0, w01_low);
        }
        if (two_high) {
            b0_mixed = onto(b0_mixed, v0, w00_low);
            b1_mixed = onto(b1_mixed, v0, w01_low);
        }
        if (down == 4u) {
            a2_mixed = onto(a2_mixed, u0, w02_low);
            a3_mixed = onto(a3_mixed, u0, w03_low);
            b2_mixed = onto(b2_mixed, v0, w02_low);
            b3_mixed = onto(b3_mixed, v0, w03_low);
        }
        a0_mixed = onto(a0_mixed, u0_low, w00);
        if (down >= 2u) {
            a1_mixed = onto(a1_mixed, u0_low, w01);
        }
        if (two_high) {
            b0_mixed = onto(b0_mixed, v0_low, w00);
            b1_mixed = onto(b1_mixed, v0_low, w01);
        }
        if (down == 4u) {
            a2_mixed = onto(a2_mixed, u0_low, w02);
            a3_mixed = onto(a3_mixed, u0_low, w03);
            b2_mixed = onto(b2_mixed, v0_low, w02);
            b3_mixed = onto(b3_mixed, v0_low, w03);
        }
        if (depth == 64u) {
            let u4 = left(my_row, 4u);
            let u4_low = left(my_row, 6u);
            var v4: Left;
            var v4_low: Left;
            if (two_high) {
                v4 = left(my_row + 16u, 4u);
                v4_low = left(my_row + 16u, 6u);
            }
            let w40 = right(w_first, 4u);
            let w40_low = right(w_first, 6u);
            var w41: Right;
            var w41_low: Right;
            var w42: Right;
            var w42_low: Right;
            var w43: Right;
            var w43_low: Right;
            if (down >= 2u) {
                w41 = right(w_first + 16u, 4u);
                w41_low = right(w_first + 16u, 6u);
            }
            if (down == 4u) {
                w42 = right(w_first + 32u, 4u);
                w42_low = right(w_first + 32u, 6u);
                w43 = right(w_first + 48u, 4u);
                w43_low = right(w_first + 48u, 6u);
            }
            a0_high = onto(a0_high, u4, w40);
            if (down >= 2u) {
                a1_high = onto(a1_high, u4, w41);
            }
            if (two_high) {
                b0_high = onto(b0_high, v4, w40);
                b1_high = onto(b1_high, v4, w41);
            }
            if (down == 4u) {
                a2_high = onto(a2_high, u4, w42);
                a3_high = onto(a3_high, u4, w43);
                b2_high = onto(b2_high, v4, w42);
                b3_high = onto(b3_high, v4, w43);
            }
            a0_mixed = onto(a0_mixed, u4, w40_low);
            if (down >= 2u) {
                a1_mixed = onto(a1_mixed, u4, w41_low);
            }
            if (two_high) {
                b0_mixed = onto(b0_mixed, v4, w40_low);
                b1_mixed = onto(b1_mixed, v4, w41_low);
            }
            if (down == 4u) {
                a2_mixed = onto(a2_mixed, u4, w42_low);
                a3_mixed = onto(a3_mixed, u4, w43_low);
                b2_mixed = onto(b2_mixed, v4, w42_low);
                b3_mixed = onto(b3_mixed, v4, w43_low);
            }
            a0_mixed = onto(a0_mixed, u4_low, w40);
            if (down >= 2u) {
                a1_mixed = onto(a1_mixed, u4_low, w41);
            }
            if (two_high) {
                b0_mixed = onto(b0_mixed, v4_low, w40);
                b1_mixed = onto(b1_mixed, v4_low, w41);
            }
            if (down == 4u) {
                a2_mixed = onto(a2_mixed, u4_low, w42);
                a3_mixed = onto(a3_mixed, u4_low, w43);
                b2_mixed = onto(b2_mixed, v4_low, w42);
                b3_mixed = onto(b3_mixed, v4_low, w43);
            }
        }
        workgroupBarrier();
    }
    let row = first_row + my_row;
    let sg = subgroup;
    put_all(row, my_col, first_col, split, sg, lane, a0_high, a0_mixed);
    if (two_high) {
        put_all(row + 16u, my_col, first_col, split, sg, lane, b0_high, b0_mixed);
        put_all(row + 16u, my_col + 16u, first_col, split, sg, lane, b1_high, b1_mixed);
    }
    if (down >= 2u) {
        put_all(row, my_col + 16u, first_col, split, sg, lane, a1_high, a1_mixed);
    }
    if (down == 4u) {
        put_all(row, my_col + 32u, first_col, split, sg, lane, a2_high, a2_mixed);
        put_all(row, my_col + 48u, first_col, split, sg, lane, a3_high, a3_mixed);
        put_all(row + 16u, my_col + 32u, first_col, split, sg, lane, b2_high, b2_mixed);
        put_all(row + 16u, my_col + 48u, first_col, split, sg, lane, b3_high, b3_mixed);
    }
}
