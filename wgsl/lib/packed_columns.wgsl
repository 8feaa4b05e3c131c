// Four columns of y: the rows of w behind them, and products of 16 bytes of such a row with the
// activations beside them. `xs` are activations times place().

override chunk: u32 = 32u; // elements in 16 bytes: 32, 16, 8 or 4
override per_word: bool = false; // u4 with groups of no multiple of 32: a scale for each word

fn sum4(v: vec4<f32>) -> f32 {
    return (v.x + v.y) + (v.z + v.w);
}

// The sum of a chunk's activations, which minima multiply.
fn chunk_total(xs: array<vec4<f32>, 8>) -> f32 {
    if (!has_minima()) {
        return 0.0;
    }
    let all = (xs[0] + xs[1]) + (xs[2] + xs[3]) + ((xs[4] + xs[5]) + (xs[6] + xs[7]));
    return sum4(all / place());
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

fn code_chunk(row: u32, k: u32) -> vec4<u32> {
    return codes[(row * params.row_bytes + k / chunk * 16u) >> 4u];
}

// The scales of a chunk: its scale and minimum, or one scale a word.
fn chunk_scales(row: u32, k: u32) -> vec4<f32> {
    if (per_word) {
        return vec4<f32>(
            scale_of(row, k).x,
            scale_of(row, k + 8u).x,
            scale_of(row, k + 16u).x,
            scale_of(row, k + 24u).x,
        );
    }
    return vec4<f32>(scale_of(row, k), 0.0, 0.0);
}

// What a chunk adds to the sum of a row of w.
fn chunk_sum(q: vec4<u32>, s: vec4<f32>, xs: array<vec4<f32>, 8>, total: f32) -> f32 {
    let found = products(q, xs);
    if (per_word) {
        return dot(found, s);
    }
    if (has_minima()) {
        return sum4(found) * s.x + total * s.y;
    }
    return sum4(found) * s.x;
}

// The row of w behind sum c of the 4 that begin at column `col` of y: with a gate, 2 and their ups.
fn row_of(col: u32, c: u32) -> u32 {
    if (gate == 0u) {
        return min(col + c, params.n - 1u);
    }
    return min(col + (c & 1u), params.n - 1u) + select(0u, params.n, c >= 2u);
}
