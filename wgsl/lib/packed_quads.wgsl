// What the packed linear kernels of adapters that run on the CPU share. There loads are dear beside
// arithmetic, and barriers beside loads: a quad's invocations each load some of x and hand it to the
// others, columns are kept in registers, and workgroup memory is not used. A branch makes the loads
// behind it slower, and what a variable indexes is in no register: the only loop is along k.
struct Quads {
    a: vec4<f32>,
    b: vec4<f32>,
    c: vec4<f32>,
    d: vec4<f32>,
}

// The word of the codes in which element k of a row lies.
fn word_of(row: u32, k: u32) -> u32 {
    return (row * params.row_bytes + k * 16u / chunk) >> 2u;
}

// Two words that begin at an even one.
fn word_pair(i: u32) -> vec4<u32> {
    return vec4<u32>(codes[i >> 2u][i & 2u], codes[i >> 2u][(i & 2u) + 1u], 0u, 0u);
}

fn dot_onto(sum: f32, u: vec4<f32>, v: vec4<f32>) -> f32 {
    return sum + u.x * v.x + u.y * v.y + u.z * v.z + u.w * v.w;
}

fn quads_onto(sum: vec4<f32>, u: vec4<f32>, w: Quads) -> vec4<f32> {
    return vec4<f32>(
        dot_onto(sum.x, u, w.a),
        dot_onto(sum.y, u, w.b),
        dot_onto(sum.z, u, w.c),
        dot_onto(sum.w, u, w.d),
    );
}

// The sums of four rows of w, see row_of().
fn write_four(row: u32, col: u32, sums: vec4<f32>) {
    if (gate != 0u) {
        write_gated(row, col, sums.x, sums.z);
        write_gated(row, col + 1u, sums.y, sums.w);
        return;
    }
    var found = sums;
    for (var j = 0u; j < 4u; j++) {
        write(row, col + j, found[j]);
    }
}
