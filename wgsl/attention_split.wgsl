//! lib: grid, live, strided, attention, attention_load
// Attention of a few query rows over one stretch of the keys. A workgroup takes `block_rows` rows of
// a stream, so keys and values are read once for all query heads of a group, and one of
// `params.splits` stretches. `direct` writes the output; else partial outputs and (max, sum) go to
// scratch and attention_merge joins them. How many stretches are in use follows the live position.

override block_rows: u32 = 4u; // at most 8
override row_slots: u32 = 4u;  // power of two: rows whose softmax runs side by side
override dim_lanes: u32 = 16u; // power of two: lanes along the head dimension
override direct: u32 = 0u;
// Named, since naga 29 panics where such an expression is an array's length.
override score_count: u32 = block_rows * TILE;
override partial_count: u32 = block_rows * wg_size;

const TILE: u32 = 64u;

@group(0) @binding(4) var<storage, read_write> y: array<f32>;
@group(0) @binding(5) var<storage, read_write> stats: array<vec2<f32>>;

var<workgroup> scores: array<f32, score_count>;
var<workgroup> partial: array<vec4<f32>, partial_count>;
var<workgroup> lane_max: array<f32, 64>;
var<workgroup> lane_sum: array<f32, 64>;
var<workgroup> row_max: array<f32, 8>;
var<workgroup> row_next: array<f32, 8>;
var<workgroup> row_sum: array<f32, 8>;

// The row's sum of weights once this tile is counted.
fn next_sum(r: u32, sub_lanes: u32) -> f32 {
    var sum = row_sum[r] * exp(row_max[r] - row_next[r]);
    for (var i = 0u; i < sub_lanes; i++) {
        sum += lane_sum[r * sub_lanes + i];
    }
    return sum;
}

@compute @workgroup_size(wg_size)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = group_index(group, groups);
    let blocks = up_div(params.rows, block_rows);
    let split = index % params.splits;
    let first_row = (index / params.splits) % blocks * block_rows;
    let stream = index / params.splits / blocks;
    if (stream >= params.streams) {
        return;
    }
    let last_row = min(first_row + block_rows, params.rows) - 1u;
    let keys = rows_keys(first_row, last_row);
    let stretch = up_div(up_div(keys.y - keys.x, TILE), params.splits) * TILE;
    let begin = keys.x + split * stretch;
    let end = min(begin + stretch, keys.y);
    if (begin >= end) {
        return;
    }

    let sub_lanes = wg_size / row_slots;
    let slot = lane / sub_lanes;
    let sub = lane % sub_lanes;
    let key_lanes = wg_size / dim_lanes;
    let vectors = up_div(params.dim, 4u);
    let base = stream_base(stream);
    let mask_at = mask_base(stream);
    var q_base: array<u32, 8>;
    var seen: array<vec2<u32>, 8>;
    for (var r = 0u; r < block_rows; r++) {
        let row = min(first_row + r, last_row);
        q_base[r] = row_base(stream, row);
        seen[r] = row_keys(row);
    }
    for (var r = lane; r < block_rows; r += wg_size) {
        row_max[r] = EXCLUDED;
        row_sum[r] = 0.0;
    }

    for (var tile = begin; tile < end; tile += TILE) {
        let count = min(TILE, end - tile);
        // Scores: a lane a key.
        for (var t = lane; t < TILE; t += wg_size) {
            let key = tile + t;
            // Zeroed by hand: SwiftShader keeps what a bare declaration had the last time round.
            var dots = array<f32, 8>();
            if (t < count) {
                let key_base = base + key * params.kv_token;
                for (var d = 0u; d < params.dim; d += 4u) {
                    let k4 = key4(key_base, d);
                    for (var r = 0u; r < block_rows; r++) {
                        dots[r] += dot(query4(q_base[r], d), k4);
                    }
                }
            }
            for (var r = 0u; r < block_rows; r++) {
                var found = EXCLUDED;
                if (t < count && key >= seen[r].x && key < seen[r].y) {
                    found = score(dots[r], min(first_row + r, last_row), key, mask_at);
                }
                scores[r * TILE + t] = found;
            }
        }
        workgroupBarrier();
        // Softmax of the tile: `sub_lanes` lanes a row.
        for (var r = slot; r < block_rows; r += row_slots) {
            var most = EXCLUDED;
            for (var t = sub; t < TILE; t += sub_lanes) {
                most = max(most, scores[r * TILE + t]);
            }
            lane_max[r * sub_lanes + sub] = most;
        }
        workgroupBarrier();
        for (var r = slot; r < block_rows; r += row_slots) {
            var most = row_max[r];
            for (var i = 0u; i < sub_lanes; i++) {
                most = max(most, lane_max[r * sub_lanes + i]);
            }
            var sum = 0.0;
            for (var t = sub; t < TILE; t += sub_lanes) {
                let s = scores[r * TILE + t];
                let weight = select(0.0, exp(s - most), s > EXCLUDED);
                scores[r * TILE + t] = weight;
                sum += weight;
            }
            lane_sum[r * sub_lanes + sub] = sum;
            if (sub == 0u) {
                row_next[r] = most;
            }
        }
        workgroupBarrier();
        // Weighted values: `dim_lanes` lanes along the head, the others along the keys.
        for (var v0 = 0u; v0 < vectors; v0 += dim_lanes) {
            let at = v0 + lane % dim_lanes;
            var sums = array<vec4<f32>, 8>();
            if (at < vectors) {
                for (var t = lane / dim_lanes; t < count; t += key_lanes) {
                    let v4 = value4(base + (tile + t) * params.kv_token, 4u * at);
                    for (var r = 0u; r < block_rows; r++) {
                        sums[r] += scores[r * TILE + t] * v4;
                    }
                }
            }
            for (var r = 0u; r < block_rows; r++) {
                partial[r * wg_size + lane] = sums[r];
            }
            workgroupBarrier();
            for (var i = lane; i < block_rows * dim_lanes; i += wg_size) {
                let r = i / dim_lanes;
                let d = 4u * (v0 + i % dim_lanes);
                let row = first_row + r;
                if (row > last_row || d >= params.dim) {
                    continue;
                }
                var sum = vec4<f32>();
                for (var j = 0u; j < key_lanes; j++) {
                    sum += partial[r * wg_size + j * dim_lanes + i % dim_lanes];
                }
                var to = ((stream * params.rows + row) * params.splits + split) * params.dim + d;
                if (direct != 0u) {
                    to = row_base(stream, row) + d;
                }
                // The same lane comes back to the same elements in every tile.
                if (tile > begin) {
                    let fade = exp(row_max[r] - row_next[r]);
                    for (var c = 0u; c < 4u && d + c < params.dim; c++) {
                        sum[c] += y[to + c] * fade;
                    }
                }
                if (direct != 0u && tile + TILE >= end) {
                    let total = next_sum(r, sub_lanes);
                    sum *= select(0.0, 1.0 / total, total > 0.0);
                }
                for (var c = 0u; c < 4u && d + c < params.dim; c++) {
                    y[to + c] = sum[c];
                }
            }
            workgroupBarrier();
        }
        for (var r = lane; r < block_rows; r += wg_size) {
            row_sum[r] = next_sum(r, sub_lanes);
            row_max[r] = row_next[r];
        }
        workgroupBarrier();
    }
    if (direct == 0u) {
        for (var r = lane; r < block_rows; r += wg_size) {
            if (first_row + r <= last_row) {
                let to = (stream * params.rows + first_row + r) * params.splits + split;
                stats[to] = vec2(row_max[r], row_sum[r]);
            }
        }
    }
}
