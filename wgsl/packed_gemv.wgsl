//! lib: grid, reduce, packed, packed_columns, gate, packed_linear
// Packed linear for few rows. `lanes` invocations share 4 columns; each reads 16 bytes of codes at a
// time, so that every word is read once, coalesced. A workgroup has one or more such sets.
// Activations go through workgroup memory, `slots` chunks of 16 bytes of codes at a time: lanes want
// 32 neighbours each, which would be a cache line a lane and load. Rows of codes are whole vec4.
// x may be normalized on its way: a workgroup sees its whole row, so that its root mean square
// costs one more sum.

override lanes: u32 = 64u; // a power of two from 4 to wg_size
override slots: u32 = 64u; // a power of two from lanes on
override quads: u32 = chunk / 4u;
// One more than a chunk has, so that neighbours read from different banks.
override pitch: u32 = quads + 1u;
override x_count: u32 = slots * pitch;
override has_norm: bool = false;

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(6) var<storage, read> norm: array<vec4<f32>>;

var<workgroup> x_tile: array<vec4<f32>, x_count>;
var<workgroup> partial: array<vec4<f32>, wg_size>;
var<workgroup> fourths: array<f32, wg_size>;

fn stage(thread: u32, row: u32, first: u32) -> f32 {
    var found = 0.0;
    for (var i = thread; i < slots * quads; i += wg_size) {
        let at = first * quads + i;
        var v = vec4<f32>(0.0);
        if (at < params.k / 4u) {
            v = x[row * (params.k / 4u) + at];
            if (has_norm) {
                found += dot(v, v);
                v *= norm[at];
            }
        }
        x_tile[i / quads * pitch + i % quads] = v * place();
    }
    return found;
}

fn staged(at: u32, j: u32) -> vec4<f32> {
    if (j < quads) {
        return x_tile[at * pitch + j];
    }
    return vec4<f32>(0.0);
}

// 16 bytes of each of a set's 4 rows, and their scales.
struct Codes {
    q0: vec4<u32>,
    q1: vec4<u32>,
    q2: vec4<u32>,
    q3: vec4<u32>,
    s0: vec4<f32>,
    s1: vec4<f32>,
    s2: vec4<f32>,
    s3: vec4<f32>,
}

// Chunk i of the rows, or the last one: lanes past the end of a row staged zeros.
fn fetch(rows: vec4<u32>, i: u32) -> Codes {
    let k = min(i * chunk, params.k - chunk);
    return Codes(
        code_chunk(rows.x, k),
        code_chunk(rows.y, k),
        code_chunk(rows.z, k),
        code_chunk(rows.w, k),
        chunk_scales(rows.x, k),
        chunk_scales(rows.y, k),
        chunk_scales(rows.z, k),
        chunk_scales(rows.w, k),
    );
}

// The total of the set's column `thread & 3`: first 4 lanes are added up, then the fourths.
fn reduce(thread: u32, sums: vec4<f32>) -> f32 {
    partial[thread] = sums;
    workgroupBarrier();
    let base = thread & 0xfffffffcu;
    let c = thread & 3u;
    fourths[thread] = (partial[base][c] + partial[base + 1u][c])
        + (partial[base + 2u][c] + partial[base + 3u][c]);
    workgroupBarrier();
    var sum = 0.0;
    for (var i = thread / lanes * lanes + c; i < (thread / lanes + 1u) * lanes; i += 4u) {
        sum += fourths[i];
    }
    return sum;
}

fn inverse_rms(thread: u32, own: f32) -> f32 {
    if (!has_norm) {
        return 1.0;
    }
    return inverseSqrt(workgroup_sum(thread, own) / f32(params.k) + params.eps);
}

@compute @workgroup_size(wg_size)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let per_set = select(4u, 2u, gate != 0u);
    let cols = per_set * (wg_size / lanes);
    let across = (params.n + cols - 1u) / cols;
    let at = group_index(group, groups);
    let row = at / across;
    if (row >= params.m) {
        return;
    }
    let col = at % across * cols + thread / lanes * per_set;
    let lane = thread % lanes;
    let rows = vec4<u32>(row_of(col, 0u), row_of(col, 1u), row_of(col, 2u), row_of(col, 3u));
    let added = residual_at(row, select(params.n, col + lane, lane < per_set));
    var sums = vec4<f32>(0.0);
    var own_squares = 0.0;
    for (var first = 0u; first < params.k / chunk; first += slots) {
        // Codes and scales are asked for before the barrier and a turn ahead: they take longest.
        var q = fetch(rows, first + lane);
        if (first > 0u) {
            workgroupBarrier();
        }
        own_squares += stage(thread, row, first);
        workgroupBarrier();
        for (var turn = 0u; turn < slots / lanes; turn++) {
            let at = turn * lanes + lane;
            var next: Codes;
            if (turn + 1u < slots / lanes) {
                next = fetch(rows, first + at + lanes);
            }
            let xs = array<vec4<f32>, 8>(
                staged(at, 0u),
                staged(at, 1u),
                staged(at, 2u),
                staged(at, 3u),
                staged(at, 4u),
                staged(at, 5u),
                staged(at, 6u),
                staged(at, 7u),
            );
            let total = chunk_total(xs);
            sums += vec4<f32>(
                chunk_sum(q.q0, q.s0, xs, total),
                chunk_sum(q.q1, q.s1, xs, total),
                chunk_sum(q.q2, q.s2, xs, total),
                chunk_sum(q.q3, q.s3, xs, total),
            );
            q = next;
        }
    }
    let sum = reduce(thread, sums) * inverse_rms(thread, own_squares);
    if (gate == 0u) {
        if (lane < 4u) {
            store(row, col + lane, biased(sum, col + lane), added);
        }
        return;
    }
    workgroupBarrier();
    if (lane < 4u) {
        partial[thread].x = sum;
    }
    workgroupBarrier();
    if (lane < 2u) {
        store(row, col + lane, gated_sum(col + lane, sum, partial[thread + 2u].x), added);
    }
}
