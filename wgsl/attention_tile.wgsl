//! lib: grid, live, strided, attention, attention_load, attention_rows
// Attention of 64 or 32 query rows of a stream over one of `params.splits` stretches of the keys
// they may see, 64 keys at a time, with a running softmax: nothing of size rows * keys leaves the
// workgroup, and tiles above the diagonal are never visited. 16 x 8 threads; a thread holds 8 or 4
// rows by 4 keys of scores, and as many rows by `columns` vec4 of the output. What is multiplied
// next is on its way from memory meanwhile. `direct` writes the output; else attention_join joins
// the stretches.

override columns: u32 = 1u; // at most 4: head dimensions up to 256
override row_quads: u32 = 8u; // fours of rows: 8, or 16 where it is tall
override tall: bool = row_quads == 16u; // at most 2 columns
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

// Scores of the low 4 rows by a thread's 4 keys, and of the high ones.
struct Scores {
    low: Four,
    high: Four,
}

// A thread's columns of the output, a Four each.
struct Output {
    low0: Four,
    low1: Four,
    low2: Four,
    low3: Four,
    high0: Four,
    high1: Four,
}

// Which rows and columns a thread writes.
struct Place {
    stream: u32,
    split: u32,
    last_row: u32,
    tx: u32,
}

fn slot(key: u32, quad: u32) -> u32 {
    return key * QUADS + (quad ^ (key & 7u));
}

fn next_key(i: u32, base: u32, first: u32, end: u32, d: u32) -> vec4<f32> {
    let key = first + i / QUADS;
    let k_d = d + 4u * (i % QUADS);
    if (key < end && k_d < params.dim) {
        return key4(base + key * params.kv_token, k_d);
    }
    return vec4<f32>();
}

fn fetch_keys(lane: u32, base: u32, first: u32, end: u32, d: u32) -> Four {
    return Four(
        next_key(lane, base, first, end, d),
        next_key(lane + 128u, base, first, end, d),
        next_key(lane + 256u, base, first, end, d),
        next_key(lane + 384u, base, first, end, d),
    );
}

fn next_value(i: u32, base: u32, first: u32, end: u32, count: u32) -> vec4<f32> {
    let vectors = 16u * columns;
    let key = first + i / vectors;
    let v_d = 4u * (i % vectors);
    if (i < count * vectors && key < end && v_d < params.dim) {
        return value4(base + key * params.kv_token, v_d);
    }
    return vec4<f32>();
}

fn fetch_values(lane: u32, base: u32, first: u32, end: u32, count: u32) -> Four {
    return Four(
        next_value(lane, base, first, end, count),
        next_value(lane + 128u, base, first, end, count),
        next_value(lane + 256u, base, first, end, count),
        next_value(lane + 384u, base, first, end, count),
    );
}

// Quad `e` of the keys in the tile, from element `d` on, with the same of the rows.
fn products_onto(s: Scores, low: Rows, high: Rows, tx: u32, d: u32, e: u32) -> Scores {
    var found = s;
    let ka = kv_tile[slot(tx, e)];
    let kb = kv_tile[slot(tx + 16u, e)];
    let kc = kv_tile[slot(tx + 32u, e)];
    let kd = kv_tile[slot(tx + 48u, e)];
    let q = query_quads(low, d + 4u * e);
    found.low.a = dots_onto(s.low.a, q, ka);
    found.low.b = dots_onto(s.low.b, q, kb);
    found.low.c = dots_onto(s.low.c, q, kc);
    found.low.d = dots_onto(s.low.d, q, kd);
    if (tall) {
        let r = query_quads(high, d + 4u * e);
        found.high.a = dots_onto(s.high.a, r, ka);
        found.high.b = dots_onto(s.high.b, r, kb);
        found.high.c = dots_onto(s.high.c, r, kc);
        found.high.d = dots_onto(s.high.d, r, kd);
    }
    return found;
}

// All of the tile's quads, from element `d` of the keys on.
fn tile_onto(s: Scores, low: Rows, high: Rows, tx: u32, d: u32) -> Scores {
    var found = s;
    if (even) {
        found = products_onto(found, low, high, tx, d, 0u);
        found = products_onto(found, low, high, tx, d, 1u);
        found = products_onto(found, low, high, tx, d, 2u);
        found = products_onto(found, low, high, tx, d, 3u);
        found = products_onto(found, low, high, tx, d, 4u);
        found = products_onto(found, low, high, tx, d, 5u);
        found = products_onto(found, low, high, tx, d, 6u);
        return products_onto(found, low, high, tx, d, 7u);
    }
    for (var e = 0u; e < min(QUADS, (params.dim - d + 3u) / 4u); e++) {
        found = products_onto(found, low, high, tx, d, e);
    }
    return found;
}

fn four_at(at: u32) -> Four {
    return Four(kv_tile[at], kv_tile[at + 1u], kv_tile[at + 2u], kv_tile[at + 3u]);
}

// Over the 16 threads that share 4 rows.
fn largest_at(at: u32) -> vec4<f32> {
    let low = max(largest(four_at(at)), largest(four_at(at + 4u)));
    return max(low, max(largest(four_at(at + 8u)), largest(four_at(at + 12u))));
}

fn total_at(at: u32) -> vec4<f32> {
    let low = total(four_at(at)) + total(four_at(at + 4u));
    return low + total(four_at(at + 8u)) + total(four_at(at + 12u));
}

// The weights of 4 rows by a thread's 4 keys go to `weights`; their sum is returned.
fn weigh(s: Four, most: vec4<f32>, at: u32) -> vec4<f32> {
    let w = Four(
        weight_of(s.a, most), weight_of(s.b, most), weight_of(s.c, most), weight_of(s.d, most));
    weights[at] = w.a;
    weights[at + 16u] = w.b;
    weights[at + 32u] = w.c;
    weights[at + 48u] = w.d;
    return total(w);
}

fn all_faded(o: Output, low: vec4<f32>, high: vec4<f32>) -> Output {
    var found = o;
    found.low0 = faded(o.low0, low);
    if (columns > 1u) {
        found.low1 = faded(o.low1, low);
    }
    if (columns > 2u) {
        found.low2 = faded(o.low2, low);
    }
    if (columns > 3u) {
        found.low3 = faded(o.low3, low);
    }
    if (tall) {
        found.high0 = faded(o.high0, high);
        found.high1 = faded(o.high1, high);
    }
    return found;
}

// A value times its weights: `at` is its key's place in `weights`, `v_at` its first column's in
// the tile.
fn value_onto(o: Output, at: u32, v_at: u32) -> Output {
    var found = o;
    let w = weights[at];
    var u: vec4<f32>;
    if (tall) {
        u = weights[at + 8u * KEYS];
    }
    let v0 = kv_tile[v_at];
    found.low0 = onto(o.low0, w, v0);
    if (tall) {
        found.high0 = onto(o.high0, u, v0);
    }
    if (columns > 1u) {
        let v1 = kv_tile[v_at + 16u];
        found.low1 = onto(o.low1, w, v1);
        if (tall) {
            found.high1 = onto(o.high1, u, v1);
        }
    }
    if (columns > 2u) {
        found.low2 = onto(o.low2, w, kv_tile[v_at + 32u]);
    }
    if (columns > 3u) {
        found.low3 = onto(o.low3, w, kv_tile[v_at + 48u]);
    }
    return found;
}

fn eight_onto(o: Output, at: u32, v_at: u32) -> Output {
    let step = 16u * columns;
    var found = value_onto(o, at, v_at);
    found = value_onto(found, at + 1u, v_at + step);
    found = value_onto(found, at + 2u, v_at + 2u * step);
    found = value_onto(found, at + 3u, v_at + 3u * step);
    found = value_onto(found, at + 4u, v_at + 4u * step);
    found = value_onto(found, at + 5u, v_at + 5u * step);
    found = value_onto(found, at + 6u, v_at + 6u * step);
    return value_onto(found, at + 7u, v_at + 7u * step);
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
    var output: Output;

    var next = fetch_keys(lane, base, begin, end, 0u);
    for (var tile = begin; tile < end; tile += KEYS) {
        // Zeroed by hand: SwiftShader keeps what a bare declaration had the last time round.
        var s = Scores();
        for (var d = 0u; d < params.dim; d += 4u * QUADS) {
            workgroupBarrier();
            let at = slot(lane / QUADS, lane % QUADS);
            kv_tile[at] = next.a;
            kv_tile[at + 128u] = next.b;
            kv_tile[at + 256u] = next.c;
            kv_tile[at + 384u] = next.d;
            workgroupBarrier();
            if (d + 4u * QUADS < params.dim) {
                next = fetch_keys(lane, base, tile, end, d + 4u * QUADS);
            } else {
                next = fetch_values(lane, base, tile, end, value_keys);
            }
            s = tile_onto(s, low, high, tx, d);
        }
        let open = tile >= open_keys.x && tile + KEYS <= min(open_keys.y, end);
        let here = Keys(tile + tx, end, last_row, mask_at, open);
        s.low = scores(s.low, low, here);
        if (tall) {
            s.high = scores(s.high, high, here);
        }
        workgroupBarrier();
        kv_tile[lane] = largest(s.low);
        if (tall) {
            kv_tile[128u + lane] = largest(s.high);
        }
        workgroupBarrier();
        let most = max(low_soft.most, largest_at(16u * ty));
        let fade = exp(low_soft.most - most);
        low_soft = Softmax(most, low_soft.sum * fade + weigh(s.low, most, KEYS * ty + tx));
        var high_fade: vec4<f32>;
        if (tall) {
            let high_most = max(high_soft.most, largest_at(128u + 16u * ty));
            high_fade = exp(high_soft.most - high_most);
            let sum = weigh(s.high, high_most, KEYS * (8u + ty) + tx);
            high_soft = Softmax(high_most, high_soft.sum * high_fade + sum);
        }
        output = all_faded(output, fade, high_fade);
        let count = min(KEYS, end - tile);
        for (var first = 0u; first < count; first += value_keys) {
            workgroupBarrier();
            kv_tile[lane] = next.a;
            kv_tile[lane + 128u] = next.b;
            kv_tile[lane + 256u] = next.c;
            if (value_keys * vectors > 384u) {
                kv_tile[lane + 384u] = next.d;
            }
            workgroupBarrier();
            if (first + value_keys < count) {
                next = fetch_values(lane, base, tile + first + value_keys, end, value_keys);
            } else {
                next = fetch_keys(lane, base, tile + KEYS, end, 0u);
            }
            for (var t = 0u; t < value_keys; t += 8u) {
                output = eight_onto(output, KEYS * ty + first + t, t * vectors + tx);
            }
        }
    }

    workgroupBarrier();
    kv_tile[lane] = low_soft.sum;
    if (tall) {
        kv_tile[128u + lane] = high_soft.sum;
    }
    workgroupBarrier();
    low_soft.sum = total_at(16u * ty);
    if (tall) {
        high_soft.sum = total_at(128u + 16u * ty);
    }
    let o = output;
    let place = Place(stream, split, last_row, tx);
    write(place, low.first, low_soft, o.low0, o.low1, o.low2, o.low3);
    if (tall) {
        write(place, high.first, high_soft, o.high0, o.high1, Four(), Four());
    }
}

fn write_elements(to: u32, d: u32, value: vec4<f32>) {
    if (d < params.dim) {
        y[to + d] = value.x;
    }
    if (d + 1u < params.dim) {
        y[to + d + 1u] = value.y;
    }
    if (d + 2u < params.dim) {
        y[to + d + 2u] = value.z;
    }
    if (d + 3u < params.dim) {
        y[to + d + 3u] = value.w;
    }
}

// A thread's columns of a row, or of a stretch's part of it and what merges it.
fn write_row(place: Place, row: u32, most: f32, sum: f32, own: Four) {
    if (row > place.last_row) {
        return;
    }
    let part = (place.stream * params.rows + row) * params.splits + place.split;
    var to = part * params.dim;
    var scale = 1.0;
    if (direct) {
        to = row_base(place.stream, row);
        scale = select(0.0, 1.0 / sum, sum > 0.0);
    } else if (place.tx == 0u) {
        stats[part] = vec2(most, sum);
    }
    write_elements(to, 4u * place.tx, own.a * scale);
    if (columns > 1u) {
        write_elements(to, 4u * place.tx + 64u, own.b * scale);
    }
    if (columns > 2u) {
        write_elements(to, 4u * place.tx + 128u, own.c * scale);
    }
    if (columns > 3u) {
        write_elements(to, 4u * place.tx + 192u, own.d * scale);
    }
}

// 4 rows by a thread's columns, which are a Four each.
fn write(place: Place, row: u32, soft: Softmax, c0: Four, c1: Four, c2: Four, c3: Four) {
    write_row(place, row, soft.most.x, soft.sum.x, Four(c0.a, c1.a, c2.a, c3.a));
    write_row(place, row + 1u, soft.most.y, soft.sum.y, Four(c0.b, c1.b, c2.b, c3.b));
    write_row(place, row + 2u, soft.most.z, soft.sum.z, Four(c0.c, c1.c, c2.c, c3.c));
    write_row(place, row + 3u, soft.most.w, soft.sum.w, Four(c0.d, c1.d, c2.d, c3.d));
}
