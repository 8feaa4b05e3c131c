// What the kernels of y = x . w^T + bias + residual share; w is packed. `n` columns of y from
// `n_first` on are computed; codes and row indices start at the first of them. With a gate, row i
// of w is the gate of column i and row n + i what it gates.
struct Params {
    m: u32,
    n: u32,
    k: u32,
    n_first: u32,
    y_row: u32,
    eps: f32,
    row_bytes: u32,
    scale_row: u32,
    scale_step: u32,
    scale_base: u32,
    splits: u32,
}

override has_bias: bool = false;
override has_residual: bool = false;

@group(0) @binding(3) var<storage, read> bias: array<f32>;
@group(0) @binding(4) var<storage, read> residual: array<f32>;
@group(0) @binding(5) var<storage, read_write> y: array<f32>;
@group(0) @binding(10) var<uniform> params: Params;

fn biased(value: f32, row: u32) -> f32 {
    if (has_bias) {
        return value + bias[params.n_first + row];
    }
    return value;
}

// What is added to an element of y; a kernel may ask for it long before it writes.
fn residual_at(row: u32, col: u32) -> f32 {
    if (has_residual && row < params.m && col < params.n) {
        return residual[row * params.y_row + params.n_first + col];
    }
    return 0.0;
}

fn store(row: u32, col: u32, value: f32, added: f32) {
    if (row < params.m && col < params.n) {
        y[row * params.y_row + params.n_first + col] = select(value, value + added, has_residual);
    }
}

fn gated_sum(col: u32, gate_value: f32, up: f32) -> f32 {
    if (col < params.n) {
        return gated(biased(gate_value, col), biased(up, params.n + col));
    }
    return 0.0;
}

fn write(row: u32, col: u32, value: f32) {
    store(row, col, biased(value, col), residual_at(row, col));
}

fn write_gated(row: u32, col: u32, gate_value: f32, up: f32) {
    store(row, col, gated_sum(col, gate_value, up), residual_at(row, col));
}
