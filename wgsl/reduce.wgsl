//! lib: grid
// One output element per group of lanes: lanes stride over the elements that reduce into it.
// `op`: 0 sum, 1 mean, 2 max, 3 min, 4 argmax, 5 argmin (the first of equal ones; NaN wins).

struct Params {
    outputs: u32,
    count: u32,
    kept_dims: array<vec4<u32>, 2>,
    kept_strides: array<vec4<u32>, 2>,
    reduced_dims: array<vec4<u32>, 2>,
    reduced_strides: array<vec4<u32>, 2>,
}

override op: u32 = 0u;
override lanes: u32 = 1u;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(10) var<uniform> params: Params;

var<workgroup> values: array<f32, wg_size>;
var<workgroup> places: array<u32, wg_size>;

fn offset_of(flat: u32, kept: bool) -> u32 {
    var rest = flat;
    var offset = 0u;
    for (var i = 8u; i > 0u; i--) {
        let a = (i - 1u) / 4u;
        let b = (i - 1u) % 4u;
        let d = select(params.reduced_dims[a][b], params.kept_dims[a][b], kept);
        let s = select(params.reduced_strides[a][b], params.kept_strides[a][b], kept);
        offset += (rest % d) * s;
        rest /= d;
    }
    return offset;
}

fn is_nan(v: f32) -> bool {
    return (bitcast<u32>(v) & 0x7fffffffu) > 0x7f800000u;
}

// Whether b at place q replaces a at place p.
fn replaces(a: f32, p: u32, b: f32, q: u32) -> bool {
    if (is_nan(a) || is_nan(b)) {
        return is_nan(b) && (!is_nan(a) || q < p);
    }
    if (a == b) {
        return q < p;
    }
    return select((b < a), (b > a), op == 2u || op == 4u);
}

@compute @workgroup_size(wg_size)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let out = group_index(group, groups) * (wg_size / lanes) + local / lanes;
    let lane = local % lanes;
    let live = out < params.outputs;
    var value = 0.0;
    var place = 0u;
    if (live) {
        let base = offset_of(out, true);
        if (op < 2u) {
            // Sums of about the root of the count, added up: what is lost grows as that root.
            let stretch = lanes * u32(ceil(sqrt(f32(params.count / lanes + 1u))));
            for (var first = lane; first < params.count; first += stretch) {
                var part = 0.0;
                for (var r = first; r < min(first + stretch, params.count); r += lanes) {
                    part += x[base + offset_of(r, false)];
                }
                value += part;
            }
        } else {
            place = min(lane, params.count - 1u);
            value = x[base + offset_of(place, false)];
            for (var r = lane + lanes; r < params.count; r += lanes) {
                let v = x[base + offset_of(r, false)];
                if (replaces(value, place, v, r)) {
                    value = v;
                    place = r;
                }
            }
        }
    }
    values[local] = value;
    places[local] = place;
    workgroupBarrier();
    for (var step = lanes / 2u; step > 0u; step /= 2u) {
        if (lane < step) {
            let other = values[local + step];
            if (op < 2u) {
                values[local] += other;
            } else if (replaces(values[local], places[local], other, places[local + step])) {
                values[local] = other;
                places[local] = places[local + step];
            }
        }
        workgroupBarrier();
    }
    if (live && lane == 0u) {
        let total = values[local];
        let result = select(total, total / f32(params.count), op == 1u);
        y[out] = select(bitcast<u32>(result), places[local], op >= 4u);
    }
}
