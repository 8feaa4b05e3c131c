//! lib: grid, int8, requant
// int8 convolution over NCHW, a word of four results a thread. `form`: 0 weights [OC, Kh * Kw * IC],
// 1 the same transposed, 2 depthwise with weights [Kh, Kw, C].

struct Params {
    numel: u32,
    zero: u32,
    in_channels: u32,
    out_channels: u32,
    group_in: u32,
    group_out: u32,
    in_height: u32,
    in_width: u32,
    out_height: u32,
    out_width: u32,
    kernel_height: u32,
    kernel_width: u32,
    stride_height: u32,
    stride_width: u32,
    pad_height: u32,
    pad_width: u32,
    dilation_height: u32,
    dilation_width: u32,
    weight_row: u32,
    has_bias: u32,
    relu: u32,
    input_zero_point: i32,
    output_zero_point: i32,
    input_scale: f32,
    inverse: f32,
}

override form: u32 = 0u;

@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read> weight: array<u32>;
@group(0) @binding(2) var<storage, read> weight_scales: array<f32>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;
@group(0) @binding(4) var<storage, read_write> y: array<u32>;
@group(0) @binding(10) var<uniform> params: Params;

// Input coordinate under tap k of result `at`, or a value past any size.
fn source(at: u32, k: u32, stride: u32, pad: u32, dilation: u32) -> u32 {
    if (form == 1u) {
        let place = at + pad - k * dilation;
        return select(0xffffffffu, place / stride, at + pad >= k * dilation && place % stride == 0u);
    }
    // Left of the input this wraps around.
    return at * stride + k * dilation - pad;
}

// sum over one tap's channels of (x - zero point) * weight
fn tap(x0: u32, w0: u32, channels: u32) -> i32 {
    let step = params.in_height * params.in_width;
    var sum = 0;
    var at = x0;
    for (var c = 0u; c < channels; c++) {
        let value = signed_byte(x[at / 4u], at) - params.input_zero_point;
        sum += value * signed_byte(weight[(w0 + c) / 4u], w0 + c);
        at += step;
    }
    return sum;
}

fn convolved(flat: u32) -> i32 {
    let ow = flat % params.out_width;
    let oh = flat / params.out_width % params.out_height;
    let plane = flat / params.out_width / params.out_height;
    let oc = plane % params.out_channels;
    let first = plane / params.out_channels * params.in_channels
        + oc / params.group_out * params.group_in;
    var sum = 0;
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
            let x0 = (first * params.in_height + ih) * params.in_width + iw;
            let k = i * params.kernel_width + j;
            var w0 = oc * params.weight_row + k * params.group_in;
            if (form == 2u) {
                w0 = k * params.out_channels + oc;
            }
            sum += tap(x0, w0, params.group_in);
        }
    }
    return sum;
}

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let first = linear_index(id, groups) * 4u;
    if (first >= params.numel) {
        return;
    }
    let count = min(4u, params.numel - first);
    var codes = vec4<i32>();
    for (var i = 0u; i < count; i++) {
        let at = first + i;
        let oc = at / (params.out_width * params.out_height) % params.out_channels;
        var value = exactly(f32(convolved(at)) * params.input_scale);
        value = exactly(value * weight_scales[oc]);
        if (params.has_bias != 0u) {
            value += bias[oc];
        }
        value = select(value, max(value, 0.0), params.relu != 0u);
        codes[i] = requantized(value, params.inverse, params.output_zero_point);
    }
    y[first / 4u] = pack_signed_bytes(codes, count);
}
