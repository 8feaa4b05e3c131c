// The same as tile.wgsl, every thread reading what it needs for itself: no workgroup memory and no
// barriers, which adapters that run on the CPU do slowly and compile slowly.
override side: u32 = 4u;

fn tile_product(
    origin: vec2<u32>,
    size: vec2<u32>,
    depth: u32,
    along_k: vec2<u32>,
    lane: u32,
) -> mat4x4<f32> {
    let row = origin.x + lane / side * 4u;
    let col = origin.y + lane % side * 4u;
    var sum: mat4x4<f32>;
    if (row >= size.x || col >= size.y) {
        return sum;
    }
    for (var k = 0u; k < depth; k++) {
        let a = a_quad(row, size.x, k);
        let b = b_quad(col, size.y, k);
        sum[0] += a.x * b;
        sum[1] += a.y * b;
        sum[2] += a.z * b;
        sum[3] += a.w * b;
    }
    return sum;
}
