// What the attention kernels share. A stream is one key/value head of one batch entry; its rows are
// the `tokens * heads` queries that look at it, token-major. Keys and values are float32 words, or
// pairs of float16 in a word when `packed`.

struct Params {
    streams: u32,
    rows: u32,
    heads: u32,
    dim: u32,
    keys: u32,
    kv_heads: u32,
    window: u32,
    position: u32,
    splits: u32,
    scale: f32,
    softcap: f32,
    q_batch: u32,
    q_token: u32,
    q_head: u32,
    kv_batch: u32,
    kv_token: u32,
    kv_head: u32,
    mask_token: u32,
    mask_key: u32,
    mask_dims: array<vec4<u32>, 2>,
    mask_strides: array<vec4<u32>, 2>,
}

override causal: u32 = 1u;
// Whether every row of `dim` elements is a whole number of vec4.
override whole: u32 = 0u;

@group(0) @binding(10) var<uniform> params: Params;

// A key that a row may not see at all; real scores are at least MASKED.
const EXCLUDED: f32 = -3.0e38;
const MASKED: f32 = -1.0e30;

fn up_div(a: u32, b: u32) -> u32 {
    return (a + b - 1u) / b;
}

// Where a row of q, and of the output, begins.
fn row_base(stream: u32, row: u32) -> u32 {
    let token = row / params.heads;
    let head = (stream % params.kv_heads) * params.heads + row % params.heads;
    let batch = stream / params.kv_heads;
    return batch * params.q_batch + token * params.q_token + head * params.q_head;
}

// Keys [first, end) that a row looks at.
fn row_keys(row: u32) -> vec2<u32> {
    if (causal == 0u) {
        return vec2(0u, params.keys);
    }
    let end = min(u32(live[params.position]) + row / params.heads + 1u, params.keys);
    let past = select(end, params.window, params.window != 0u);
    return vec2(end - min(end, past), end);
}

// Keys [first, end) that rows `first_row` to `last_row` look at together.
fn rows_keys(first_row: u32, last_row: u32) -> vec2<u32> {
    return vec2(row_keys(first_row).x, row_keys(last_row).y);
}

// Stretches of the keys, 64 at least, that a block of rows uses of `params.splits`: who leaves parts
// and who joins them decide alike, for the whole block that holds the row.
fn stretches_used(row: u32, block: u32) -> u32 {
    let first_row = row / block * block;
    let keys = rows_keys(first_row, min(first_row + block, params.rows) - 1u);
    let tiles = up_div(keys.y - keys.x, 64u);
    return up_div(tiles, up_div(tiles, params.splits));
}
