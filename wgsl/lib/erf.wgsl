// Abramowitz and Stegun 7.1.26: absolute error 1.5e-7.
fn erf(x: vec4<f32>) -> vec4<f32> {
    let size = abs(x);
    let t = 1.0 / (1.0 + 0.3275911 * size);
    let series = t * (0.254829592
        + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
    let result = 1.0 - series * exp(-min(size * size, vec4<f32>(80.0)));
    return select(result, -result, x < vec4<f32>());
}
