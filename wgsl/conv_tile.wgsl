//! lib: grid, tile, conv, conv_tiles
// Convolution as a matrix product in tiles of workgroup memory.
