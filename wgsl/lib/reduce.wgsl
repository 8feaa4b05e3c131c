// Workgroup-wide sum and maximum: every lane must call it, in uniform control flow. Two steps of up
// to 16 terms each, since a barrier costs more than a few additions.
const REDUCE_FIRST: u32 = 16u;

var<workgroup> reduce_lanes: array<f32, wg_size>;
var<workgroup> reduce_first: array<f32, REDUCE_FIRST>;

fn workgroup_sum(lane: u32, value: f32) -> f32 {
    workgroupBarrier();
    reduce_lanes[lane] = value;
    workgroupBarrier();
    if (lane < REDUCE_FIRST) {
        var sum = 0.0;
        for (var i = lane; i < wg_size; i += REDUCE_FIRST) {
            sum += reduce_lanes[i];
        }
        reduce_first[lane] = sum;
    }
    workgroupBarrier();
    var total = 0.0;
    for (var i = 0u; i < min(REDUCE_FIRST, wg_size); i++) {
        total += reduce_first[i];
    }
    return total;
}

fn workgroup_max(lane: u32, value: f32) -> f32 {
    workgroupBarrier();
    reduce_lanes[lane] = value;
    workgroupBarrier();
    if (lane < REDUCE_FIRST) {
        var most = value;
        for (var i = lane; i < wg_size; i += REDUCE_FIRST) {
            most = max(most, reduce_lanes[i]);
        }
        reduce_first[lane] = most;
    }
    workgroupBarrier();
    var most = reduce_first[0];
    for (var i = 1u; i < min(REDUCE_FIRST, wg_size); i++) {
        most = max(most, reduce_first[i]);
    }
    return most;
}
