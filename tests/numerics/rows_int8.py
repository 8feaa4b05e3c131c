"""int8 tensors: quantizing, and operators on codes. Codes are exact to the bit."""

from math import inf

import numpy as np
from hypothesis import strategies as st

from numerics.bound import EXACT, Row, Sample, codes, share, ulps
from numerics.rows_elementwise import pair_dims
from numerics.values import Floats, dims, edge, ints, rng_of
from ops.opcase import Const, In

SCALES = st.sampled_from([2.0**-20, 0.001, 0.05, 0.1, 1 / 3, 1.0, 7.25, 1000.0])
ZEROS = st.integers(-128, 127)
GAIN = Floats(-20, 10, positive=True, special=(), denormal=False)
BIAS = Floats(-20, 10, special=(0.0,), denormal=False)
ROUNDED = "sums in int32, every float32 step rounded, half to even, saturating"
WHOLE = "every code; scales 2^-20 to 1000"


def quantized(draw, op):
    scale, shape = draw(SCALES), dims(draw)
    # Numbers within a few hundred steps, ties among them, and any at all.
    steps = ints(draw, shape).astype(np.float64) % 1200 - 600
    near = ((steps / 2) * scale).astype(np.float32)
    any_float = Floats(special=(inf, -inf, -0.0))(draw, shape)
    x = np.where(rng_of(draw).random(shape) < 0.7, near, any_float).astype(np.float32)
    bounds = draw(st.sampled_from([(-128, 127), (-127, 127), (0, 100)]))
    return Sample([In("x", x), scale, draw(ZEROS), *bounds])


def dequantized(draw, op):
    return Sample([In("x", ints(draw, dims(draw), "int8")), draw(SCALES), draw(ZEROS)])


def chosen(draw, op):
    shape = dims(draw, 1, 3)
    x = Floats(-40, 100, special=(0.0,))(draw, shape)
    kind = draw(st.sampled_from(["any", "positive", "negative", "zero"]))
    x = {"any": x, "positive": abs(x), "negative": -abs(x), "zero": 0 * x}[kind]
    block = [1] * (len(shape) - 1) + [shape[-1]]
    return Sample([In("x", x), "ASYMMETRIC", block])


def added(draw, op):
    a, b = (ints(draw, s, "int8") for s in pair_dims(draw))
    scalars = [draw(SCALES), draw(ZEROS), draw(SCALES), draw(ZEROS), draw(SCALES), draw(ZEROS)]
    return Sample([In("a", a), In("b", b), *scalars, draw(st.sampled_from([1, 2, -0.3]))])


def relu(draw, op):
    x = In("x", ints(draw, dims(draw), "int8"))
    return Sample([x, draw(SCALES), draw(ZEROS), draw(SCALES), draw(ZEROS)])


def shuffled(draw, op):
    r = draw(st.integers(1, 3))
    shape = (edge(draw, 3), r * r * draw(st.integers(1, 3)), edge(draw, 9), edge(draw, 9))
    x = In("x", ints(draw, shape, "int8"))
    return Sample([x, draw(SCALES), draw(ZEROS), draw(SCALES), draw(ZEROS), r])


def linear(draw, op):
    m, k, n = edge(draw, 33), edge(draw, 257), edge(draw, 33)
    x, w = ints(draw, (m, k), "int8"), ints(draw, (n, k), "int8")
    scales, bias = GAIN(draw, (n,)), BIAS(draw, (n,))
    scale, zero = draw(SCALES), draw(ZEROS)
    args = [In("x", x), scale, zero, Const(w), Const(np.zeros(n, np.int32)), Const(scales)]
    bias = Const(bias) if draw(st.booleans()) else None
    if op == "et_vk.linear_q8ta_q8csw.default":
        sums = abs((x.astype(np.float64) - zero) @ w.astype(np.float64).T)
        return Sample([*args, bias], sums * scale * scales + (abs(bias.array) if bias else 0))
    activation = draw(st.sampled_from(["none", "relu"]))
    return Sample([*args, draw(SCALES), draw(ZEROS), bias, activation])


def convolution(draw, op):
    kernel = [1, 1] if "_pw" in op else [draw(st.integers(1, 3)), draw(st.integers(1, 3))]
    groups = draw(st.integers(1, 3)) if "_dw" in op else 1
    per_in, results = (1, groups) if "_dw" in op else (edge(draw, 9), edge(draw, 9))
    channels = groups * per_in
    shape = (edge(draw, 2), channels, *(k + edge(draw, 9) for k in kernel))
    x = ints(draw, shape, "int8")
    flat = (*kernel, channels) if "_dw" in op else (results, kernel[0] * kernel[1] * per_in)
    weight = ints(draw, flat, "int8")
    stride = [1, 1] if "_pw" in op else [draw(st.integers(1, 2)) for _ in range(2)]
    pad = [0, 0] if "_pw" in op else [draw(st.integers(0, k // 2)) for k in kernel]
    consts = [Const(weight), Const(np.zeros(results, np.int32)), Const(GAIN(draw, (results,)))]
    args = [In("x", x), draw(SCALES), draw(ZEROS), *consts, draw(SCALES), draw(ZEROS)]
    args += [Const(BIAS(draw, (results,))), kernel, stride, pad]
    args += [[0, 0]] if "transposed" in op else []
    return Sample([*args, [1, 1], groups, draw(st.sampled_from(["none", "relu"]))])


ROWS = [
    Row(
        ("quantized_decomposed.quantize_per_tensor.default",),
        quantized,
        EXACT,
        "any, ±inf; scales 2^-20 to 1000",
        "±inf saturate; NaN is not promised",
    ),
    Row(
        ("quantized_decomposed.dequantize_per_tensor.default",),
        dequantized,
        ulps(1),
        WHOLE,
        "none arise",
    ),
    Row(
        ("torchao.choose_qparams_affine.default",),
        chosen,
        (ulps(3), codes(1)),
        "2^-40 to 2^101, denormal",
        "NaN and ±inf are not promised",
    ),
    *(
        Row(ops, sample, EXACT, WHOLE, ROUNDED)
        for ops, sample in [
            (("et_vk.q8ta_add.default",), added),
            (("et_vk.q8ta_relu.default",), relu),
            (("et_vk.q8ta_pixel_shuffle.default",), shuffled),
            (("et_vk.q8ta_linear.default", "et_vk.q8ta_linear_gemv.default"), linear),
            (
                tuple(f"et_vk.q8ta_conv2d{k}.default" for k in ("", "_pw", "_dw", "_transposed")),
                convolution,
            ),
        ]
    ),
    Row(
        ("et_vk.linear_q8ta_q8csw.default",),
        linear,
        share(4, "|sum · scales| + |bias|"),
        WHOLE,
        "sums are exact in int32",
    ),
]
