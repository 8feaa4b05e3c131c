//! lib: grid, gate
// y = act(gate) * up + residual, or sum + residual without a gate, where `product` is what `splits`
// stretches of k add up to, plus a bias. A row of it holds `row` elements: with a gate, first the
// gates and then the ups.

struct Params {
    count: u32,
    columns: u32,
    row: u32,
    splits: u32,
    stride: u32,
}

override has_bias: bool = false;
override has_residual: bool = false;

@group(0) @binding(0) var<storage, read> product: array<f32>;
@group(0) @binding(1) var<storage, read> bias: array<f32>;
@group(0) @binding(2) var<storage, read> residual: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(10) var<uniform> params: Params;

fn total(row: u32, col: u32) -> f32 {
    var sum = 0.0;
    for (var i = 0u; i < params.splits; i++) {
        sum += product[i * params.stride + row * params.row + col];
    }
    if (has_bias) {
        sum += bias[col];
    }
    return sum;
}

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_index(id, groups);
    if (i >= params.count) {
        return;
    }
    let row = i / params.columns;
    let col = i % params.columns;
    var value = total(row, col);
    if (gate != 0u) {
        value = gated(value, total(row, params.columns + col));
    }
    if (has_residual) {
        value += residual[i];
    }
    y[i] = value;
}
