// sin(x + turn * pi / 2), good to about 2e-6: WGSL promises 2^-11 and only up to pi. The argument
// is reduced by quarters of a turn, then a polynomial does the rest. An infinity gives NaN.
fn sine(x: vec4<f32>, turn: i32) -> vec4<f32> {
    var k = clamp(round(x * 0.636619772), vec4<f32>(-65536.0), vec4<f32>(65536.0));
    // pi / 2 in three parts whose products with so small a k are exact.
    var r = ((x - k * 1.5703125) - k * 4.837512969970703125e-4) - k * 7.549789948768648e-8;
    for (var i = 0u; i < 4u; i++) {
        if (abs(x[i]) >= 65536.0) {
            let found = far_quarters(x[i]);
            k[i] = found.x;
            r[i] = found.y;
        }
    }
    let q = (vec4<i32>(k) + turn) & vec4<i32>(3);
    let z = r * r;
    let s = r + r * z * (-1.6666654611e-1 + z * (8.3321608736e-3 - z * 1.9515295891e-4));
    let c = 1.0 - 0.5 * z
        + z * z * (4.166664568298827e-2 + z * (-1.388731625493765e-3 + z * 2.443315711809948e-5));
    let size = select(s, c, (q & vec4<i32>(1)) == vec4<i32>(1));
    let result = select(size, -size, q >= vec4<i32>(2));
    let infinite = (bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu)) == vec4<u32>(0x7f800000u);
    // A constant NaN does not compile.
    var nan = vec4<u32>(0x7fc00000u);
    return select(result, bitcast<vec4<f32>>(nan), infinite);
}

// Quarters of a turn in x, |x| >= 2^16, modulo 4, and the angle beyond them: x's 24 bits times those
// 96 bits of 2 / pi that reach neither multiples of 4 nor below 2^-70 (Payne and Hanek).
fn far_quarters(x: f32) -> vec2<f32> {
    // A word of zeros, then 2 / pi.
    var stream = array<u32, 8>(
        0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu
    );
    let bits = bitcast<u32>(x);
    let significand = (bits & 0x7fffffu) | 0x800000u;
    let start = ((bits >> 23u) & 255u) - 120u;
    let at = min(start / 32u, 4u);
    let shift = start % 32u;
    var window: array<u32, 3>;
    for (var i = 0u; i < 3u; i++) {
        window[i] = (stream[at + i] << shift) | ((stream[at + i + 1u] >> 1u) >> (31u - shift));
    }
    var product = array<u32, 3>();
    var carry = 0u;
    for (var i = 0u; i < 12u; i++) {
        let word = 2u - i / 4u;
        let place = 8u * (i % 4u);
        carry += significand * ((window[word] >> place) & 255u);
        product[word] |= (carry & 255u) << place;
        carry >>= 8u;
    }
    // Two bits are whole quarters; the signed rest is rounded to the nearest of them.
    let quarters = f32((product[0] + 0x20000000u) >> 30u);
    let rest = f32(bitcast<i32>((product[0] << 2u) | (product[1] >> 30u))) * 2.3283064365386963e-10
        + f32(product[1] << 2u) * 5.421010862427522e-20;
    let angle = rest * 1.5707963267948966;
    return select(vec2<f32>(quarters, angle), -vec2<f32>(quarters, angle), x < 0.0);
}
