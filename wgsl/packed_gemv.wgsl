//! lib: grid, packed, gate, packed_linear
// Packed linear for few rows: `lanes` invocations share 4 columns, each reading 16 bytes of codes
// at a time, so every word is read once, coalesced. Rows of codes are whole vec4. With one lane
// nothing is shared and there is no barrier, which is what adapters on the CPU run best.
// With lanes, x may be normalized on its way: every set of lanes sees the whole row of x, so its
// root mean square costs one more sum.

override lanes: u32 = 64u; // 1, or a power of two from 4 to wg_size
override chunk: u32 = 32u; // elements in 16 bytes: 32, 16, 8 or 4
override has_norm: bool = false;
override per_word: bool = false; // u4 with groups of no multiple of 32: a scale for each word

@group(0) @binding(6) var<storage, read> norm: array<vec4<f32>>;

// 4 sums an invocation, of which there are at most 64 a workgroup; then sums of squares of x.
var<workgroup> partial: array<f32, 256>;
var<workgroup> squares: array<f32, 64>;

fn sum4(v: vec4<f32>) -> f32 {
    return (v.x + v.y) + (v.z + v.w);
}

fn has_minima() -> bool {
    return scale_kind == 2u || scale_kind == 5u;
}

fn x_quad(start: u32, j: u32) -> vec4<f32> {
    if (4u * j < chunk) {
        return x[start + j];
    }
    return vec4<f32>(0.0);
}

fn scaled_quad(value: vec4<f32>, k: u32, j: u32) -> vec4<f32> {
    if (has_norm && 4u * j < chunk) {
        return value * norm[(k >> 2u) + j] * place();
    }
    return value * place();
}

fn square(v: vec4<f32>) -> f32 {
    return dot(v, v);
}

// The row of w behind sum c of a set whose first column of y is `col`.
fn row_of(col: u32, c: u32) -> u32 {
    if (gate == 0u) {
        return min(col + c, params.n - 1u);
    }
    return min(col + (c & 1u), params.n - 1u) + select(0u, params.n, c >= 2u);
}

// Sums of products over each 8 elements of a chunk.
fn products(q: vec4<u32>, xs: array<vec4<f32>, 8>) -> vec4<f32> {
    var v = xs[0] * quad(q, 0u);
    if (chunk >= 8u) {
        v += xs[1] * quad(q, 1u);
    }
    if (per_word) {
        return vec4<f32>(
            sum4(v),
            sum4(xs[2] * quad(q, 2u) + xs[3] * quad(q, 3u)),
            sum4(xs[4] * quad(q, 4u) + xs[5] * quad(q, 5u)),
            sum4(xs[6] * quad(q, 6u) + xs[7] * quad(q, 7u)),
        );
    }
    if (chunk >= 16u) {
        v += xs[2] * quad(q, 2u) + xs[3] * quad(q, 3u);
    }
    if (chunk == 32u) {
        v += xs[4] * quad(q, 4u) + xs[5] * quad(q, 5u) + xs[6] * quad(q, 6u) + xs[7] * quad(q, 7u);
    }
    return v;
}

// `total` is the sum of the chunk's activations, which the minima multiply.
fn column(row: u32, k: u32, xs: array<vec4<f32>, 8>, total: f32) -> f32 {
    let found = products(codes[(row * params.row_bytes + k / chunk * 16u) >> 4u], xs);
    if (per_word) {
        return dot(found, vec4<f32>(
            scale_of(row, k).x,
            scale_of(row, k + 8u).x,
            scale_of(row, k + 16u).x,
            scale_of(row, k + 24u).x,
        ));
    }
    let s = scale_of(row, k);
    if (has_minima()) {
        return sum4(found) * s.x + total * s.y;
    }
    return sum4(found) * s.x;
}

// What lane sums 0, 4, 8, .. of a set add up to, for column c of it.
fn total_of(part: u32, c: u32) -> f32 {
    var sum = 0.0;
    for (var i = 0u; i < lanes; i += 4u) {
        sum += partial[(part * lanes + i) * 4u + c];
    }
    return sum;
}

fn inverse_rms(part: u32) -> f32 {
    if (!has_norm) {
        return 1.0;
    }
    var sum = 0.0;
    for (var i = 0u; i < lanes; i++) {
        sum += squares[part * lanes + i];
    }
    return inverseSqrt(sum / f32(params.k) + params.eps);
}

@compute @workgroup_size(wg_size)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let sets = wg_size / lanes;
    let per_set = select(4u, 2u, gate != 0u);
    let cols = per_set * sets;
    let across = (params.n + cols - 1u) / cols;
    let at = group_index(group, groups);
    let row = at / across;
    if (row >= params.m) {
        return;
    }
    let first = at % across * cols;
    let col = first + thread / lanes * per_set;
    let rows = vec4<u32>(row_of(col, 0u), row_of(col, 1u), row_of(col, 2u), row_of(col, 3u));
    let chunks = params.k / chunk;
    var sums = vec4<f32>(0.0);
    var own_squares = 0.0;
    for (var i = thread % lanes; i < chunks; i += lanes) {
        let k = i * chunk;
        let start = (row * params.k + k) >> 2u;
        var xs = array<vec4<f32>, 8>(
            x_quad(start, 0u),
            x_quad(start, 1u),
            x_quad(start, 2u),
            x_quad(start, 3u),
            x_quad(start, 4u),
            x_quad(start, 5u),
            x_quad(start, 6u),
            x_quad(start, 7u),
        );
        if (has_norm) {
            own_squares += ((square(xs[0]) + square(xs[1])) + (square(xs[2]) + square(xs[3])))
                + ((square(xs[4]) + square(xs[5])) + (square(xs[6]) + square(xs[7])));
        }
        xs = array<vec4<f32>, 8>(
            scaled_quad(xs[0], k, 0u),
            scaled_quad(xs[1], k, 1u),
            scaled_quad(xs[2], k, 2u),
            scaled_quad(xs[3], k, 3u),
            scaled_quad(xs[4], k, 4u),
            scaled_quad(xs[5], k, 5u),
            scaled_quad(xs[6], k, 6u),
            scaled_quad(xs[7], k, 7u),
        );
        var total = 0.0;
        if (has_minima()) {
            let all = (xs[0] + xs[1]) + (xs[2] + xs[3]) + ((xs[4] + xs[5]) + (xs[6] + xs[7]));
            total = sum4(all / place());
        }
        sums += vec4<f32>(
            column(rows.x, k, xs, total),
            column(rows.y, k, xs, total),
            column(rows.z, k, xs, total),
            column(rows.w, k, xs, total),
        );
    }
    if (lanes == 1u) {
        if (gate != 0u) {
            write_gated(row, col, sums.x, sums.z);
            write_gated(row, col + 1u, sums.y, sums.w);
            return;
        }
        write(row, col, sums.x);
        write(row, col + 1u, sums.y);
        write(row, col + 2u, sums.z);
        write(row, col + 3u, sums.w);
        return;
    }
    // Two steps: each invocation adds 4 lanes of one column, then one a column adds the rest.
    let base = thread * 4u;
    partial[base] = sums.x;
    partial[base + 1u] = sums.y;
    partial[base + 2u] = sums.z;
    partial[base + 3u] = sums.w;
    if (has_norm) {
        squares[thread] = own_squares;
    }
    workgroupBarrier();
    let own = (thread & 0xfffffffcu) * 4u + (thread & 3u);
    partial[own] = (partial[own] + partial[own + 4u]) + (partial[own + 8u] + partial[own + 12u]);
    workgroupBarrier();
    if (thread < cols) {
        let part = thread / per_set;
        let c = thread % per_set;
        let scale = inverse_rms(part);
        if (gate != 0u) {
            write_gated(row, first + thread, total_of(part, c) * scale, total_of(part, c + 2u) * scale);
        } else {
            write(row, first + thread, total_of(part, c) * scale);
        }
    }
}
