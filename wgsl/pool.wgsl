//! lib: grid, nan
// Windows over planes [C, H, W]: `op` 0 averages, 1 takes the maximum and where it was.

struct Params {
    numel: u32,
    in_height: u32,
    in_width: u32,
    out_height: u32,
    out_width: u32,
    kernel_height: u32,
    kernel_width: u32,
    stride_height: u32,
    stride_width: u32,
    pad_height: u32,
    pad_width: u32,
    dilation_height: u32,
    dilation_width: u32,
    // 0: by what the window covers
    divisor: i32,
    include_pad: u32,
    has_indices: u32,
    // The bits of -infinity, which WGSL can't write.
    lowest: u32,
}

override op: u32 = 0u;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<storage, read_write> indices: array<i32>;
@group(0) @binding(10) var<uniform> params: Params;

// Cells from the window's start to its end, which padding and the far edge may cut.
fn extent(start: i32, kernel: u32, size: u32, pad: u32) -> vec3<i32> {
    let end = min(start + i32(kernel), i32(size + pad));
    return vec3<i32>(max(start, 0), min(end, i32(size)), end - start);
}

fn average(plane: u32, top: i32, left: i32) -> f32 {
    let rows = extent(top, params.kernel_height, params.in_height, params.pad_height);
    let cols = extent(left, params.kernel_width, params.in_width, params.pad_width);
    var sum = 0.0;
    for (var i = rows.x; i < rows.y; i++) {
        let row = (plane * params.in_height + u32(i)) * params.in_width;
        for (var j = cols.x; j < cols.y; j++) {
            sum += x[row + u32(j)];
        }
    }
    if (rows.x >= rows.y || cols.x >= cols.y) {
        return 0.0;
    }
    var cells = (rows.y - rows.x) * (cols.y - cols.x);
    if (params.include_pad != 0u) {
        cells = rows.z * cols.z;
    }
    return sum / f32(select(cells, params.divisor, params.divisor != 0));
}

fn maximum(plane: u32, top: i32, left: i32, at: u32) -> f32 {
    var best = bitcast<f32>(params.lowest);
    var place = -1;
    for (var i = 0u; i < params.kernel_height; i++) {
        let row = top + i32(i * params.dilation_height);
        if (row < 0 || row >= i32(params.in_height)) {
            continue;
        }
        for (var j = 0u; j < params.kernel_width; j++) {
            let col = left + i32(j * params.dilation_width);
            if (col < 0 || col >= i32(params.in_width)) {
                continue;
            }
            let cell = u32(row) * params.in_width + u32(col);
            let value = x[plane * params.in_height * params.in_width + cell];
            if (place < 0 || value > best || is_nan(vec4<f32>(value)).x) {
                best = value;
                place = i32(cell);
            }
        }
    }
    if (params.has_indices != 0u) {
        indices[at] = max(place, 0);
    }
    return best;
}

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let at = linear_index(id, groups);
    if (at >= params.numel) {
        return;
    }
    let left = i32(at % params.out_width * params.stride_width) - i32(params.pad_width);
    let row = at / params.out_width;
    let top = i32(row % params.out_height * params.stride_height) - i32(params.pad_height);
    let plane = row / params.out_height;
    if (op == 0u) {
        y[at] = average(plane, top, left);
    } else {
        y[at] = maximum(plane, top, left, at);
    }
}
