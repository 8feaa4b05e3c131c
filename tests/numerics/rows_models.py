"""Attention and rotation, training, sampling, and integers on the host."""

from dataclasses import replace
from math import inf, sqrt

import numpy as np
from hypothesis import strategies as st

from numerics.bound import EXACT, Row, Sample, share
from numerics.rows_copies import rows_of
from numerics.values import LARGEST, MILD, PATTERNS, Floats, bits, dims, edge, ints, rng_of
from ops.opcase import Const, In, Sym

HEADS = Floats(-12, 1, special=(0.0,), denormal=False)
VALUES = Floats(-20, 20, special=(0.0,), denormal=False)
TERMS = "max|v| (2 S (4 + √D) + 4√K + 32), S = scale |q| max|k|"


def norm(x):
    return np.sqrt((x.astype(np.float64) ** 2).sum(-1))


def attention_size(q, k, v, scale, keys, lost=1.0):
    """For q [.., D], by the largest k and v: a score's error is one of its weight's logarithm."""
    scores = scale * norm(q) * norm(k).max()
    turns = 2 * scores * (4 + sqrt(q.shape[-1])) * lost + 4 * sqrt(keys) + 32 * lost
    return turns[..., None] * abs(v).max() * np.ones(q.shape[-1])


def cache_of(draw, rows, heads, width, position, half, strategy):
    """Rows before `position` hold numbers, later ones any bits: nobody may see them."""
    cache = strategy(draw, (rows, heads, width))
    stored = cache
    if half:
        pairs = np.pad(cache, ((0, 0), (0, 0), (0, width % 2))).astype(np.float16)
        stored = pairs.view(np.uint32)
        cache = pairs[..., :width].astype(np.float32)
    stored[position:] = bits(draw, stored[position:].shape, str(stored.dtype))
    return cache[:position], stored


def geometry(draw):
    # Few of each, as every combination of them is a kernel to compile.
    kv_heads, group = draw(st.integers(1, 2)), draw(st.sampled_from([1, 3]))
    width, rows = draw(st.sampled_from([4, 33, 64])), draw(st.sampled_from([1, 7, 65, 200]))
    tokens = draw(st.sampled_from([t for t in (1, 2, 7, 40) if t <= rows]))
    return kv_heads, kv_heads * group, width, rows, tokens, draw(st.integers(0, rows - tokens))


def cached(draw, op):
    kv_heads, heads, width, rows, tokens, position = geometry(draw)
    own = op == "webgpu_py.attention"
    half = own and draw(st.booleans())
    values = HEADS if half else VALUES
    q, k = HEADS(draw, (1, tokens, heads, width)), HEADS(draw, (1, tokens, kv_heads, width))
    v = values(draw, k.shape)
    old_k, k_cache = cache_of(draw, rows, kv_heads, width, position, half, HEADS)
    old_v, v_cache = cache_of(draw, rows, kv_heads, width, position, half, values)
    size = attention_size(
        q,
        np.concatenate([old_k, k[0]]),
        np.concatenate([old_v, v[0]]),
        1 / sqrt(width),
        position + tokens,
        2.0**14 if half else 1.0,
    )
    caches = [Const(k_cache[None]), Const(v_cache[None])]
    extra = [None, draw(st.integers(0, 40)), draw(st.sampled_from([0.0, 30.0]))] if own else []
    at = Sym("position", position) if draw(st.booleans()) else position
    return Sample([In("q", q), In("k", k), In("v", v), *caches, at, *extra], size)


def angles(draw, rows, half):
    """cos and sin of any angles, [rows, half]."""
    turn = rng_of(draw).uniform(-4, 4, (rows, half))
    return np.cos(turn).astype(np.float32), np.sin(turn).astype(np.float32)


def self_attended(draw, op):
    kv_heads, heads, width, rows, tokens, position = geometry(draw)
    half, width = draw(st.booleans()), width - width % 2
    old_k, k_cache = cache_of(draw, rows, kv_heads, width, position, half, HEADS)
    old_v, v_cache = cache_of(draw, rows, kv_heads, width, position, half, HEADS)
    qkv = HEADS(draw, (tokens, heads + 2 * kv_heads, width))
    q, k, v = np.split(qkv, [heads, heads + kv_heads], axis=1)
    rotation = np.stack(angles(draw, rows, draw(st.integers(1, width // 2))), axis=-1)
    size = attention_size(
        q,
        np.concatenate([old_k, k]),
        np.concatenate([old_v, v]),
        1 / sqrt(width),
        position + tokens,
        2.0**14 if half else 2.0,
    )
    args = [In("qkv", qkv.reshape(tokens, -1)), Const(rotation), Const(k_cache), Const(v_cache)]
    extra = [
        draw(st.booleans()),
        None,
        draw(st.integers(0, 40)),
        draw(st.sampled_from([0.0, 30.0])),
    ]
    return Sample([*args, position, heads, *extra], size.reshape(tokens, -1))


def dense(draw, op):
    lead, rows, keys = dims(draw, 0, 2, 6), draw(st.sampled_from([1, 3, 40])), edge(draw, 129)
    width = draw(st.sampled_from([4, 33, 64]))
    q = HEADS(draw, (*lead, rows, width))
    k, v = HEADS(draw, (*lead, keys, width)), VALUES(draw, (*lead, keys, width))
    mask = HEADS(draw, (*lead, rows, keys))
    hidden = draw(st.sampled_from([-1e9, -LARGEST, -inf]))
    mask[rng_of(draw).random(mask.shape) < draw(st.sampled_from([0, 0.5]))] = hidden
    if hidden == -1e9:
        # Beside it float32 keeps nothing of a score: some key must be seen.
        mask[..., 0] = 0
    size = attention_size(q, k, v, 1 / sqrt(width), keys)
    return Sample([In("q", q), In("k", k), In("v", v), In("mask", mask)], size + 64 * abs(v).max())


def turned(draw, op):
    """Rotations lose a rounding of each product."""
    tokens, heads, kv_heads, half = edge(draw, 9), edge(draw, 4), edge(draw, 3), edge(draw, 17)
    rows = tokens + draw(st.integers(0, 5))
    if op == "et_vk.apply_rotary_emb_interleaved.default":
        x, freqs = MILD(draw, (edge(draw, 3), tokens, 2 * half)), MILD(draw, (tokens, half, 2))
        pairs = abs(x.astype(np.float64)).reshape(*x.shape[:-1], half, 2).sum(-1)
        size = np.repeat(pairs * abs(freqs).sum(-1), 2, axis=-1)
        return Sample([In("x", x), Const(freqs)], size)
    width = 2 * half
    q, k = MILD(draw, (1, tokens, heads, width)), MILD(draw, (1, tokens, kv_heads, width))
    columns = width if op == "et_vk.apply_rotary_emb_hf.default" else half
    tables = [MILD(draw, (tokens if "emb.default" in op else rows, columns)) for _ in range(2)]
    most = sum(abs(t).max() for t in tables)
    sizes = [abs(x).max() * 2 * most * np.ones(x.shape) for x in (q, k)]
    args = [In("q", q), In("k", k), *map(Const, tables)]
    if "emb.default" not in op:
        args.append(draw(st.integers(0, rows - tokens)))
    return Sample([*args, draw(st.booleans())] if "webgpu_py" in op else args, sizes)


LOGITS = Floats(-20, 7, special=(0.0, -LARGEST, -inf), denormal=False)


def entropy(draw, op):
    rows, classes = edge(draw, 17), edge(draw, 257)
    x, labels = LOGITS(draw, (rows, classes)), rows_of(draw, classes, (rows,))
    # A label of a class that is excluded costs inf.
    x[np.arange(rows), labels] = np.clip(x[np.arange(rows), labels], -200, 300)
    labels[rng_of(draw).random(rows) < 0.3] = -1
    spread = np.clip(x, -300, 300)
    spread = (spread.max(1) - spread.min(1)).astype(np.float64)
    largest = np.where(np.isfinite(x), abs(x.astype(np.float64)), 0).clip(0, 600).max()
    n_valid = draw(st.sampled_from([1.0, 3.0, 0.5]))
    turns = (8 + spread + sqrt(classes)) / n_valid
    return Sample(
        [In("x", x), In("labels", labels), n_valid],
        [np.float64((turns + 4 * largest / n_valid).sum() * (1 + rows / 8)), 4 * turns[:, None]],
    )


def stepped(draw, op):
    shape = dims(draw)
    param, m, grad = (MILD(draw, shape) for _ in range(3))
    v = replace(MILD, positive=True, special=(0.0,))(draw, shape)
    lr, b1, b2, eps = draw(st.sampled_from([1e-3, 0.1])), 0.9, 0.999, 1e-8
    decay, c1, c2 = draw(st.sampled_from([0.0, 0.01])), 0.1, draw(st.sampled_from([1e-3, 0.5]))
    first = abs(b1 * m.astype(np.float64)) + abs((1 - b1) * grad)
    second = b2 * v.astype(np.float64) + (1 - b2) * grad.astype(np.float64) ** 2
    step = abs(param) + lr * first / c1 / (np.sqrt(second / c2) + eps)
    args = [Const(param), Const(m), Const(v), In("grad", grad), lr, b1, b2, eps, decay, c1, c2]
    return Sample(args, [step, first, second], outputs=(), mutated=(0, 1, 2))


def picked(draw, op):
    """Temperature 0, or top_k 1: the largest, the first of equal ones; in eighths, so exact."""
    count = edge(draw, 1025)
    rng = rng_of(draw)
    logits = (rng.integers(-400, 400, count) / 8).astype(np.float32)
    logits[rng.random(count) < 0.2] = draw(st.sampled_from([0, -inf, -LARGEST]))
    logits[rng.integers(count)] = draw(st.sampled_from([0.5, 55.0]))
    counts = rng.integers(0, 3, count).astype(np.int32)
    bias = rng.choice(np.array([0, 0, 0.5, -inf], np.float32), count)
    bias[0] = 0
    hot = draw(st.booleans())
    values = [1.0 if hot else 0.0, 1.0 if hot else 0.0, 1.0, 0.0, 2.0, 0.5, 0.25]
    # The seed's bits look like a NaN.
    seed = int(rng.choice(PATTERNS).view(np.int32))
    settings = Const(np.array([*np.array(values, np.float32).view(np.int32), seed], np.int32))
    args = [In("logits", logits), Const(counts), Const(bias), settings]
    position = draw(st.integers(0, 2**31 - 1))
    return Sample([*args, position], [0, 128.0, 0], mutated=(1,))


def whole(draw, op):
    """Two integers of any size, of which one at least is symbolic, on their way to a kernel."""
    a, b = (int(ints(draw, ())) for _ in range(2))
    if op == "floordiv":
        b = b or 1
        a += (a, b) == (-(2**31), -1)
    # Before the first run a symbolic divisor would be 0.
    args = [Sym("a", a), b if op == "floordiv" or draw(st.booleans()) else Sym("b", b)]
    return Sample(args, then=(("aten.scalar_tensor.default", "int32"),))


def measured(draw, op):
    shape = dims(draw, 1)
    dim = draw(st.integers(-len(shape), len(shape) - 1))
    x = In("x", ints(draw, shape))
    index = [draw(st.integers(-shape[dim], shape[dim] - 1))] if "select" in op else []
    return Sample([x, dim, *index], then=(("aten.scalar_tensor.default", "int32"),))


NOT = "NaN and ±inf are not promised"
ROWS = [
    Row(
        ("sdpa_with_kv_cache.default", "webgpu_py.attention"),
        cached,
        share(1, TERMS + "; 2^14 times S with float16 caches"),
        f"q, k: {HEADS}; v: {VALUES}",
        NOT + "; bits of unwritten cache rows are never seen",
    ),
    Row(
        ("webgpu_py.self_attention",),
        self_attended,
        share(1, TERMS + "; 2^14 times S with float16 caches"),
        str(HEADS),
        NOT + "; bits of unwritten cache rows are never seen",
    ),
    Row(
        ("et_vk.sdpa.default",),
        dense,
        share(1, TERMS),
        f"q, k: {HEADS}; v: {VALUES}; mask also -1e9, -FLT_MAX, -inf",
        "a mask of -inf or -FLT_MAX excludes; a row without keys is the mean of v, as in "
        "ExecuTorch (PyTorch: 0); else " + NOT,
    ),
    Row(
        (
            "et_vk.apply_rotary_emb.default",
            "et_vk.apply_rotary_emb_hf.default",
            "et_vk.apply_rotary_emb_interleaved.default",
            "webgpu_py.rope.default",
        ),
        turned,
        share(2, "(|a| + |b|) (|cos| + |sin|)"),
        str(MILD),
        NOT,
    ),
    Row(
        ("et_vk.fused_ce.default",),
        entropy,
        (
            share(2, "Σ over rows of 8 + spread + √V + 4 max|x|, / n_valid"),
            share(1, "4 (8 + spread + √V) / n_valid"),
        ),
        str(LOGITS),
        "excluded classes may be -inf or -FLT_MAX; NaN is not promised",
    ),
    Row(
        ("et_vk.adamw_step.default",),
        stepped,
        (
            share(16, "|param| + lr |m / c1| / (√(v / c2) + eps)"),
            share(4, "|b1 m| + |(1 - b1) g|"),
            share(4, "b2 v + (1 - b2) g²"),
        ),
        str(MILD),
        NOT,
    ),
    Row(
        ("webgpu_py.sample.default",),
        picked,
        (EXACT, share(64, "128"), EXACT),
        "eighths up to 50; logits and bias -inf too",
        "-inf and -FLT_MAX are never picked beside another; logits of NaN only are not promised",
    ),
    Row(("add", "sub", "mul", "floordiv"), whole, EXACT, "any int32", "wraps"),
    Row(
        ("sym_size.int", "et_vk.select_as_symint.default"),
        measured,
        EXACT,
        "any int32",
        "none arise",
    ),
]
