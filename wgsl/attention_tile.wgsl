//! lib: grid, live, strided, attention, attention_load
// Attention of 32 query rows of a stream over all keys they may see, 64 keys at a time, with a
// running softmax: nothing of size rows * keys leaves the workgroup, and tiles above the diagonal
// are never visited. 16 x 8 threads; a thread holds 4 rows by 4 keys of scores and 4 rows by
// `columns` vec4 of the output.

override columns: u32 = 1u; // at most 4: head dimensions up to 256

const ROWS: u32 = 32u;
const KEYS: u32 = 64u;
const QUADS: u32 = 8u; // vec4 of a key that are multiplied at a time

@group(0) @binding(4) var<storage, read_write> y: array<f32>;

// Keys [key][QUADS], `slot` spreading them over the memory banks; then one vec4 a thread to reduce;
// then values [key][vec4].
var<workgroup> kv_tile: array<vec4<f32>, 512>;
var<workgroup> weights: array<vec4<f32>, 512>; // [4 rows][key], a vec4 is 4 rows

fn slot(key: u32, quad: u32) -> u32 {
    return key * QUADS + (quad ^ (key & 7u));
}

@compute @workgroup_size(128)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = group_index(group, groups);
    let blocks = up_div(params.rows, ROWS);
    let stream = index / blocks;
    if (stream >= params.streams) {
        return;
    }
    // Later rows see more keys: they go first, so that the short ones fill the end.
    let first_row = (blocks - 1u - index % blocks) * ROWS;
    let last_row = min(first_row + ROWS, params.rows) - 1u;
    let keys = rows_keys(first_row, last_row);
    let base = stream_base(stream);
    let mask_at = mask_base(stream);
    let tx = lane % 16u;
    let ty = lane / 16u;
    var rows: vec4<u32>;
    var q_base: vec4<u32>;
    var seen_from: vec4<u32>;
    var seen_to: vec4<u32>;
    for (var i = 0u; i < 4u; i++) {
        rows[i] = min(first_row + 4u * ty + i, last_row);
        q_base[i] = row_base(stream, rows[i]);
        let seen = row_keys(rows[i]);
        seen_from[i] = seen.x;
        seen_to[i] = seen.y;
    }

    let vectors = 16u * columns;
    let value_keys = 32u / select(columns, 4u, columns > 2u);
    var row_max = vec4(EXCLUDED);
    var row_sum = vec4<f32>();
    var sums0: array<vec4<f32>, 4>;
    var sums1: array<vec4<f32>, 4>;
    var sums2: array<vec4<f32>, 4>;
    var sums3: array<vec4<f32>, 4>;

    for (var tile = keys.x; tile < keys.y; tile += KEYS) {
        // Zeroed by hand: SwiftShader keeps what a bare declaration had the last time round.
        var s = array<vec4<f32>, 4>();
        for (var d = 0u; d < params.dim; d += 4u * QUADS) {
            workgroupBarrier();
            for (var n = 0u; n < 4u; n++) {
                let i = lane + 128u * n;
                let key = tile + i / QUADS;
                let k_d = d + 4u * (i % QUADS);
                var k4 = vec4<f32>();
                if (key < keys.y && k_d < params.dim) {
                    k4 = key4(base + key * params.kv_token, k_d);
                }
                kv_tile[slot(i / QUADS, i % QUADS)] = k4;
            }
            workgroupBarrier();
            for (var e = 0u; e < QUADS && d + 4u * e < params.dim; e++) {
                let q0 = query4(q_base.x, d + 4u * e);
                let q1 = query4(q_base.y, d + 4u * e);
                let q2 = query4(q_base.z, d + 4u * e);
                let q3 = query4(q_base.w, d + 4u * e);
                for (var j = 0u; j < 4u; j++) {
                    let k4 = kv_tile[slot(tx + 16u * j, e)];
                    s[j] += vec4(dot(q0, k4), dot(q1, k4), dot(q2, k4), dot(q3, k4));
                }
            }
        }
        var most = row_max;
        for (var j = 0u; j < 4u; j++) {
            let key = tile + tx + 16u * j;
            var found = vec4(EXCLUDED);
            if (key < keys.y) {
                for (var i = 0u; i < 4u; i++) {
                    if (key >= seen_from[i] && key < seen_to[i]) {
                        found[i] = score(s[j][i], rows[i], key, mask_at);
                    }
                }
            }
            s[j] = found;
            most = max(most, found);
        }
        workgroupBarrier();
        kv_tile[lane] = most;
        workgroupBarrier();
        for (var t = 0u; t < 16u; t++) {
            most = max(most, kv_tile[16u * ty + t]);
        }
        let fade = exp(row_max - most);
        row_max = most;
        row_sum *= fade;
        for (var j = 0u; j < 4u; j++) {
            let weight = select(vec4<f32>(), exp(s[j] - most), s[j] > vec4(EXCLUDED));
            row_sum += weight;
            weights[KEYS * ty + tx + 16u * j] = weight;
        }
        for (var n = 0u; n < columns; n++) {
            sums0[n] *= fade.x;
            sums1[n] *= fade.y;
            sums2[n] *= fade.z;
            sums3[n] *= fade.w;
        }
        let count = min(KEYS, keys.y - tile);
        for (var first = 0u; first < count; first += value_keys) {
            workgroupBarrier();
            for (var i = lane; i < value_keys * vectors; i += 128u) {
                let key = tile + first + i / vectors;
                let v_d = 4u * (i % vectors);
                var v4 = vec4<f32>();
                if (key < keys.y && v_d < params.dim) {
                    v4 = value4(base + key * params.kv_token, v_d);
                }
                kv_tile[i] = v4;
            }
            workgroupBarrier();
            for (var t = 0u; t < value_keys; t++) {
                let weight = weights[KEYS * ty + first + t];
                for (var n = 0u; n < columns; n++) {
                    let v4 = kv_tile[t * vectors + tx + 16u * n];
                    sums0[n] += weight.x * v4;
                    sums1[n] += weight.y * v4;
                    sums2[n] += weight.z * v4;
                    sums3[n] += weight.w * v4;
                }
            }
        }
    }

    workgroupBarrier();
    kv_tile[lane] = row_sum;
    workgroupBarrier();
    var total = vec4<f32>();
    for (var t = 0u; t < 16u; t++) {
        total += kv_tile[16u * ty + t];
    }
    let share = select(vec4<f32>(), 1.0 / total, total > vec4<f32>());
    for (var n = 0u; n < columns; n++) {
        let d = 4u * (tx + 16u * n);
        store(stream, first_row + 4u * ty, last_row, d, sums0[n] * share.x);
        store(stream, first_row + 4u * ty + 1u, last_row, d, sums1[n] * share.y);
        store(stream, first_row + 4u * ty + 2u, last_row, d, sums2[n] * share.z);
        store(stream, first_row + 4u * ty + 3u, last_row, d, sums3[n] * share.w);
    }
}

fn store(stream: u32, row: u32, last_row: u32, d: u32, value_: vec4<f32>) {
    if (row > last_row) {
        return;
    }
    var value = value_;
    let to = row_base(stream, row) + d;
    for (var c = 0u; c < 4u && d + c < params.dim; c++) {
        y[to + c] = value[c];
    }
}
