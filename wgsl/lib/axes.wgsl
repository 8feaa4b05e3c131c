// Indices of up to three operands at a flat row-major position. `params.axes`, 12 of them, holds
// an axis each, innermost first: strides of the operands (modulo 2^32), then the size.
fn axis_indices(flat: u32) -> vec3<u32> {
    var rest = flat;
    var at = vec3<u32>();
    for (var k = 0u; rest > 0u && k < 12u; k++) {
        let axis = params.axes[k];
        at += (rest % axis.w) * axis.xyz;
        rest /= axis.w;
    }
    return at;
}
