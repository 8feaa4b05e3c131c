//! lib: grid
// Planes resized: `op` 0 takes the cell floor(at * in / out), 1 interpolates linearly.

struct Params {
    numel: u32,
    in_height: u32,
    in_width: u32,
    out_height: u32,
    out_width: u32,
    align_corners: u32,
}

override op: u32 = 0u;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(10) var<uniform> params: Params;

// Where result cell `at` of an axis lies in the input, as a fractional cell, not below 0.
fn place(at: u32, size: u32, results: u32) -> f32 {
    if (params.align_corners != 0u) {
        return select(f32(at) * f32(size - 1u) / f32(max(results, 2u) - 1u), 0.0, results < 2u);
    }
    return max((f32(at) + 0.5) * f32(size) / f32(results) - 0.5, 0.0);
}

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let at = linear_index(id, groups);
    if (at >= params.numel) {
        return;
    }
    let ow = at % params.out_width;
    let oh = at / params.out_width % params.out_height;
    let plane = at / params.out_width / params.out_height * params.in_height;
    if (op == 0u) {
        let h = oh * params.in_height / params.out_height;
        let w = ow * params.in_width / params.out_width;
        y[at] = x[(plane + h) * params.in_width + w];
        return;
    }
    let h = place(oh, params.in_height, params.out_height);
    let w = place(ow, params.in_width, params.out_width);
    let top = min(u32(h), params.in_height - 1u);
    let left = min(u32(w), params.in_width - 1u);
    let right = min(left + 1u, params.in_width - 1u);
    let upper = (plane + top) * params.in_width;
    let lower = (plane + min(top + 1u, params.in_height - 1u)) * params.in_width;
    let fw = w - f32(left);
    let above = x[upper + left] + (x[upper + right] - x[upper + left]) * fw;
    let below = x[lower + left] + (x[lower + right] - x[lower + left]) * fw;
    y[at] = above + (below - above) * (h - f32(top));
}
