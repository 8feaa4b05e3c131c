// floor of the float32 quotient u / v. WGSL's division may be 2.5 ulp off, which matters where
// the quotient is within rounding of a whole number n: there the exact rest u - n * v decides
// (the product's rounding error by Dekker's splitting).
fn floor_quotient(u: f32, v: f32) -> f32 {
    let q = u / v;
    let n = round(q);
    if (!(abs(n) < 8388608.0) || abs(q - n) > abs(n) * 1.0e-6) {
        return floor(q);
    }
    let p = n * v;
    let big_n = 4097.0 * n;
    let big_v = 4097.0 * v;
    let n1 = big_n - (big_n - n);
    let v1 = big_v - (big_v - v);
    let n2 = n - n1;
    let v2 = v - v1;
    let error = ((n1 * v1 - p) + n1 * v2 + n2 * v1) + n2 * v2;
    let rest = ((u - p) - error) * sign(v);
    // Half the distance to the float below n.
    let bits = bitcast<u32>(n);
    let below = bitcast<f32>(select(bits - 1u, bits + 1u, n < 0.0));
    let gap = select(0.5 * (n - below), 0.0, n == 0.0);
    return select(n - 1.0, n, rest >= -gap * abs(v));
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
