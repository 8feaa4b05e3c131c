//! lib: grid, live, strided, attention, attention_load
// Attention of 64 or 32 query rows of a stream over one of `params.splits` stretches of the keys
// they may see, 64 keys at a time, with a running softmax: nothing of size rows * keys leaves the
// workgroup, and tiles above the diagonal are never visited. 16 x 8 threads; a thread holds 8 or 4
// rows by 4 keys of scores, and as many rows by `columns` vec4 of the output. What is multiplied
// next is on its way from memory meanwhile. `direct` writes the output; else attention_merge joins
// the stretches.

override columns: u32 = 1u; // at most 4: head dimensions up to 256
override row_quads: u32 = 8u; // fours of rows: 8, or 16 where it is tall
override tall: bool = row_quads == 16u;
override direct: bool = true;
override even: bool = false; // `dim` is a multiple of 32
override weight_count: u32 = 64u * row_quads;

const KEYS: u32 = 64u;
const QUADS: u32 = 8u; // vec4 of a key that are multiplied at a time

@group(0) @binding(4) var<storage, read_write> y: array<f32>;
@group(0) @binding(5) var<storage, read_write> stats: array<vec2<f32>>;

// Keys [key][QUADS], `slot` spreading them over the memory banks; then two vec4 a thread to reduce;
// then values [key][vec4].
var<workgroup> kv_tile: array<vec4<f32>, 512>;
var<workgroup> weights: array<vec4<f32>, weight_count>; // [4 rows][key], a vec4 is 4 rows

// A thread's share of the next 512 vec4 of keys or values.
alias Ahead = array<vec4<f32>, 4>;
// 4 rows by 4 keys, or by 4 vec4 of the output.
alias Block = array<vec4<f32>, 4>;

// 4 rows: where they lie in q, and the keys they see.
struct Rows {
    first: u32,
    q_base: vec4<u32>,
    seen_from: vec4<u32>,
    seen_to: vec4<u32>,
}

struct Softmax {
    most: vec4<f32>,
    sum: vec4<f32>,
}

fn slot(key: u32, quad: u32) -> u32 {
    return key * QUADS + (quad ^ (key & 7u));
}

fn rows_from(stream: u32, first: u32, last_row: u32) -> Rows {
    var found: Rows;
    found.first = first;
    for (var i = 0u; i < 4u; i++) {
        let row = min(first + i, last_row);
        let seen = row_keys(row);
        found.q_base[i] = row_base(stream, row);
        found.seen_from[i] = seen.x;
        found.seen_to[i] = seen.y;
    }
    return found;
}

fn fetch_keys(lane: u32, base: u32, first: u32, end: u32, d: u32) -> Ahead {
    var next: Ahead;
    for (var n = 0u; n < 4u; n++) {
        let i = lane + 128u * n;
        let key = first + i / QUADS;
        let k_d = d + 4u * (i % QUADS);
        if (key < end && k_d < params.dim) {
            next[n] = key4(base + key * params.kv_token, k_d);
        }
    }
    return next;
}

fn fetch_values(lane: u32, base: u32, first: u32, end: u32, count: u32) -> Ahead {
    let vectors = 16u * columns;
    var next: Ahead;
    for (var n = 0u; n < 4u; n++) {
        let i = lane + 128u * n;
        let key = first + i / vectors;
        let v_d = 4u * (i % vectors);
        if (i < count * vectors && key < end && v_d < params.dim) {
            next[n] = value4(base + key * params.kv_token, v_d);
        }
    }
    return next;
}

fn query_quads(rows: Rows, d: u32) -> Block {
    return Block(
        query4(rows.q_base.x, d),
        query4(rows.q_base.y, d),
        query4(rows.q_base.z, d),
        query4(rows.q_base.w, d),
    );
}

// A multiply-add an element: dot() and an addition are one instruction more.
fn dot_onto(sum: f32, u: vec4<f32>, v: vec4<f32>) -> f32 {
    return sum + u.x * v.x + u.y * v.y + u.z * v.z + u.w * v.w;
}

fn dots_onto(sum: vec4<f32>, q: Block, k4: vec4<f32>) -> vec4<f32> {
    return vec4(
        dot_onto(sum.x, q[0], k4),
        dot_onto(sum.y, q[1], k4),
        dot_onto(sum.z, q[2], k4),
        dot_onto(sum.w, q[3], k4),
    );
}

// Scores of 4 rows by a thread's 4 keys of a tile; EXCLUDED where a row may not see the key, which
// does not happen in an open tile.
fn scores(s: Block, rows: Rows, last_row: u32, key0: u32, end: u32, mask_at: u32, open: bool) -> Block {
    var found: Block;
    for (var j = 0u; j < 4u; j++) {
        let key = key0 + 16u * j;
        found[j] = vec4(EXCLUDED);
        for (var i = 0u; i < 4u; i++) {
            if (open || (key < end && key >= rows.seen_from[i] && key < rows.seen_to[i])) {
                found[j][i] = score(s[j][i], min(rows.first + i, last_row), key, mask_at);
            }
        }
    }
    return found;
}

fn largest(s: Block) -> vec4<f32> {
    return max(max(s[0], s[1]), max(s[2], s[3]));
}

// The weights of 4 rows by a thread's 4 keys go to `weights`; their sum is returned.
fn weigh(s: Block, most: vec4<f32>, at: u32) -> vec4<f32> {
    var sum = vec4<f32>();
    for (var j = 0u; j < 4u; j++) {
        let weight = select(vec4<f32>(), exp(s[j] - most), s[j] > vec4(EXCLUDED));
        sum += weight;
        weights[at + 16u * j] = weight;
    }
    return sum;
}

@compute @workgroup_size(128)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = group_index(group, groups);
    let height = 4u * row_quads;
    let blocks = up_div(params.rows, height);
    let split = index % params.splits;
    let stream = index / params.splits / blocks;
    if (stream >= params.streams) {
        return;
    }
    // Later rows see more keys: they go first, so that the short ones fill the end.
    let first_row = (blocks - 1u - index / params.splits % blocks) * height;
    let last_row = min(first_row + height, params.rows) - 1u;
    let keys = rows_keys(first_row, last_row);
    let stretch = up_div(up_div(keys.y - keys.x, KEYS), params.splits) * KEYS;
    let begin = keys.x + split * stretch;
    let end = min(begin + stretch, keys.y);
    if (begin >= end && params.splits > 1u) {
        return;
    }
    // Keys that every row sees.
    let open_keys = vec2(row_keys(last_row).x, row_keys(first_row).y);
    let base = stream_base(stream);
    let mask_at = mask_base(stream);
    let tx = lane % 16u;
    let ty = lane / 16u;
    let low = rows_from(stream, first_row + 4u * ty, last_row);
    var high: Rows;
    if (tall) {
        high = rows_from(stream, first_row + 32u + 4u * ty, last_row);
    }

    let vectors = 16u * columns;
    let value_keys = 32u / select(columns, 4u, columns > 2u);
    var low_soft = Softmax(vec4(EXCLUDED), vec4<f32>());
    var high_soft = Softmax(vec4(EXCLUDED), vec4<f32>());
    var a0: Block;
    var a1: Block;
    var a2: Block;
    var a3: Block;
    var b0: Block;
    var b1: Block;
    var b2: Block;
    var b3: Block;

    var next = fetch_keys(lane, base, begin, end, 0u);
    for (var tile = begin; tile < end; tile += KEYS) {
        // Zeroed by hand: SwiftShader keeps what a bare declaration had the last time round.
        var s = Block();
        var z = Block();
        for (var d = 0u; d < params.dim; d += 4u * QUADS) {
            workgroupBarrier();
            for (var n = 0u; n < 4u; n++) {
                let i = lane + 128u * n;
                kv_tile[slot(i / QUADS, i % QUADS)] = next[n];
            }
            workgroupBarrier();
            if (d + 4u * QUADS < params.dim) {
                next = fetch_keys(lane, base, tile, end, d + 4u * QUADS);
            } else {
                next = fetch_values(lane, base, tile, end, value_keys);
            }
            for (var e = 0u; e < select(min(QUADS, (params.dim - d + 3u) / 4u), QUADS, even); e++) {
                let q = query_quads(low, d + 4u * e);
                var r: Block;
                if (tall) {
                    r = query_quads(high, d + 4u * e);
                }
                for (var j = 0u; j < 4u; j++) {
                    let k4 = kv_tile[slot(tx + 16u * j, e)];
                    s[j] = dots_onto(s[j], q, k4);
                    if (tall) {
                        z[j] = dots_onto(z[j], r, k4);
                    }
                }
            }
        }
        let open = tile >= open_keys.x && tile + KEYS <= min(open_keys.y, end);
        s = scores(s, low, last_row, tile + tx, end, mask_at, open);
        if (tall) {
            z = scores(z, high, last_row, tile + tx, end, mask_at, open);
        }
        workgroupBarrier();
        kv_tile[lane] = largest(s);
        if (tall) {
            kv_tile[128u + lane] = largest(z);
        }
        workgroupBarrier();
        var most = low_soft.most;
        var high_most = high_soft.most;
        for (var t = 0u; t < 16u; t++) {
            most = max(most, kv_tile[16u * ty + t]);
            if (tall) {
                high_most = max(high_most, kv_tile[128u + 16u * ty + t]);
            }
        }
        let fade = exp(low_soft.most - most);
        low_soft = Softmax(most, low_soft.sum * fade + weigh(s, most, KEYS * ty + tx));
        for (var n = 0u; n < columns; n++) {
            a0[n] *= fade.x;
            a1[n] *= fade.y;
            a2[n] *= fade.z;
            a3[n] *= fade.w;
        }
        if (tall) {
            let f = exp(high_soft.most - high_most);
            let sum = weigh(z, high_most, KEYS * (8u + ty) + tx);
            high_soft = Softmax(high_most, high_soft.sum * f + sum);
            for (var n = 0u; n < columns; n++) {
                b0[n] *= f.x;
                b1[n] *= f.y;
                b2[n] *= f.z;
                b3[n] *= f.w;
            }
        }
        let count = min(KEYS, end - tile);
        for (var first = 0u; first < count; first += value_keys) {
            workgroupBarrier();
            for (var n = 0u; n < 4u; n++) {
                let i = lane + 128u * n;
                if (i < value_keys * vectors) {
                    kv_tile[i] = next[n];
                }
            }
            workgroupBarrier();
            if (first + value_keys < count) {
                next = fetch_values(lane, base, tile + first + value_keys, end, value_keys);
            } else {
                next = fetch_keys(lane, base, tile + KEYS, end, 0u);
            }
            for (var t = 0u; t < value_keys; t++) {
                let w = weights[KEYS * ty + first + t];
                var u: vec4<f32>;
                if (tall) {
                    u = weights[KEYS * (8u + ty) + first + t];
                }
                for (var n = 0u; n < columns; n++) {
                    let v4 = kv_tile[t * vectors + tx + 16u * n];
                    a0[n] += w.x * v4;
                    a1[n] += w.y * v4;
                    a2[n] += w.z * v4;
                    a3[n] += w.w * v4;
                    if (tall) {
                        b0[n] += u.x * v4;
                        b1[n] += u.y * v4;
                        b2[n] += u.z * v4;
                        b3[n] += u.w * v4;
                    }
                }
            }
        }
    }

    workgroupBarrier();
    kv_tile[lane] = low_soft.sum;
    if (tall) {
        kv_tile[128u + lane] = high_soft.sum;
    }
    workgroupBarrier();
    low_soft.sum = vec4<f32>();
    high_soft.sum = vec4<f32>();
    for (var t = 0u; t < 16u; t++) {
        low_soft.sum += kv_tile[16u * ty + t];
        if (tall) {
            high_soft.sum += kv_tile[128u + 16u * ty + t];
        }
    }
    write(stream, split, low.first, last_row, tx, low_soft, a0, a1, a2, a3);
    if (tall) {
        write(stream, split, high.first, last_row, tx, high_soft, b0, b1, b2, b3);
    }
}

// A thread's columns of 4 rows, or of a stretch's part of them and what merges it.
fn write(
    stream: u32,
    split: u32,
    row: u32,
    last_row: u32,
    tx: u32,
    soft: Softmax,
    r0: Block,
    r1: Block,
    r2: Block,
    r3: Block,
) {
    let share = select(vec4<f32>(), 1.0 / soft.sum, soft.sum > vec4<f32>());
    for (var i = 0u; i < 4u && row + i <= last_row; i++) {
        let part = (stream * params.rows + row + i) * params.splits + split;
        var to = part * params.dim;
        var scale = 1.0;
        if (direct) {
            to = row_base(stream, row + i);
            scale = share[i];
        } else if (tx == 0u) {
            stats[part] = vec2(soft.most[i], soft.sum[i]);
        }
        for (var n = 0u; n < columns; n++) {
            let d = 4u * (tx + 16u * n);
            let value = select(select(r0[n], r1[n], i == 1u), select(r2[n], r3[n], i == 3u), i >= 2u);
            for (var c = 0u; c < 4u && d + c < params.dim; c++) {
                y[to + d + c] = value[c] * scale;
            }
        }
    }
}
