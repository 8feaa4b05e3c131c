// floor of the float32 quotient u / v. WGSL's division may be 2.5 ulp off, which matters where
// the quotient is within rounding of a whole number n: there the exact rest u - n * v decides:
// from halves of 12 bits every product and every difference is exact, also where the compiler fuses.
fn floor_quotient(u: f32, v: f32) -> f32 {
    let q = u / v;
    let n = round(q);
    let infinite = (bitcast<u32>(v) & 0x7fffffffu) == 0x7f800000u;
    if (infinite || !(abs(n) < 8388608.0) || abs(q - n) > abs(n) * 1.0e-6) {
        return floor(q);
    }
    let n1 = upper_half(n);
    let v1 = upper_half(v);
    let n2 = n - n1;
    let v2 = v - v1;
    let rest = ((((u - n1 * v1) - n1 * v2) - n2 * v1) - n2 * v2) * sign(v);
    // Half the distance to the float below n.
    let bits = bitcast<u32>(n);
    let below = bitcast<f32>(select(bits - 1u, bits + 1u, n < 0.0));
    let gap = select(0.5 * (n - below), 0.0, n == 0.0);
    return select(n - 1.0, n, rest >= -gap * abs(v));
}

// The first 12 bits of x's significand; the rest is exact, too.
fn upper_half(x: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(x) & 0xfffff000u);
}

// trunc of the float32 quotient.
fn trunc_quotient(u: f32, v: f32) -> f32 {
    let size = floor_quotient(abs(u), abs(v));
    return select(size, -size, (u < 0.0) != (v < 0.0));
}

// The float32 quotient rounded to a whole number, half to even.
fn round_quotient(u: f32, v: f32) -> f32 {
    let below = floor_quotient(2.0 * u, v);
    let above = -floor_quotient(-2.0 * u, v);
    return select(floor(0.5 * (below + 1.0)), round(0.5 * below), below == above);
}
