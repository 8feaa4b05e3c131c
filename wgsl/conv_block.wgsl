//! lib: grid, block, conv, conv_tiles
// Convolution as a matrix product in blocks of registers, without barriers.
