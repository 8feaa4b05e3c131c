// Flat row-major index of an element after its coordinates were remapped by strides.
// dims and strides have 8 entries, right-aligned; absent leading dims are 1.
fn strided_index(flat: u32, dims_: array<vec4<u32>, 2>, strides_: array<vec4<u32>, 2>) -> u32 {
    // naga indexes only variables by a computed index, not values.
    var dims = dims_;
    var strides = strides_;
    var rest = flat;
    var index = 0u;
    for (var i = 8u; i > 0u; i--) {
        let d = dims[(i - 1u) / 4u][(i - 1u) % 4u];
        index += (rest % d) * strides[(i - 1u) / 4u][(i - 1u) % 4u];
        rest /= d;
    }
    return index;
}
