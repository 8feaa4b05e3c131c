// How tiles of packed weights come into workgroup memory: two invocations a row, 16 elements each.

override chunk: u32 = 32u; // elements in 16 bytes of codes: 32, 16, 8 or 4
override per_word: bool = false; // u4 with groups of no multiple of 32: a scale for each word

// 16 bytes of codes from element k of a row on, or those that hold it.
fn fetch_w(row: u32, k: u32) -> vec4<u32> {
    return codes[(row * params.row_bytes + min(k, params.k - 1u) / chunk * 16u) >> 4u];
}

// The words that hold an invocation's 16 elements.
fn fetch_words(thread: u32, row: u32, k0: u32) -> array<vec4<u32>, 4> {
    var words: array<vec4<u32>, 4>;
    let k = k0 + 16u * (thread & 1u);
    words[0] = fetch_w(row, k);
    if (chunk <= 8u) {
        words[1] = fetch_w(row, k + chunk);
    }
    if (chunk == 4u) {
        words[2] = fetch_w(row, k + 8u);
        words[3] = fetch_w(row, k + 12u);
    }
    return words;
}

// Quad j of an invocation's 16 elements.
fn code_quad(words: array<vec4<u32>, 4>, thread: u32, j: u32) -> vec4<f32> {
    if (chunk == 32u) {
        return quad(select(words[0], words[0].zwzw, (thread & 1u) != 0u), j);
    }
    if (chunk == 16u) {
        return quad(words[0], j);
    }
    if (chunk == 8u) {
        return quad(words[j / 2u], j & 1u);
    }
    return quad(words[j], 0u);
}
