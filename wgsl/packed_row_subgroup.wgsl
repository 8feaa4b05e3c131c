//! lib: grid, packed, packed_columns, gate, packed_linear, packed_quads
enable subgroups;
// Packed linear of a row on adapters that run on the CPU: an invocation computes 4 columns of it.
// Rows of codes are whole vec4. With a gate, the columns are 2 gates and what they gate.

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;

// A row of w: the bits of 16 elements of 4 or 8, what scales them and undoes place(), and what is
// added to each.
struct Column {
    row: u32,
    bits: vec4<u32>,
    factor: vec4<f32>,
    least: f32,
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
    return x[(row * params.k + k) / 4u];
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
    let row = index / across;
    if (row >= params.m) {
        return;
    }
    let col = (index % across * wg_size + thread) * per_lane;
    let r0 = row_of(col, 0u);
    let r1 = row_of(col, 1u);
    let r2 = row_of(col, 2u);
    let r3 = row_of(col, 3u);
    let mine = 4u * (lane & 3u);
    var sums: vec4<f32>;
    for (var k = 0u; k < params.k; k += 16u) {
        let a = column(r0, k);
        let b = column(r1, k);
        let c = column(r2, k);
        let d = column(r3, k);
        let own = x_quad(row, k + mine);
        sums = quads_onto(sums, quadBroadcast(own, 0u), quads(a, b, c, d, k, 0u));
        sums = quads_onto(sums, quadBroadcast(own, 1u), quads(a, b, c, d, k, 1u));
        sums = quads_onto(sums, quadBroadcast(own, 2u), quads(a, b, c, d, k, 2u));
        sums = quads_onto(sums, quadBroadcast(own, 3u), quads(a, b, c, d, k, 3u));
    }
    write_four(row, col, sums);
}
