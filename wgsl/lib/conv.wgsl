// Interface of the float32 convolutions over NCHW.
struct Params {
    numel: u32,
    batch: u32,
    groups: u32,
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
    has_bias: u32,
    clamped: u32,
    low: f32,
    high: f32,
}

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> weight: array<f32>;
@group(0) @binding(2) var<storage, read> bias: array<f32>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;
@group(0) @binding(10) var<uniform> params: Params;

fn finished(sum: f32, channel: u32) -> f32 {
    var value = sum;
    if (params.has_bias != 0u) {
        value += bias[channel];
    }
    if (params.clamped != 0u) {
        value = min(max(value, params.low), params.high);
    }
    return value;
}
