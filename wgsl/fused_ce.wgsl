//! lib: grid, fault, reduce
// Cross entropy of a row of logits and its gradient: a workgroup a row.

struct Params {
    node: u32,
    rows: u32,
    classes: u32,
    n_valid: f32,
}

@group(0) @binding(0) var<storage, read> logits: array<f32>;
@group(0) @binding(1) var<storage, read> labels: array<i32>;
@group(0) @binding(2) var<storage, read_write> losses: array<f32>;
@group(0) @binding(3) var<storage, read_write> dlogits: array<f32>;
@group(0) @binding(10) var<uniform> params: Params;

var<workgroup> lanes: array<f32, 256>;

fn row_maximum(lane: u32, value: f32) -> f32 {
    lanes[lane] = value;
    workgroupBarrier();
    for (var half = wg_size / 2u; half > 0u; half /= 2u) {
        if (lane < half) {
            lanes[lane] = max(lanes[lane], lanes[lane + half]);
        }
        workgroupBarrier();
    }
    let found = lanes[0];
    workgroupBarrier();
    return found;
}

@compute @workgroup_size(wg_size)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = group_index(group, groups);
    if (row >= params.rows) {
        return;
    }
    let first = row * params.classes;
    // The lowest number there is: masks are made of it.
    var most = -0x1.fffffep+127f;
    for (var i = lane; i < params.classes; i += wg_size) {
        most = max(most, logits[first + i]);
    }
    most = row_maximum(lane, most);
    var total = 0.0;
    for (var i = lane; i < params.classes; i += wg_size) {
        total += exp(max(logits[first + i] - most, -100.0));
    }
    total = workgroup_sum(lane, total);
    let label = labels[row];
    let known = label >= 0 && label < i32(params.classes);
    for (var i = lane; i < params.classes; i += wg_size) {
        var slope = 0.0;
        if (known) {
            slope = exp(max(logits[first + i] - most, -100.0)) / total;
            slope = (slope - select(0.0, 1.0, i == u32(label))) / params.n_valid;
        }
        dlogits[first + i] = slope;
    }
    if (lane == 0u) {
        var loss = 0.0;
        if (known) {
            loss = log(total) + (most - logits[first + u32(label)]);
        } else if (label >= 0) {
            raise_fault(params.node, row, u32(label));
        }
        losses[row] = loss / params.n_valid;
    }
}
