// base ^ exponent as C's pow has it: WGSL's own is undefined for negative bases and loses bits for
// whole exponents. Needs `nan`.
fn power(base: f32, exponent: f32) -> f32 {
    let infinite = (bitcast<u32>(exponent) & 0x7fffffffu) == 0x7f800000u;
    if (exponent == 0.0 || base == 1.0 || (base == -1.0 && infinite)) {
        return 1.0;
    }
    let unknown = is_nan(vec4<f32>(base, exponent, 0.0, 0.0));
    if (unknown.x || unknown.y) {
        return select(exponent, base, unknown.x);
    }
    let whole = exponent == floor(exponent);
    if (whole && abs(exponent) <= 64.0) {
        var left = u32(abs(exponent));
        var square = base;
        var result = 1.0;
        while (left > 0u) {
            if ((left & 1u) == 1u) {
                result *= square;
            }
            square *= square;
            left >>= 1u;
        }
        return select(result, 1.0 / result, exponent < 0.0);
    }
    if (exponent == 0.5) {
        return sqrt(base);
    }
    if (base == 0.0) {
        return select(0.0, 1.0 / base, exponent < 0.0);
    }
    let size = pow(abs(base), exponent);
    if (base > 0.0) {
        return size;
    }
    // A constant NaN does not compile.
    var nan = 0x7fc00000u;
    let odd = abs(exponent) < 16777216.0 && (i32(exponent) & 1) == 1;
    return select(bitcast<f32>(nan), select(size, -size, odd), whole);
}
