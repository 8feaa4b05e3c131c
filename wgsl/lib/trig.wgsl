// sin(x + turn * pi / 2), good to about 2e-6 up to |x| = 1e5: WGSL promises 2^-11 and only up to
// pi. Reduction by pi / 2 in three parts whose products are exact, then a polynomial.
fn sine(x: vec4<f32>, turn: i32) -> vec4<f32> {
    let k = clamp(round(x * 0.636619772), vec4<f32>(-1.0e9), vec4<f32>(1.0e9));
    let r = ((x - k * 1.5703125) - k * 4.837512969970703125e-4) - k * 7.549789948768648e-8;
    let q = (vec4<i32>(k) + turn) & vec4<i32>(3);
    let z = r * r;
    let s = r + r * z * (-1.6666654611e-1 + z * (8.3321608736e-3 - z * 1.9515295891e-4));
    let c = 1.0 - 0.5 * z
        + z * z * (4.166664568298827e-2 + z * (-1.388731625493765e-3 + z * 2.443315711809948e-5));
    let size = select(s, c, (q & vec4<i32>(1)) == vec4<i32>(1));
    return select(size, -size, q >= vec4<i32>(2));
}
