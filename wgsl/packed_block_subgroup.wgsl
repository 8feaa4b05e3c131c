//! lib: grid, packed, packed_columns, gate, packed_linear
enable subgroups;
// Packed linear on adapters that run on the CPU: an invocation computes 4 columns of 8 rows, or of
// one, in registers. There loads are dear beside arithmetic, and barriers beside loads:
// a quad's invocations load a vec4 of x each and hand it to the others, and workgroup memory is not
// used. A branch makes the loads behind it slower, and what a variable indexes is in no register:
// the only loop is along k. Rows of codes are whole vec4. With a gate, an invocation's columns are 2
// gates and what they gate.

override rows: u32 = 8u; // 8 or 1

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;

alias Rows = array<vec4<f32>, 8>;

// A row of w: the bits of 16 elements of 4 or 8, what scales them and undoes place(), and what is
// added to each.
struct Column {
    row: u32,
    bits: vec4<u32>,
    factor: vec4<f32>,
    least: f32,
}

struct Quads {
    a: vec4<f32>,
    b: vec4<f32>,
    c: vec4<f32>,
    d: vec4<f32>,
}

fn word_of(row: u32, k: u32) -> u32 {
    return (row * params.row_bytes + k / chunk * 16u + k % chunk * 16u / chunk) >> 2u;
}

// Two words that begin at an even one.
fn word_pair(i: u32) -> vec4<u32> {
    return vec4<u32>(codes[i >> 2u][i & 2u], codes[i >> 2u][(i & 2u) + 1u], 0u, 0u);
}

fn column(row: u32, k: u32) -> Column {
    var c = Column(row, vec4<u32>(0u), vec4<f32>(1.0), 0.0);
    if (chunk <= 8u) {
        return c;
    }
    let s = scale_of(row, k);
    c.factor = s.x * place();
    c.least = s.y;
    if (chunk == 32u) {
        c.bits = word_pair(word_of(row, k));
    } else {
        c.bits = codes[word_of(row, k) >> 2u];
    }
    return c;
}

// Quad t of the 16 elements from k on. Only elements of 2 or 4 bytes end within them.
fn weight(c: Column, k: u32, t: u32) -> vec4<f32> {
    let at = k + 4u * t;
    if (chunk <= 8u && at >= params.k) {
        return vec4<f32>(0.0);
    }
    var v = quad(c.bits, t) * c.factor;
    var least = c.least;
    if (chunk <= 8u || per_word) {
        let s = scale_of(c.row, at);
        least = s.y;
        if (per_word) {
            v = quad(c.bits, t) * (s.x * place());
        } else if (chunk == 8u) {
            v = quad(word_pair(word_of(c.row, at)), 0u) * s.x;
        } else {
            v = quad(codes[word_of(c.row, at) >> 2u], 0u) * s.x;
        }
    }
    if (has_minima()) {
        return v + least;
    }
    return v;
}

fn quads(a: Column, b: Column, c: Column, d: Column, k: u32, t: u32) -> Quads {
    return Quads(weight(a, k, t), weight(b, k, t), weight(c, k, t), weight(d, k, t));
}

fn x_quad(row: u32, k: u32) -> vec4<f32> {
    if (chunk <= 8u && k >= params.k) {
        return vec4<f32>(0.0);
    }
    return x[(min(row, params.m - 1u) * params.k + k) / 4u];
}

fn x_quads(row: u32, k: u32) -> Rows {
    if (rows == 1u) {
        let none = vec4<f32>(0.0);
        return Rows(x_quad(row, k), none, none, none, none, none, none, none);
    }
    return Rows(
        x_quad(row, k),
        x_quad(row + 1u, k),
        x_quad(row + 2u, k),
        x_quad(row + 3u, k),
        x_quad(row + 4u, k),
        x_quad(row + 5u, k),
        x_quad(row + 6u, k),
        x_quad(row + 7u, k),
    );
}

fn from_lane(v: vec4<f32>, t: u32) -> vec4<f32> {
    // quadBroadcast takes no variable.
    switch t {
        case 0u: {
            return quadBroadcast(v, 0u);
        }
        case 1u: {
            return quadBroadcast(v, 1u);
        }
        case 2u: {
            return quadBroadcast(v, 2u);
        }
        default: {
            return quadBroadcast(v, 3u);
        }
    }
}

fn dot_onto(sum: f32, u: vec4<f32>, v: vec4<f32>) -> f32 {
    return sum + u.x * v.x + u.y * v.y + u.z * v.z + u.w * v.w;
}

// Invocation t of the quad has loaded quad t of x.
fn row_onto(sum: vec4<f32>, x_lane: vec4<f32>, t: u32, w: Quads) -> vec4<f32> {
    let u = from_lane(x_lane, t);
    return vec4<f32>(
        dot_onto(sum.x, u, w.a),
        dot_onto(sum.y, u, w.b),
        dot_onto(sum.z, u, w.c),
        dot_onto(sum.w, u, w.d),
    );
}

fn onto(s: Rows, xs: Rows, t: u32, w: Quads) -> Rows {
    if (rows == 1u) {
        return Rows(row_onto(s[0], xs[0], t, w), s[1], s[2], s[3], s[4], s[5], s[6], s[7]);
    }
    return Rows(
        row_onto(s[0], xs[0], t, w),
        row_onto(s[1], xs[1], t, w),
        row_onto(s[2], xs[2], t, w),
        row_onto(s[3], xs[3], t, w),
        row_onto(s[4], xs[4], t, w),
        row_onto(s[5], xs[5], t, w),
        row_onto(s[6], xs[6], t, w),
        row_onto(s[7], xs[7], t, w),
    );
}

@compute @workgroup_size(wg_size)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
    @builtin(subgroup_invocation_id) lane: u32,
) {
    let per_lane = select(4u, 2u, gate != 0u);
    let across = (params.n + per_lane * wg_size - 1u) / (per_lane * wg_size);
    let index = group_index(group, groups);
    let row = index / across * rows;
    if (row >= params.m) {
        return;
    }
    let col = (index % across * wg_size + thread) * per_lane;
    let r0 = row_of(col, 0u);
    let r1 = row_of(col, 1u);
    let r2 = row_of(col, 2u);
    let r3 = row_of(col, 3u);
    let mine = 4u * (lane & 3u);
    var sums: Rows;
    for (var k = 0u; k < params.k; k += 16u) {
        let a = column(r0, k);
        let b = column(r1, k);
        let c = column(r2, k);
        let d = column(r3, k);
        let xs = x_quads(row, k + mine);
        sums = onto(sums, xs, 0u, quads(a, b, c, d, k, 0u));
        sums = onto(sums, xs, 1u, quads(a, b, c, d, k, 1u));
        sums = onto(sums, xs, 2u, quads(a, b, c, d, k, 2u));
        sums = onto(sums, xs, 3u, quads(a, b, c, d, k, 3u));
    }
    // A copy, as it is indexed by a variable.
    let found = sums;
    for (var i = 0u; i < rows; i++) {
        if (gate != 0u) {
            write_gated(row + i, col, found[i].x, found[i].z);
            write_gated(row + i, col + 1u, found[i].y, found[i].w);
        } else {
            for (var j = 0u; j < 4u; j++) {
                write(row + i, col + j, found[i][j]);
            }
        }
    }
}
