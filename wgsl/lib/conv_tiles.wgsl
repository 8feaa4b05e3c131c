// Convolution as a product: rows are a group's output channels, columns the pixels of all images,
// and the depth runs over channels and taps, gathered from the input on the way. Needs conv, and
// tile or block.
var<private> image_group: u32;

fn a_quad(row: u32, rows: u32, k: u32) -> vec4<f32> {
    let depth = params.group_in * params.kernel_height * params.kernel_width;
    var values = vec4<f32>();
    for (var i = 0u; i < 4u && row + i < rows; i++) {
        values[i] = weight[(image_group * params.group_out + row + i) * depth + k];
    }
    return values;
}

fn b_quad(col: u32, cols: u32, k: u32) -> vec4<f32> {
    let area = params.kernel_height * params.kernel_width;
    let channel = image_group * params.group_in + k / area;
    let tap = k % area;
    // Left and above of the input these wrap around, past any size.
    let dh = tap / params.kernel_width * params.dilation_height - params.pad_height;
    let dw = tap % params.kernel_width * params.dilation_width - params.pad_width;
    var ow = col % params.out_width;
    var oh = col / params.out_width % params.out_height;
    var n = col / params.out_width / params.out_height;
    var values = vec4<f32>();
    for (var i = 0u; i < 4u && col + i < cols; i++) {
        let ih = oh * params.stride_height + dh;
        let iw = ow * params.stride_width + dw;
        if (ih < params.in_height && iw < params.in_width) {
            let plane = n * params.groups * params.group_in + channel;
            values[i] = x[(plane * params.in_height + ih) * params.in_width + iw];
        }
        ow++;
        if (ow == params.out_width) {
            ow = 0u;
            oh++;
        }
        if (oh == params.out_height) {
            oh = 0u;
            n++;
        }
    }
    return values;
}

@compute @workgroup_size(wg_size)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let pixels = params.out_height * params.out_width;
    let size = vec2<u32>(params.group_out, params.batch * pixels);
    let edge = 4u * side;
    let across = (size.y + edge - 1u) / edge;
    let tiles = across * ((size.x + edge - 1u) / edge);
    let at = group_index(group, groups);
    if (at >= tiles * params.groups) {
        return;
    }
    image_group = at / tiles;
    let tile = at % tiles;
    let origin = vec2<u32>(tile / across, tile % across) * edge;
    let depth = params.group_in * params.kernel_height * params.kernel_width;
    var sum = tile_product(origin, size, depth, vec2<u32>(1u, 0u), lane);
    for (var i = 0u; i < 4u; i++) {
        let row = origin.x + lane / side * 4u + i;
        let channel = image_group * params.group_out + row;
        for (var j = 0u; j < 4u; j++) {
            let col = origin.y + lane % side * 4u + j;
            if (row < size.x && col < size.y) {
                let plane = col / pixels * params.groups * params.group_out + channel;
                y[plane * pixels + col % pixels] = finished(sum[i][j], channel);
            }
        }
    }
}
