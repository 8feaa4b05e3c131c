//! lib: grid
// y[n, c, h, w] = x[n, c] read at the place that grid[n, h, w] = (across, down) in -1 .. 1 names.

struct Params {
    numel: u32,
    channels: u32,
    in_height: u32,
    in_width: u32,
    out_area: u32,
    // 0 zeros, 1 the border's value, 2 reflected
    padding: u32,
    align_corners: u32,
}

// 0 bilinear, 1 nearest
override mode: u32 = 0u;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> grid: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(10) var<uniform> params: Params;

// `at` mirrored at the edges low and low + span until it lies between them.
fn reflected(at: f32, low: f32, span: f32) -> f32 {
    if (span <= 0.0) {
        return 0.0;
    }
    let way = abs(at - low);
    let turns = floor(way / span);
    let rest = way - turns * span;
    return low + select(rest, span - rest, turns % 2.0 != 0.0);
}

// -1 .. 1 along an axis of `size` cells as a fractional cell
fn place(value: f32, size: u32) -> f32 {
    let most = f32(size - 1u);
    var at = ((value + 1.0) * f32(size) - 1.0) * 0.5;
    if (params.align_corners != 0u) {
        at = (value + 1.0) * 0.5 * most;
    }
    if (params.padding == 2u) {
        if (params.align_corners != 0u) {
            at = reflected(at, 0.0, most);
        } else {
            at = reflected(at, -0.5, f32(size));
        }
    }
    if (params.padding != 0u) {
        return clamp(at, 0.0, most);
    }
    // Everything farther out is 0 alike, and must fit an i32.
    return clamp(at, -2.0, f32(size) + 1.0);
}

fn cell(plane: u32, row: i32, col: i32) -> f32 {
    if (row < 0 || col < 0 || row >= i32(params.in_height) || col >= i32(params.in_width)) {
        return 0.0;
    }
    return x[(plane * params.in_height + u32(row)) * params.in_width + u32(col)];
}

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let at = linear_index(id, groups);
    if (at >= params.numel) {
        return;
    }
    let plane = at / params.out_area;
    let point = 2u * (plane / params.channels * params.out_area + at % params.out_area);
    let across = place(grid[point], params.in_width);
    let down = place(grid[point + 1u], params.in_height);
    if (mode == 1u) {
        y[at] = cell(plane, i32(round(down)), i32(round(across)));
        return;
    }
    let top = i32(floor(down));
    let left = i32(floor(across));
    let fh = down - f32(top);
    let fw = across - f32(left);
    let above = cell(plane, top, left) * (1.0 - fw) + cell(plane, top, left + 1) * fw;
    let below = cell(plane, top + 1, left) * (1.0 - fw) + cell(plane, top + 1, left + 1) * fw;
    y[at] = above * (1.0 - fh) + below * fh;
}
