// What the kernels of rotary embeddings share. `arrangement` picks where a pair and its cos and sin
// lie. Tensors are seen as Units: elements, or vec4 of them.

struct Params {
    count: u32, // tokens of all batch entries, each of which has `tokens`
    tokens: u32,
    q_heads: u32,
    k_heads: u32,
    dim: u32,
    rotary: u32,
    rows: u32,
    start: u32,
}

const PAIRS: u32 = 0u;  // (2i, 2i+1); tables [token, i]
const HALVES: u32 = 1u; // (i, i + rotary/2); tables [start + token, element]
const INTERLEAVED: u32 = 2u; // (2i, 2i+1); one table [token, element] of (cos, sin), bound twice
const LIVE_PAIRS: u32 = 3u;  // (2i, 2i+1); tables [start + token, i]
const LIVE_HALVES: u32 = 4u; // (i, i + rotary/2); tables [start + token, i]

override arrangement: u32 = 0u;

@group(0) @binding(0) var<storage, read> q: array<Unit>;
@group(0) @binding(1) var<storage, read> k: array<Unit>;
@group(0) @binding(2) var<storage, read> cosines: array<Unit>;
@group(0) @binding(3) var<storage, read> sines: array<Unit>;
@group(0) @binding(4) var<storage, read_write> q_out: array<Unit>;
@group(0) @binding(5) var<storage, read_write> k_out: array<Unit>;
@group(0) @binding(10) var<uniform> params: Params;

// The row of the tables for a token.
fn table_row(token: u32) -> u32 {
    if (arrangement == PAIRS || arrangement == INTERLEAVED) {
        return min(token, params.rows - 1u);
    }
    return min(u32(live[params.start]) + token, params.rows - 1u);
}
