//! lib: grid, packed, gate, packed_linear
// Packed linear for many rows: tiles of 64 columns by 64 or 32 rows, 64 invocations, 8 columns by
// 8 or 4 rows each. Weights are dequantized once a tile, into workgroup memory. Both tiles lie
// as vec4 along k; `slot` spreads the rows over the memory banks. With a gate, a tile's columns are
// 32 gates and what they gate, so that an invocation holds both.

override chunk: u32 = 32u; // elements in 16 bytes of codes: 32, 16, 8 or 4
override per_word: bool = false; // u4 with groups of no multiple of 32: a scale for each word
override tall: bool = true; // 64 rows a tile, else 32

const DEPTH = 16u;

var<workgroup> x_tile: array<vec4<f32>, 256>;
var<workgroup> w_tile: array<vec4<f32>, 256>;

struct Rows {
    r0: vec4<f32>,
    r1: vec4<f32>,
    r2: vec4<f32>,
    r3: vec4<f32>,
}

fn slot(row: u32, quarter: u32) -> u32 {
    return row * 4u + (quarter ^ ((row >> 1u) & 3u));
}

fn load_x(thread: u32, row: u32, k0: u32) {
    let start = (row * params.k + k0) >> 2u;
    for (var j = 0u; j < DEPTH / 4u; j++) {
        var v = vec4<f32>(0.0);
        if (row < params.m && k0 + 4u * j < params.k) {
            v = x[start + j];
        }
        x_tile[slot(thread, j)] = v * place();
    }
}

// The row of w behind column t of the tile.
fn tile_row(first_col: u32, t: u32) -> u32 {
    if (gate == 0u) {
        return min(first_col + t, params.n - 1u);
    }
    return min(first_col + (t & 31u), params.n - 1u) + select(0u, params.n, t >= 32u);
}

fn load_w(thread: u32, row: u32, k0: u32) {
    let step = min(chunk, DEPTH);
    var s = vec2<f32>(0.0);
    for (var i = 0u; i < DEPTH / step; i++) {
        let k = k0 + i * step;
        var q = vec4<u32>(0u);
        let inside = k < params.k;
        if (inside) {
            q = codes[(row * params.row_bytes + k / chunk * 16u) >> 4u];
            s = scale_of(row, k);
        }
        if (chunk == 32u && (k & 16u) != 0u) {
            q = q.zwzw;
        }
        for (var j = 0u; j < step / 4u; j++) {
            if (per_word && inside && j == 2u) {
                s = scale_of(row, k + 8u);
            }
            var v = quad(q, j) * s.x;
            if (scale_kind == 2u || scale_kind == 5u) {
                // The activation carries place(), so the minimum takes it off again.
                v += s.y / place();
            }
            w_tile[slot(thread, i * step / 4u + j)] = v;
        }
    }
}

fn x_rows(ty: u32, first: u32, quarter: u32) -> Rows {
    return Rows(
        x_tile[slot(ty + first, quarter)],
        x_tile[slot(ty + first + 8u, quarter)],
        x_tile[slot(ty + first + 16u, quarter)],
        x_tile[slot(ty + first + 24u, quarter)],
    );
}

fn dot_onto(sum: f32, u: vec4<f32>, v: vec4<f32>) -> f32 {
    return sum + u.x * v.x + u.y * v.y + u.z * v.z + u.w * v.w;
}

fn onto(sum: vec4<f32>, u: Rows, w: vec4<f32>) -> vec4<f32> {
    return vec4<f32>(
        dot_onto(sum.x, u.r0, w),
        dot_onto(sum.y, u.r1, w),
        dot_onto(sum.z, u.r2, w),
        dot_onto(sum.w, u.r3, w),
    );
}

fn write_rows(row: u32, col: u32, sum: vec4<f32>) {
    write(row, col, sum.x);
    write(row + 8u, col, sum.y);
    write(row + 16u, col, sum.z);
    write(row + 24u, col, sum.w);
}

fn write_gated_rows(row: u32, col: u32, g: vec4<f32>, up: vec4<f32>) {
    write_gated(row, col, g.x, up.x);
    write_gated(row + 8u, col, g.y, up.y);
    write_gated(row + 16u, col, g.z, up.z);
    write_gated(row + 24u, col, g.w, up.w);
}

// An invocation's columns of 32 rows: one every 8.
fn write_block(row: u32, col: u32, sums: array<vec4<f32>, 8>) {
    if (gate != 0u) {
        for (var j = 0u; j < 4u; j++) {
            write_gated_rows(row, col + 8u * j, sums[j], sums[j + 4u]);
        }
        return;
    }
    for (var j = 0u; j < 8u; j++) {
        write_rows(row, col + 8u * j, sums[j]);
    }
}

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let edge = select(32u, 64u, tall);
    let down = (params.m + edge - 1u) / edge;
    let at = group_index(group, groups);
    let first_row = at % down * edge;
    let first_col = at / down * select(64u, 32u, gate != 0u);
    if (first_col >= params.n) {
        return;
    }
    let w_row = tile_row(first_col, thread);
    let tx = thread & 7u;
    let ty = thread >> 3u;
    let none = vec4<f32>(0.0);
    var a0 = none;
    var a1 = none;
    var a2 = none;
    var a3 = none;
    var a4 = none;
    var a5 = none;
    var a6 = none;
    var a7 = none;
    var b0 = none;
    var b1 = none;
    var b2 = none;
    var b3 = none;
    var b4 = none;
    var b5 = none;
    var b6 = none;
    var b7 = none;
    for (var k0 = 0u; k0 < params.k; k0 += DEPTH) {
        if (thread < edge) {
            load_x(thread, first_row + thread, k0);
        }
        load_w(thread, w_row, k0);
        workgroupBarrier();
        for (var q = 0u; q < DEPTH / 4u; q++) {
            let w0 = w_tile[slot(tx, q)];
            let w1 = w_tile[slot(tx + 8u, q)];
            let w2 = w_tile[slot(tx + 16u, q)];
            let w3 = w_tile[slot(tx + 24u, q)];
            let w4 = w_tile[slot(tx + 32u, q)];
            let w5 = w_tile[slot(tx + 40u, q)];
            let w6 = w_tile[slot(tx + 48u, q)];
            let w7 = w_tile[slot(tx + 56u, q)];
            let u = x_rows(ty, 0u, q);
            a0 = onto(a0, u, w0);
            a1 = onto(a1, u, w1);
            a2 = onto(a2, u, w2);
            a3 = onto(a3, u, w3);
            a4 = onto(a4, u, w4);
            a5 = onto(a5, u, w5);
            a6 = onto(a6, u, w6);
            a7 = onto(a7, u, w7);
            if (tall) {
                let v = x_rows(ty, 32u, q);
                b0 = onto(b0, v, w0);
                b1 = onto(b1, v, w1);
                b2 = onto(b2, v, w2);
                b3 = onto(b3, v, w3);
                b4 = onto(b4, v, w4);
                b5 = onto(b5, v, w5);
                b6 = onto(b6, v, w6);
                b7 = onto(b7, v, w7);
            }
        }
        workgroupBarrier();
    }
    let row = first_row + ty;
    let col = first_col + tx;
    write_block(row, col, array(a0, a1, a2, a3, a4, a5, a6, a7));
    if (tall) {
        write_block(row + 32u, col, array(b0, b1, b2, b3, b4, b5, b6, b7));
    }
}
