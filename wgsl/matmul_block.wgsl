//! lib: grid, block, product, product_tiles
// y = alpha * a . b + beta * c in blocks of registers, without barriers.
