// One workgroup's square tile of a matrix product, 4 x 4 results a thread, staged through workgroup
// memory. The kernel supplies `a_quad(row, rows, k)` and `b_quad(col, cols, k)`: four neighbouring
// rows or columns of an operand at depth k, 0 from `rows` and `cols` on.
override side: u32 = 8u;

const TILE_DEPTH = 16u;

// [k][row / 4], rows padded by one so that lanes along k hit different banks; side is at most 16.
var<workgroup> a_tile: array<vec4<f32>, 272>;
var<workgroup> b_tile: array<vec4<f32>, 272>;

// (k, quad) of a tile entry, so that neighbouring lanes read neighbouring memory.
fn tile_entry(entry: u32, along_k: u32) -> vec2<u32> {
    if (along_k != 0u) {
        return vec2<u32>(entry % TILE_DEPTH, entry / TILE_DEPTH);
    }
    return vec2<u32>(entry / side, entry % side);
}

// Row i of the result is row `4 * (lane / side) + i` of the tile, as four neighbouring columns.
// origin = (row0, col0), size = (rows, cols); `along_k` says, per operand, whether neighbours in
// memory are neighbours along k. Everything but lane must be uniform.
fn tile_product(
    origin: vec2<u32>,
    size: vec2<u32>,
    depth: u32,
    along_k: vec2<u32>,
    lane: u32,
) -> mat4x4<f32> {
    let row = lane / side;
    let col = lane % side;
    var sum: mat4x4<f32>;
    for (var k0 = 0u; k0 < depth; k0 += TILE_DEPTH) {
        for (var entry = lane; entry < TILE_DEPTH * side; entry += side * side) {
            let a = tile_entry(entry, along_k.x);
            let b = tile_entry(entry, along_k.y);
            var a_values = vec4<f32>();
            var b_values = vec4<f32>();
            if (k0 + a.x < depth) {
                a_values = a_quad(origin.x + 4u * a.y, size.x, k0 + a.x);
            }
            if (k0 + b.x < depth) {
                b_values = b_quad(origin.y + 4u * b.y, size.y, k0 + b.x);
            }
            a_tile[a.x * (side + 1u) + a.y] = a_values;
            b_tile[b.x * (side + 1u) + b.y] = b_values;
        }
        workgroupBarrier();
        for (var k = 0u; k < TILE_DEPTH; k++) {
            let a = a_tile[k * (side + 1u) + row];
            let b = b_tile[k * (side + 1u) + col];
            sum[0] += a.x * b;
            sum[1] += a.y * b;
            sum[2] += a.z * b;
            sum[3] += a.w * b;
        }
        workgroupBarrier();
    }
    return sum;
}
