// Signed bytes, four to a word, element i in byte i & 3.
fn signed_bytes(word: u32) -> vec4<i32> {
    return (vec4<i32>(bitcast<i32>(word)) << vec4<u32>(24u, 16u, 8u, 0u)) >> vec4<u32>(24u);
}

fn signed_byte(word: u32, at: u32) -> i32 {
    return extractBits(bitcast<i32>(word), (at & 3u) * 8u, 8u);
}

// The first `count` values; bytes after them are 0.
fn pack_signed_bytes(values: vec4<i32>, count: u32) -> u32 {
    let bytes = (bitcast<vec4<u32>>(values) & vec4<u32>(255u)) << vec4<u32>(0u, 8u, 16u, 24u);
    let word = bytes.x | bytes.y | bytes.z | bytes.w;
    return select(word, word & ((1u << (8u * count)) - 1u), count < 4u);
}
