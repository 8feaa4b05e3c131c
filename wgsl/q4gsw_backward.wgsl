//! lib: grid, tile, q4gsw_code, q4gsw_backward_tiles
// d_x = d_out . dequantized weight in tiles of workgroup memory.
