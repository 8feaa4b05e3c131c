// Workgroup-wide sum and maximum by a tree: every lane must call it, in uniform control flow.
// wg_size is a power of two.
var<workgroup> reduce_lanes: array<f32, wg_size>;

fn workgroup_sum(lane: u32, value: f32) -> f32 {
    workgroupBarrier();
    reduce_lanes[lane] = value;
    workgroupBarrier();
    for (var step = wg_size / 2u; step > 0u; step /= 2u) {
        if (lane < step) {
            reduce_lanes[lane] += reduce_lanes[lane + step];
        }
        workgroupBarrier();
    }
    return reduce_lanes[0];
}

fn workgroup_max(lane: u32, value: f32) -> f32 {
    workgroupBarrier();
    reduce_lanes[lane] = value;
    workgroupBarrier();
    for (var step = wg_size / 2u; step > 0u; step /= 2u) {
        if (lane < step) {
            reduce_lanes[lane] = max(reduce_lanes[lane], reduce_lanes[lane + step]);
        }
        workgroupBarrier();
    }
    return reduce_lanes[0];
}
