"""Packed weights: every nibble and byte, scales from denormal to huge, words that look like NaN."""

from dataclasses import replace
from math import inf, nan

import numpy as np
from hypothesis import strategies as st

from numerics.bound import BITS, EXACT, Row, Sample, share, ulps
from numerics.rows_copies import rows_of
from numerics.values import MILD, Floats, FloatWords, bits, edge, ints, rng_of
from ops.opcase import Const, In
from webgpu_py.ops.quantize_rows import LOSSES, PARTS
from webgpu_py.quant.ggml import BY_NAME, SUPPORTED
from webgpu_py.quant.layouts import RECORD_BYTES, Layout, PackedWeight
from webgpu_py.quant.repack import unpack

X = Floats(-20, 20, special=(nan, inf, -inf, 0.0), denormal=False)
FINITE_X = Floats(-20, 20, special=(0.0,), denormal=False)
GAIN = Floats(-4, 4, special=(0.0, -1.0), denormal=False)
EPS = 1e-6
SCALE = Floats(-60, 30, special=(0.0, -0.0), denormal=False)
WIDE_SCALE = Floats(special=(0.0, -0.0))
EVERY = "every nibble and byte"
LOOSE = "NaN and ±inf give either"
TERMS = "(K + 16) (Σ|x w| + |bias|)"


def finite(x):
    return np.nan_to_num(abs(x.astype(np.float64)), nan=0, posinf=0, neginf=0)


def halves(draw, count, wide=False):
    """float16 scales in words: any finite ones where `wide`, else of a weight's size."""
    rng = rng_of(draw)
    found = (rng.standard_normal(count) * 2.0 ** rng.integers(-14, 2, count)).astype(np.float16)
    if wide:
        own = rng.integers(0, 2**16, count, np.uint16)
        own = np.where(own & 0x7C00 == 0x7C00, own & 0x83FF, own)
        found = np.where(rng.random(count) < 0.5, own, found.view(np.uint16)).view(np.float16)
    return np.pad(found, (0, count % 2)).view(np.uint32)


def records(draw, layout, n, k, wide):
    """Scale records of a layout."""
    words = layout.scale_words(n, k)
    if layout.scales == "f32":
        return (WIDE_SCALE if wide else SCALE)(draw, (words,)).view(np.uint32)
    if layout.scales in ("f16", "f16_min"):
        return halves(draw, 2 * words, wide)[:words]
    found = bits(draw, (words,), "uint32").reshape(-1, RECORD_BYTES[layout.scales] // 4).copy()
    found[:, 0] = halves(draw, 2 * len(found), wide)[: len(found)]
    if layout.scales == "k":
        found[:, 0] &= np.uint32(0xFFFF)
    else:
        found[:, 1:] &= np.uint32(0x3F3F3F3F)
    return found.reshape(-1)


def packed(draw, kind, wide=False):
    """A weight of the kernels' layouts, and its values in float64."""
    n = edge(draw, 65)
    if kind == "f16":
        codes = draw(st.sampled_from(["f16", "bf16", "f32"]))
        layout, k = Layout(codes), edge(draw, 129)
        words = bits(draw, (n, layout.row_words(k)), "uint32")
        if codes == "f32":
            words = (WIDE_SCALE if wide else MILD)(draw, words.shape).view(np.uint32)
        elif not wide:
            words = halves(draw, 2 * words.size)[: words.size].reshape(words.shape)
    else:
        scales = ["f16", "f16_min", "f32", "k_min"] + ["k"] * (kind == "q8")
        chosen = draw(st.sampled_from(scales))
        group = {"k": 16, "k_min": 32}.get(chosen) or draw(st.sampled_from([8, 24, 32, 64]))
        layout = Layout("u4" if kind == "q4" else "i8", chosen, group)
        k = 256 * draw(st.integers(1, 2)) if chosen.startswith("k") else edge(draw, 129)
        words = bits(draw, (n, layout.row_words(k)), "uint32")
    scales = records(draw, layout, n, k, wide) if layout.group else np.empty(0, np.uint32)
    weight = PackedWeight(layout, n, k, words, scales)
    with np.errstate(all="ignore"):
        return weight, unpack(weight).astype(np.float64)


def named(weight):
    layout = weight.layout
    if layout.scales == "none":
        return [Const(weight.codes), layout.codes]
    scales = (FloatWords if layout.scales == "f32" else Const)(weight.scales)
    return [Const(weight.codes), scales, layout.scales, layout.group]


def ours(draw, op):
    weight, values = packed(draw, op.rpartition("_")[2])
    m, n, k = edge(draw, 40), weight.n, weight.k
    x, bias = X(draw, (m, k)), MILD(draw, (n,))
    terms = finite(x) @ finite(values).T + finite(bias)
    args = [In("x", x), *named(weight), Const(bias)]
    if draw(st.booleans()):
        return Sample(args, (k + 16) * terms)
    # Gates of any size: their activation must be what its formula tends to, and no NaN.
    x = FINITE_X(draw, (m, k))
    norm = GAIN(draw, (k,)) if draw(st.booleans()) else None
    gate = draw(st.sampled_from([None, "silu", "gelu_tanh"])) if n % 2 == 0 else None
    wide = x.astype(np.float64)
    if norm is not None:
        wide = wide / np.sqrt((wide**2).mean(-1, keepdims=True) + EPS) * norm
    u, terms = wide @ values.T + bias, abs(wide) @ abs(values).T + finite(bias)
    if gate:
        (act, up), (lost, lost_up) = np.split(abs(u), 2, axis=1), np.split(terms, 2, axis=1)
        # A slope of at most 1.13, and an exponential that is as many ulps off as it is large.
        terms = 2 * lost * up + act * lost_up + act * up
    residual = MILD(draw, terms.shape)
    args[0] = In("x", x)
    args += [None if norm is None else Const(norm), EPS, gate, In("residual", residual)]
    return Sample(args, (2 * k + 64) * (terms + abs(residual)))


def embedded(draw, op):
    weight, _ = packed(draw, op.rpartition("_")[2], wide=True)
    indices = rows_of(draw, weight.n, (edge(draw, 9), edge(draw, 3)))
    return Sample([*named(weight), weight.k, In("indices", indices)])


def nibbles(draw, n, k):
    return bits(draw, (n, -(-k // 2)), "uint8")


def unpacked(codes, k, even_high=False):
    pair = (codes >> 4, codes & 15) if even_high else (codes & 15, codes >> 4)
    return np.stack(pair, axis=-1).reshape(len(codes), -1)[:, :k].astype(np.float64) - 8


def grouped(draw, scale):
    """N, K, group, transposed scales [G, N + padding] and the weight's codes and values."""
    n, k = edge(draw, 65), 2 * edge(draw, 129)
    group = draw(st.sampled_from([8, 16, 24, 32]))
    codes, count = nibbles(draw, n, k), -(-k // group)
    scales = scale(draw, (count, n + draw(st.integers(0, 3))))
    values = unpacked(codes, k) * scales[np.arange(k) // group, :n].T.astype(np.float64)
    return n, k, group, scales, codes, values


def q4gsw(draw, op):
    n, k, group, scales, codes, values = grouped(draw, SCALE)
    x, bias = X(draw, (edge(draw, 40), k)), MILD(draw, (n,))
    size = (k + 16) * (finite(x) @ finite(values).T + finite(bias))
    return Sample([In("x", x), Const(codes), Const(scales), group, Const(bias)], size)


def qcs4w(draw, op):
    n, k = edge(draw, 65), 2 * edge(draw, 129)
    codes, scales, x = nibbles(draw, n, k), SCALE(draw, (n,)), X(draw, (edge(draw, 40), k))
    values = unpacked(codes, k, True) * scales[:, None].astype(np.float64)
    return Sample(
        [In("x", x), Const(codes), Const(scales)], (k + 16) * finite(x) @ finite(values).T
    )


def backward(draw, op):
    n, _, group, scales, codes, values = grouped(draw, SCALE)
    d_out = X(draw, (edge(draw, 40), n))
    args = [In("d_out", d_out), Const(codes), Const(scales), group]
    return Sample(args, (n + 16) * (finite(d_out) @ finite(values)))


def dq8ca(draw, op):
    """Activations away from the middle between two codes, where a rounding would decide."""
    n, k, group, scales, codes, values = grouped(draw, SCALE)
    m, rng = edge(draw, 40), rng_of(draw)
    scale = replace(SCALE, low=-12, high=12, positive=True, special=())(draw, (m,))
    zero = ints(draw, (m,), "int8")
    steps = rng.integers(-300, 300, (m, k)) + rng.uniform(-0.4, 0.4, (m, k))
    x = (steps * scale[:, None]).astype(np.float32)
    size = (k + 16) * scale[:, None] * (256 * np.ones((m, k)) @ abs(values).T)
    sums = Const(np.zeros((1, n), np.int32))
    args = [In("x", x), In("s", scale), In("z", zero), Const(codes), sums, Const(scales), group]
    return Sample(args, size)


def embedded_q4gsw(draw, op):
    rows, group, count = edge(draw, 33), draw(st.sampled_from([8, 16, 32])), draw(st.integers(1, 4))
    codes, scales = nibbles(draw, rows, group * count), WIDE_SCALE(draw, (rows, count))
    indices = In("indices", rows_of(draw, rows, (edge(draw, 9),)))
    return Sample([Const(codes), Const(scales), group, indices, draw(st.booleans())])


def requantized(draw, op):
    n, k, group = edge(draw, 33), edge(draw, 129), draw(st.sampled_from([8, 24, 32]))
    scales = replace(SCALE, low=-20, high=20)(draw, (-(-k // group), n))
    # Quotients from -12 to 12 in halves, so that there are ties, and some in between.
    steps = rng_of(draw).integers(-24, 25, (n, k)) / 2 + draw(st.sampled_from([0, 0.25, 1e-7]))
    latent = steps * scales[np.arange(k) // group].T
    return Sample([In("x", latent.astype(np.float32)), Const(scales), group])


def repacked(draw, op):
    kind = draw(st.sampled_from(SUPPORTED))
    stored = BY_NAME[kind]
    rows, columns = edge(draw, 17), stored.elements * draw(st.integers(1, 3))
    blocks = bits(draw, (rows * columns // stored.elements * stored.nbytes,), "uint8")
    return Sample([Const(blocks), kind, rows, columns])


def quantized_rows(draw, op):
    kind, width = draw(st.sampled_from(["F32", "F16", "BF16"])), draw(st.sampled_from([4, 8]))
    rows, columns = edge(draw, 17), edge(draw, 129)
    if kind == "F32":
        stored = Floats(-40, 20, special=(nan, inf, -inf, 0.0))(draw, (rows, columns))
    else:
        stored = bits(draw, (rows, columns), "uint16")
    table = Const(np.zeros((1, PARTS, LOSSES), np.float32))
    weight = Const(np.frombuffer(stored.tobytes(), np.uint8))
    return Sample([weight, kind, rows, columns, width, table, 0])


ROWS = [
    Row(
        tuple(f"webgpu_py.linear_{k}" for k in ("q4", "q8", "f16")),
        ours,
        share(1, TERMS + "; gated: (2K + 64) (the parts' products)", loose=True),
        f"{EVERY}; scales {SCALE}; x: {X}",
        LOOSE + "; they reach their row only; a gate of any finite size gives no NaN",
    ),
    Row(
        tuple(f"webgpu_py.embedding_{k}" for k in ("q4", "q8", "f16")),
        embedded,
        ulps(1),
        f"{EVERY}; any finite scales",
        "NaN in stored floats stays NaN",
    ),
    Row(
        ("et_vk.linear_q4gsw.default",),
        q4gsw,
        share(1, TERMS, loose=True),
        f"{EVERY}; scales {SCALE}; x: {X}",
        LOOSE,
    ),
    Row(
        ("et_vk.linear_qcs4w.default",),
        qcs4w,
        share(1, TERMS, loose=True),
        f"{EVERY}; scales {SCALE}; x: {X}",
        LOOSE,
    ),
    Row(
        ("et_vk.linear_q4gsw_backward.default",),
        backward,
        share(1, "(N + 16) Σ|d w|", loose=True),
        f"{EVERY}; scales {SCALE}; d: {X}",
        LOOSE,
    ),
    Row(
        ("et_vk.linear_dq8ca_q4gsw.default",),
        dq8ca,
        share(1, "(K + 16) s Σ 256 |w|"),
        f"{EVERY}; x / s no nearer than 0.1 to a tie",
        "x beyond int8 saturates; NaN is not promised",
    ),
    Row(
        ("et_vk.embedding_q4gsw.default",),
        embedded_q4gsw,
        ulps(1),
        f"{EVERY}; scales {WIDE_SCALE}",
        "none arise",
    ),
    Row(
        ("et_vk.q4gsw_requant.default",),
        requantized,
        EXACT,
        "ties among the quotients; scales 2^-20 to 2^21, 0",
        "NaN and ±inf are not promised",
    ),
    Row(("webgpu_py.repack",), repacked, BITS, "any bits of every stored type", "kept"),
    Row(
        ("webgpu_py.quantize_rows",),
        quantized_rows,
        BITS,
        "F32 2^-40 to 2^21, denormal, NaN, ±inf; any bits of F16 and BF16",
        "a group with NaN or ±inf, or too large for float16, is 0 and counted",
    ),
]
