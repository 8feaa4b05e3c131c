// Interface of the float32 products y = alpha * a . b + beta * c, batched. Every operand has
// strides, so transposes cost nothing.
struct Params {
    rows: u32,
    cols: u32,
    depth: u32,
    batch: u32,
    a_row: u32,
    a_k: u32,
    a_batch: u32,
    b_col: u32,
    b_k: u32,
    b_batch: u32,
    c_row: u32,
    c_col: u32,
    y_row: u32,
    y_col: u32,
    y_batch: u32,
    col_offset: u32,
    along_k: u32,
    columns: u32,
    alpha: f32,
    beta: f32,
}

@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read> c: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(10) var<uniform> params: Params;
