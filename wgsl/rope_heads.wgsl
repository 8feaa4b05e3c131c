//! lib: grid, live, rope
// rope on GPUs: an invocation takes a vec4 of neighbours to rotate, or two that are half of the
// rotary part apart, or a vec4 past it, which is copied. What neighbouring invocations read and write
// is one stretch of memory, which is what rope, a pair each, lacks: 46 us instead of 103 (H200, 8192
// tokens of 40 heads). `dim` is a multiple of 4, and `rotary` of 4 or, with halves, of 8.

alias Unit = vec4<f32>;

fn input(is_q: bool, at: u32) -> vec4<f32> {
    if (is_q) {
        return q[at];
    }
    return k[at];
}

// Two neighbours of a table of units, from an even element on.
fn pair(at: vec4<f32>, element: u32) -> vec2<f32> {
    return select(at.xy, at.zw, (element & 2u) != 0u);
}

// Two pairs (x, y) and (z, w).
fn turned(x: vec4<f32>, cosine: vec2<f32>, sine: vec2<f32>) -> vec4<f32> {
    return x * cosine.xxyy + x.yxwz * (sine.xxyy * vec4(-1.0, 1.0, -1.0, 1.0));
}

fn turned_neighbours(x: vec4<f32>, table: u32, i: u32) -> vec4<f32> {
    if (arrangement == INTERLEAVED) {
        let both = cosines[table * (params.rotary / 4u) + i];
        return turned(x, both.xz, both.yw);
    }
    let element = table * (params.rotary / 2u) + 2u * i;
    let cosine = pair(cosines[element / 4u], element);
    return turned(x, cosine, pair(sines[element / 4u], element));
}

fn put(is_q: bool, at: u32, value: vec4<f32>) {
    if (is_q) {
        q_out[at] = value;
    } else {
        k_out[at] = value;
    }
}

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let halves = arrangement == HALVES || arrangement == LIVE_HALVES;
    let units = params.rotary / select(4u, 8u, halves);
    let items = units + (params.dim - params.rotary) / 4u;
    let at = linear_index(id, groups);
    let q_rows = params.count * params.q_heads;
    let head = at / items;
    if (head >= q_rows + params.count * params.k_heads) {
        return;
    }
    let is_q = head < q_rows;
    let row = select(head - q_rows, head, is_q);
    let i = at % items;
    let first = row * (params.dim / 4u) + i;
    if (i >= units) {
        let copied = first + params.rotary / 4u - units;
        put(is_q, copied, input(is_q, copied));
        return;
    }
    let table = table_row(row / select(params.k_heads, params.q_heads, is_q) % params.tokens);
    let a = input(is_q, first);
    if (!halves) {
        put(is_q, first, turned_neighbours(a, table, i));
        return;
    }
    let b = input(is_q, first + units);
    let full = arrangement == HALVES; // a column of the tables an element, else a pair
    let column = table * select(units, 2u * units, full) + i;
    let other = column + select(0u, units, full);
    put(is_q, first, a * cosines[column] - b * sines[column]);
    put(is_q, first + units, b * cosines[other] + a * sines[other]);
}
