//! lib: grid, tile, product, product_tiles
// y = alpha * a . b + beta * c in tiles of workgroup memory.
