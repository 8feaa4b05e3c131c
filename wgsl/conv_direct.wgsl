//! lib: grid, conv
// Convolution with few channels a group, and transposed convolution: one result a thread.
// Weights [OC, IC / groups, KH, KW], transposed [IC, OC / groups, KH, KW].

override transposed: u32 = 0u;

// Input coordinate under tap k of result `at`, or a value past any size.
fn source(at: u32, k: u32, stride: u32, pad: u32, dilation: u32) -> u32 {
    if (transposed != 0u) {
        let place = at + pad - k * dilation;
        return select(0xffffffffu, place / stride, at + pad >= k * dilation && place % stride == 0u);
    }
    // Left of the input this wraps around.
    return at * stride + k * dilation - pad;
}

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let at = linear_index(id, groups);
    if (at >= params.numel) {
        return;
    }
    let ow = at % params.out_width;
    let oh = at / params.out_width % params.out_height;
    let plane = at / params.out_width / params.out_height;
    let channels = params.groups * params.group_out;
    let channel = plane % channels;
    let image_group = channel / params.group_out;
    let first = (plane / channels * params.groups + image_group) * params.group_in;
    let area = params.kernel_height * params.kernel_width;
    var w0 = channel * params.group_in * area;
    var w_step = area;
    if (transposed != 0u) {
        w_step = params.group_out * area;
        w0 = (image_group * params.group_in * params.group_out + channel % params.group_out) * area;
    }
    let x_step = params.in_height * params.in_width;
    var sum = 0.0;
    for (var i = 0u; i < params.kernel_height; i++) {
        let ih = source(oh, i, params.stride_height, params.pad_height, params.dilation_height);
        if (ih >= params.in_height) {
            continue;
        }
        for (var j = 0u; j < params.kernel_width; j++) {
            let iw = source(ow, j, params.stride_width, params.pad_width, params.dilation_width);
            if (iw >= params.in_width) {
                continue;
            }
            var at_x = (first * params.in_height + ih) * params.in_width + iw;
            var at_w = w0 + i * params.kernel_width + j;
            for (var c = 0u; c < params.group_in; c++) {
                sum += x[at_x] * weight[at_w];
                at_x += x_step;
                at_w += w_step;
            }
        }
    }
    y[at] = finished(sum, channel);
}
