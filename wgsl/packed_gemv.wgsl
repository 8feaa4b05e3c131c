//! lib: grid, packed, packed_columns, gate, packed_linear
// Packed linear for few rows. `lanes` invocations share 4 columns; each reads 16 bytes of codes at a
// time, so that every word is read once, coalesced. A workgroup has one or more such sets.
// Activations go through workgroup memory: lanes want 32 neighbours each, which would be a cache
// line a lane and load. Rows of codes are whole vec4.
// x may be normalized on its way: a workgroup sees its whole row, so that its root mean square
// costs one more sum.

override lanes: u32 = 64u; // a power of two from 4 to wg_size
override has_norm: bool = false;

@group(0) @binding(6) var<storage, read> norm: array<vec4<f32>>;

// 8 vec4 a lane, 9 apart, so that neighbours read from different banks.
const PITCH = 9u;

var<workgroup> x_tile: array<vec4<f32>, lanes * PITCH>;
var<workgroup> partial: array<vec4<f32>, wg_size>;
var<workgroup> fourths: array<f32, wg_size>;
var<workgroup> squares: array<f32, wg_size>;

fn stage(thread: u32, row: u32, block: u32) -> f32 {
    let quads = chunk / 4u;
    let first = block * quads;
    var found = 0.0;
    for (var i = thread; i < lanes * quads; i += wg_size) {
        let at = first + i;
        var v = vec4<f32>(0.0);
        if (at < params.k / 4u) {
            v = x[row * (params.k / 4u) + at];
            if (has_norm) {
                found += dot(v, v);
                v *= norm[at];
            }
        }
        x_tile[i / quads * PITCH + i % quads] = v * place();
    }
    return found;
}

fn staged(lane: u32, j: u32) -> vec4<f32> {
    if (4u * j < chunk) {
        return x_tile[lane * PITCH + j];
    }
    return vec4<f32>(0.0);
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
    workgroupBarrier();
    squares[thread] = own;
    workgroupBarrier();
    for (var step = wg_size / 2u; step > 0u; step /= 2u) {
        if (thread < step) {
            squares[thread] += squares[thread + step];
        }
        workgroupBarrier();
    }
    return inverseSqrt(squares[0] / f32(params.k) + params.eps);
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
    let r0 = row_of(col, 0u);
    let r1 = row_of(col, 1u);
    let r2 = row_of(col, 2u);
    let r3 = row_of(col, 3u);
    var sums = vec4<f32>(0.0);
    var own_squares = 0.0;
    let chunks = params.k / chunk;
    for (var block = 0u; block < chunks; block += lanes) {
        // Codes are asked for before the barrier: they take longest.
        let i = min(block + lane, chunks - 1u);
        let k = i * chunk;
        let q0 = code_chunk(r0, k);
        let q1 = code_chunk(r1, k);
        let q2 = code_chunk(r2, k);
        let q3 = code_chunk(r3, k);
        if (block > 0u) {
            workgroupBarrier();
        }
        own_squares += stage(thread, row, block);
        workgroupBarrier();
        // Lanes past the end of the row staged zeros.
        let xs = array<vec4<f32>, 8>(
            staged(lane, 0u),
            staged(lane, 1u),
            staged(lane, 2u),
            staged(lane, 3u),
            staged(lane, 4u),
            staged(lane, 5u),
            staged(lane, 6u),
            staged(lane, 7u),
        );
        let total = chunk_total(xs);
        sums += vec4<f32>(
            chunk_sum(q0, r0, k, xs, total),
            chunk_sum(q1, r1, k, xs, total),
            chunk_sum(q2, r2, k, xs, total),
            chunk_sum(q3, r3, k, xs, total),
        );
    }
    let sum = reduce(thread, sums) * inverse_rms(thread, own_squares);
    if (gate == 0u) {
        if (lane < 4u) {
            write(row, col + lane, sum);
        }
        return;
    }
    workgroupBarrier();
    if (lane < 4u) {
        partial[thread].x = sum;
    }
    workgroupBarrier();
    if (lane < 2u) {
        write_gated(row, col + lane, sum, partial[thread + 2u].x);
    }
}
