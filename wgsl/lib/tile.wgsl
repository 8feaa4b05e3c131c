// One workgroup's square tile of a matrix product, 4 x 4 results a thread, staged through workgroup
// memory. The kernel supplies `a_at(row, k)` and `b_at(col, k)`, the two operands at any in-range
// place; `along_k` says, per operand, whether its neighbours in memory are neighbours along k.
override side: u32 = 8u;

const TILE_DEPTH = 16u;

// [k][row / 4], rows padded by one so that lanes along k hit different banks; side is at most 16.
var<workgroup> a_tile: array<vec4<f32>, 272>;
var<workgroup> b_tile: array<vec4<f32>, 272>;

// (k, group of four) of a tile entry, so that neighbouring lanes read neighbouring memory.
fn tile_entry(entry: u32, along_k: u32) -> vec2<u32> {
    if (along_k != 0u) {
        return vec2<u32>(entry % TILE_DEPTH, entry / TILE_DEPTH);
    }
    return vec2<u32>(entry / side, entry % side);
}

fn stage_a(at: vec2<u32>, row0: u32, rows: u32, k0: u32, depth: u32) {
    let k = k0 + at.x;
    var quad = vec4<f32>();
    if (k < depth) {
        for (var i = 0u; i < 4u; i++) {
            let row = row0 + at.y * 4u + i;
            if (row < rows) {
                quad[i] = a_at(row, k);
            }
        }
    }
    a_tile[at.x * (side + 1u) + at.y] = quad;
}

fn stage_b(at: vec2<u32>, col0: u32, cols: u32, k0: u32, depth: u32) {
    let k = k0 + at.x;
    var quad = vec4<f32>();
    if (k < depth) {
        for (var i = 0u; i < 4u; i++) {
            let col = col0 + at.y * 4u + i;
            if (col < cols) {
                quad[i] = b_at(col, k);
            }
        }
    }
    b_tile[at.x * (side + 1u) + at.y] = quad;
}

// Column i of the result is row `4 * (lane / side) + i` of the tile, as four neighbouring columns.
// origin = (row0, col0), size = (rows, cols); everything but lane must be uniform.
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
            stage_a(tile_entry(entry, along_k.x), origin.x, size.x, k0, depth);
            stage_b(tile_entry(entry, along_k.y), origin.y, size.y, k0, depth);
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
