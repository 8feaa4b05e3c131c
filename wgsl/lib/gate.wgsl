// Gated activations, act(gate) * up. 1 is silu, x * sigmoid(x); 2 is gelu by its tanh formula.
override gate: u32 = 0u;

fn gated(g: f32, up: f32) -> f32 {
    var z = g;
    if (gate == 2u) {
        z = 1.5957691216057308 * (g + 0.044715 * g * g * g);
    }
    // gelu_tanh is x * sigmoid(2 z) as well. A large negative z gives exp(inf) and so 0.
    return g / (1.0 + exp(min(-z, 88.0))) * up;
}
