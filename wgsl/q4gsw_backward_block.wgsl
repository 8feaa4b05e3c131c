//! lib: grid, block, q4gsw_code, q4gsw_backward_tiles
// d_x = d_out . dequantized weight in blocks of registers, without barriers.
