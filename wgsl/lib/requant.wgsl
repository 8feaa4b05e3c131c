// Float32 to int8 with every rounding where the definition has it. Params has `zero: u32`, 0.

// A value the compiler can't see through, so that it fuses and reorders nothing across it.
fn exactly(value: f32) -> f32 {
    return bitcast<f32>(bitcast<u32>(value) ^ params.zero);
}

// clamp(round to even(value * inverse) + zero_point, -128, 127)
fn requantized(value: f32, inverse: f32, zero_point: i32) -> i32 {
    let steps = clamp(round(exactly(value) * inverse), -65536.0, 65536.0);
    return clamp(i32(steps) + zero_point, -128, 127);
}
