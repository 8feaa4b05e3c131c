// Workgroup-wide sum and maximum: every lane must call it, in uniform control flow. Two steps of up
// to 16 terms each, since a barrier costs more than a few additions; they are written out, since
// browsers guard loops with a counter, which compilers seem to keep.
const REDUCE_FIRST: u32 = 16u;

var<workgroup> reduce_lanes: array<f32, wg_size>;
var<workgroup> reduce_first: array<f32, REDUCE_FIRST>;

// Lanes i, i + 16, i + 32 and i + 48.
fn reduce_quad(i: u32) -> vec4<f32> {
    return vec4<f32>(
        reduce_lanes[i],
        reduce_lanes[i + 16u],
        reduce_lanes[i + 32u],
        reduce_lanes[i + 48u],
    );
}

fn reduce_left(i: u32) -> vec4<f32> {
    return vec4<f32>(
        reduce_first[i],
        reduce_first[i + 1u],
        reduce_first[i + 2u],
        reduce_first[i + 3u],
    );
}

fn reduce_total(v: vec4<f32>) -> f32 {
    return (v.x + v.y) + (v.z + v.w);
}

fn reduce_most(v: vec4<f32>) -> f32 {
    return max(max(v.x, v.y), max(v.z, v.w));
}

fn workgroup_sum(lane: u32, value: f32) -> f32 {
    workgroupBarrier();
    reduce_lanes[lane] = value;
    workgroupBarrier();
    var sum = 0.0;
    if (wg_size <= REDUCE_FIRST) {
        for (var i = 0u; i < wg_size; i++) {
            sum += reduce_lanes[i];
        }
        return sum;
    }
    if (lane < REDUCE_FIRST) {
        if (wg_size == 32u) {
            sum = reduce_lanes[lane] + reduce_lanes[lane + 16u];
        } else {
            sum = reduce_total(reduce_quad(lane));
        }
        if (wg_size >= 128u) {
            sum += reduce_total(reduce_quad(lane + 64u));
        }
        if (wg_size >= 256u) {
            sum += reduce_total(reduce_quad(lane + 128u) + reduce_quad(lane + 192u));
        }
        if (wg_size >= 512u) {
            let more = reduce_quad(lane + 256u) + reduce_quad(lane + 320u);
            sum += reduce_total(more + (reduce_quad(lane + 384u) + reduce_quad(lane + 448u)));
        }
        for (var i = lane + 512u; i < wg_size; i += 64u) {
            sum += reduce_total(reduce_quad(i));
        }
        reduce_first[lane] = sum;
    }
    workgroupBarrier();
    let left = reduce_left(0u) + reduce_left(4u);
    return reduce_total(left + (reduce_left(8u) + reduce_left(12u)));
}

fn workgroup_max(lane: u32, value: f32) -> f32 {
    workgroupBarrier();
    reduce_lanes[lane] = value;
    workgroupBarrier();
    var most = value;
    if (wg_size <= REDUCE_FIRST) {
        for (var i = 0u; i < wg_size; i++) {
            most = max(most, reduce_lanes[i]);
        }
        return most;
    }
    if (lane < REDUCE_FIRST) {
        if (wg_size == 32u) {
            most = max(reduce_lanes[lane], reduce_lanes[lane + 16u]);
        } else {
            most = reduce_most(reduce_quad(lane));
        }
        if (wg_size >= 128u) {
            most = max(most, reduce_most(reduce_quad(lane + 64u)));
        }
        for (var i = lane + 128u; i < wg_size; i += 64u) {
            most = max(most, reduce_most(reduce_quad(i)));
        }
        reduce_first[lane] = most;
    }
    workgroupBarrier();
    let left = max(reduce_left(0u), reduce_left(4u));
    return reduce_most(max(left, max(reduce_left(8u), reduce_left(12u))));
}
