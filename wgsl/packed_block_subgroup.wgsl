//! lib: grid, packed, packed_columns, gate, packed_linear, packed_quads
enable subgroups;
// Packed linear of several rows on adapters that run on the CPU: an invocation computes 16 rows, or 8,
// of 8 columns in registers. Rows of codes are whole vec4. With a gate, the columns are 4 gates and
// what they gate.

override rows: u32 = 16u; // 16 or 8

@group(0) @binding(0) var<storage, read> x: array<vec2<f32>>;

alias Starts = array<u32, 8>;
alias Pairs = array<vec2<f32>, 8>;
alias Rows = array<vec4<f32>, 8>;

// A row of w: the bits of 8 elements (of 4, where they have 4 bytes), what scales them and undoes
// place(), and what is added to each.
struct Column {
    row: u32,
    bits: vec4<u32>,
    factor: vec4<f32>,
    least: f32,
}

// No scale ends within 8 elements.
fn column(row: u32, k: u32) -> Column {
    let i = word_of(row, k);
    let s = scale_of(row, k);
    var bits = vec4<u32>();
    if (chunk == 32u) {
        bits.x = code_word(i);
    } else if (chunk == 16u) {
        bits = word_pair(i);
    } else {
        bits = codes[i >> 2u];
    }
    return Column(row, bits, s.x * place(), s.y);
}

// Quad t of the 8 elements from k on. Only elements of 4 bytes end within them.
fn weight(c: Column, k: u32, t: u32) -> vec4<f32> {
    var bits = c.bits;
    if (chunk == 4u && t == 1u) {
        bits = select(vec4<u32>(), codes[(word_of(c.row, k) >> 2u) + 1u], k + 4u < params.k);
    }
    var v = quad(bits, t) * c.factor;
    if (has_minima()) {
        v += c.least;
    }
    return v;
}

fn quads(a: Column, b: Column, c: Column, d: Column, k: u32, t: u32) -> Quads {
    return Quads(weight(a, k, t), weight(b, k, t), weight(c, k, t), weight(d, k, t));
}

// Where 8 rows of x begin, in pairs of elements.
fn x_rows(row: u32) -> Starts {
    let last = params.m - 1u;
    let pairs = params.k / 2u;
    return Starts(
        min(row + 0u, last) * pairs,
        min(row + 1u, last) * pairs,
        min(row + 2u, last) * pairs,
        min(row + 3u, last) * pairs,
        min(row + 4u, last) * pairs,
        min(row + 5u, last) * pairs,
        min(row + 6u, last) * pairs,
        min(row + 7u, last) * pairs,
    );
}

fn x_pair(at: u32, k: u32) -> vec2<f32> {
    var found = vec2<f32>();
    if (chunk != 4u || k < params.k) {
        found = x[at + k / 2u];
    }
    return found;
}

fn x_pairs(at: Starts, k: u32) -> Pairs {
    return Pairs(
        x_pair(at[0], k),
        x_pair(at[1], k),
        x_pair(at[2], k),
        x_pair(at[3], k),
        x_pair(at[4], k),
        x_pair(at[5], k),
        x_pair(at[6], k),
        x_pair(at[7], k),
    );
}

// Quad 0 of x is what invocations 0 and 1 of the quad have loaded, quad 1 the others'.
fn row_onto0(sum: vec4<f32>, x_lane: vec2<f32>, w: Quads) -> vec4<f32> {
    return quads_onto(sum, vec4<f32>(quadBroadcast(x_lane, 0u), quadBroadcast(x_lane, 1u)), w);
}

fn row_onto1(sum: vec4<f32>, x_lane: vec2<f32>, w: Quads) -> vec4<f32> {
    return quads_onto(sum, vec4<f32>(quadBroadcast(x_lane, 2u), quadBroadcast(x_lane, 3u)), w);
}

fn onto0(s: Rows, xs: Pairs, w: Quads) -> Rows {
    return Rows(
        row_onto0(s[0], xs[0], w),
        row_onto0(s[1], xs[1], w),
        row_onto0(s[2], xs[2], w),
        row_onto0(s[3], xs[3], w),
        row_onto0(s[4], xs[4], w),
        row_onto0(s[5], xs[5], w),
        row_onto0(s[6], xs[6], w),
        row_onto0(s[7], xs[7], w),
    );
}

fn onto1(s: Rows, xs: Pairs, w: Quads) -> Rows {
    return Rows(
        row_onto1(s[0], xs[0], w),
        row_onto1(s[1], xs[1], w),
        row_onto1(s[2], xs[2], w),
        row_onto1(s[3], xs[3], w),
        row_onto1(s[4], xs[4], w),
        row_onto1(s[5], xs[5], w),
        row_onto1(s[6], xs[6], w),
        row_onto1(s[7], xs[7], w),
    );
}

@compute @workgroup_size(wg_size)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
    @builtin(subgroup_invocation_id) lane: u32,
) {
    let four = select(4u, 2u, gate != 0u);
    let across = (params.n + 2u * four * wg_size - 1u) / (2u * four * wg_size);
    let index = group_index(group, groups);
    let row = index / across * rows;
    if (row >= params.m) {
        return;
    }
    let col = (index % across * wg_size + thread) * 2u * four;
    let r0 = row_of(col, 0u);
    let r1 = row_of(col, 1u);
    let r2 = row_of(col, 2u);
    let r3 = row_of(col, 3u);
    let r4 = row_of(col + four, 0u);
    let r5 = row_of(col + four, 1u);
    let r6 = row_of(col + four, 2u);
    let r7 = row_of(col + four, 3u);
    let mine = 2u * (lane & 3u);
    let at = x_rows(row);
    let at_next = x_rows(row + 8u);
    var first: Rows;
    var second: Rows;
    var first_next: Rows;
    var second_next: Rows;
    for (var k = 0u; k < params.k; k += 8u) {
        let a = column(r0, k);
        let b = column(r1, k);
        let c = column(r2, k);
        let d = column(r3, k);
        let e = column(r4, k);
        let f = column(r5, k);
        let g = column(r6, k);
        let h = column(r7, k);
        let xs = x_pairs(at, k + mine);
        var next: Pairs;
        if (rows > 8u) {
            next = x_pairs(at_next, k + mine);
        }
        let p = quads(a, b, c, d, k, 0u);
        let q = quads(e, f, g, h, k, 0u);
        first = onto0(first, xs, p);
        second = onto0(second, xs, q);
        if (rows > 8u) {
            first_next = onto0(first_next, next, p);
            second_next = onto0(second_next, next, q);
        }
        let u = quads(a, b, c, d, k, 1u);
        let v = quads(e, f, g, h, k, 1u);
        first = onto1(first, xs, u);
        second = onto1(second, xs, v);
        if (rows > 8u) {
            first_next = onto1(first_next, next, u);
            second_next = onto1(second_next, next, v);
        }
    }
    // A copy, as it is indexed by a variable.
    let found = array<Rows, 4>(first, second, first_next, second_next);
    for (var i = 0u; i < 2u * rows; i++) {
        let block = i / 8u;
        write_four(row + block / 2u * 8u + i % 8u, col + block % 2u * four, found[block][i % 8u]);
    }
}
