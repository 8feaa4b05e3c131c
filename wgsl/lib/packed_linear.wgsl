// What the kernels of y = x . w^T + bias share; w is packed, its rows are the columns of y.
// `n` columns from `n_first` on are computed; codes and row indices start at the first of them.
struct Params {
    m: u32,
    n: u32,
    k: u32,
    n_first: u32,
    y_row: u32,
    row_bytes: u32,
    scale_row: u32,
    scale_step: u32,
    scale_base: u32,
}

override has_bias: bool = false;

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;
@group(0) @binding(10) var<uniform> params: Params;

fn write(row: u32, col: u32, value: f32) {
    if (row < params.m && col < params.n) {
        let n = params.n_first + col;
        var sum = value;
        if (has_bias) {
            sum += bias[n];
        }
        y[row * params.y_row + n] = sum;
    }
}
