// Value of a 4-bit code in rows of packed bytes with transposed scales [G, Npad]; needs `weight`,
// `scales`, and row_bytes, group_size, scale_step in Params.
fn q4gsw_value(row: u32, k: u32) -> f32 {
    let byte = row * params.row_bytes + k / 2u;
    let code = (weight[byte / 4u] >> ((byte % 4u) * 8u + (k % 2u) * 4u)) & 15u;
    return (f32(code) - 8.0) * scales[k / params.group_size * params.scale_step + row];
}
