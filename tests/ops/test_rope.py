"""Rotary embeddings: the three layouts, positions, partial rotary, live shapes, errors."""

import numpy as np
import pytest

from ops.opcase import Const, In, OpCase, Sym, check, check_all, distinct
from ops.routes import hardware_routes
from webgpu_py import DtypeError, IndexOutOfRange, ShapeError, UnsupportedOperator

PAIRS = "et_vk.apply_rotary_emb.default"
HALVES = "et_vk.apply_rotary_emb_hf.default"
INTERLEAVED = "et_vk.apply_rotary_emb_interleaved.default"


def ramp(mod, off, *dims):
    n = int(np.prod(dims))
    return ((np.arange(n) % mod - off) / 16).astype(np.float32).reshape(dims)


def rotated(x, a, b, cos_a, sin_a, cos_b, sin_b):
    """Element a becomes x_a cos_a - x_b sin_a, element b becomes x_b cos_b + x_a sin_b."""
    out = x.astype(np.float64)
    xa, xb = out[..., a], out[..., b]
    turned_a, turned_b = xa * cos_a - xb * sin_a, xb * cos_b + xa * sin_b
    out[..., a], out[..., b] = turned_a, turned_b
    return out


def pairs_of(x, cos, sin):
    a = np.arange(0, x.shape[-1], 2)
    c, s = (t.reshape(-1, 1, t.shape[-1])[: x.shape[-3]] for t in (cos, sin))
    return rotated(x, a, a + 1, c, s, c, s)


def halves_of(x, cos, sin, start):
    half = cos.shape[-1] // 2
    a = np.arange(half)
    c, s = (t[start : start + x.shape[-3], None] for t in (cos, sin))
    return rotated(x, a, a + half, c[..., a], s[..., a], c[..., a + half], s[..., a + half])


def interleaved_of(x, freqs):
    a = np.arange(0, x.shape[-1], 2)
    t = freqs.reshape(-1, x.shape[-1])[: x.shape[-2]]
    return rotated(x, a, a + 1, t[:, a], t[:, a + 1], t[:, a], t[:, a + 1])


def pairs_case(b, s, hq, hk, d, limits=None):
    q, k = ramp(17, 8, *b, s, hq, d), distinct((*b, s, hk, d), 2)
    cos, sin = distinct((s, d // 2), 3), distinct((s, d // 2), 4)
    args = [In("q", q), In("k", k), In("cos", cos), Const(sin)]
    return OpCase(PAIRS, args, [pairs_of(q, cos, sin), pairs_of(k, cos, sin)], limits=limits)


def halves_case(b, s, hq, hk, d, rotary, rows, start):
    q, k = distinct((*b, s, hq, d), 1), distinct((*b, s, hk, d), 2)
    cos, sin = distinct((rows, rotary), 3), distinct((rows, rotary), 4)
    args = [In("q", q), In("k", k), Const(cos), Const(sin, prepack=True), start]
    return OpCase(HALVES, args, [halves_of(x, cos, sin, start) for x in (q, k)])


def interleaved_case(dims, freq_dims, limits=None):
    x, freqs = ramp(17, 8, *dims), distinct(freq_dims, 2)
    return OpCase(
        INTERLEAVED, [In("x", x), In("freqs", freqs)], [interleaved_of(x, freqs)], limits=limits
    )


def live_pairs_case():
    cos, sin = distinct((16, 4), 3), distinct((16, 4), 4)

    def step(s, seed):
        q, k = distinct((1, s, 3, 8), seed), distinct((1, s, 1, 8), seed + 1)
        inputs = {"q": q, "k": k, "cos": cos[:s], "sin": sin[:s]}
        return inputs, [pairs_of(x, cos[:s], sin[:s]) for x in (q, k)]

    first, expected = step(16, 10)
    most = {"q": (1, 16, 3, 8), "k": (1, 16, 1, 8), "cos": (16, 4), "sin": (16, 4)}
    args = [In(name, first[name], dims) for name, dims in most.items()]
    return OpCase(PAIRS, args, expected, [step(s, 20 + s) for s in (8, 1, 16)])


def live_halves_case():
    cos, sin = distinct((16, 8), 3), distinct((16, 8), 4)

    def step(s, start, seed):
        q, k = distinct((1, s, 3, 8), seed), distinct((1, s, 2, 8), seed + 1)
        return {"q": q, "k": k, "start": start}, [halves_of(x, cos, sin, start) for x in (q, k)]

    first, expected = step(16, 0, 10)
    args = [In("q", first["q"], (1, 16, 3, 8)), In("k", first["k"], (1, 16, 2, 8))]
    args += [Const(cos), Const(sin), Sym("start", 0)]
    runs = [step(5, 7, 20), step(1, 15, 30), step(1, 0, 40), step(16, 0, 50)]
    return OpCase(HALVES, args, expected, runs)


def live_interleaved_case():
    freqs = distinct((6, 4), 3)

    def step(b, n):
        x = distinct((b, n, 4), 10 * b + n)
        return {"x": x}, [interleaved_of(x, freqs)]

    first, expected = step(2, 6)
    args = [In("x", first["x"], (2, 6, 4)), Const(freqs)]
    return OpCase(INTERLEAVED, args, expected, [step(1, 2), step(2, 1), step(2, 6)])


def live_rope_case(interleaved, dim, rotary):
    cos, sin = distinct((16, rotary // 2), 3), distinct((16, rotary // 2), 4)

    def turned(x, start):
        rows = slice(start, start + x.shape[-3])
        out = x.astype(np.float64)
        part = x[..., :rotary]
        if interleaved:
            out[..., :rotary] = pairs_of(part, cos[rows], sin[rows])
        else:
            both = [np.concatenate([t, t], axis=-1) for t in (cos, sin)]
            out[..., :rotary] = halves_of(part, *both, start)
        return out

    def step(s, start, seed):
        q, k = distinct((s, 3, dim), seed), distinct((s, 2, dim), seed + 1)
        return {"q": q, "k": k, "start": start}, [turned(x, start) for x in (q, k)]

    first, expected = step(16, 0, 10)
    args = [In("q", first["q"], (16, 3, dim)), In("k", first["k"], (16, 2, dim))]
    args += [Const(cos), Const(sin), Sym("start", 0), interleaved]
    runs = [step(5, 7, 20), step(1, 15, 30), step(16, 0, 50)]
    return OpCase("webgpu_py.rope.default", args, expected, runs)


CASES = [
    live_rope_case(True, 8, 8),
    live_rope_case(False, 8, 8),
    live_rope_case(True, 10, 6),
    live_rope_case(False, 10, 6),
    live_rope_case(True, 12, 8),
    live_rope_case(False, 20, 16),
    live_rope_case(True, 12, 4),
    live_rope_case(True, 20, 12),
    pairs_case((1,), 5, 8, 2, 64),
    pairs_case((1,), 1, 32, 8, 64),
    pairs_case((2,), 3, 2, 1, 6),
    pairs_case((), 2, 1, 1, 2),
    pairs_case((2, 2), 2, 3, 1, 4),
    pairs_case((1,), 3, 3, 2, 4),
    pairs_case((2,), 5, 3, 2, 12),
    pairs_case((1,), 5, 8, 2, 64, {"max_compute_workgroups_per_dimension": 8}),
    *(
        pairs_case((1,), 3, 3, 1, d, {"max_compute_invocations_per_workgroup": w})
        for d, w in ((8, 1), (10, 1), (10, 32), (10, 64), (10, 128))
    ),
    *(pairs_case((1,), 1, n, 1, 2) for n in (62, 63, 64)),
    halves_case((1,), 5, 8, 2, 64, 64, 5, 0),
    halves_case((1,), 1, 16, 8, 128, 128, 16, 15),
    halves_case((2,), 3, 2, 1, 10, 4, 8, 5),
    halves_case((), 2, 1, 2, 7, 6, 4, 1),
    halves_case((2,), 3, 2, 1, 12, 8, 8, 5),
    interleaved_case((1, 4, 8), (4, 8)),
    interleaved_case((2, 3, 8), (3, 8)),
    interleaved_case((1, 5, 4), (5, 2, 2)),
    interleaved_case((1, 2, 16), (32,)),
    interleaved_case((2, 3, 4, 6), (4, 6)),
    interleaved_case((3, 67, 4), (67, 4), {"max_compute_workgroups_per_dimension": 4}),
    live_pairs_case(),
    live_halves_case(),
    live_interleaved_case(),
]


@pytest.mark.parametrize("c", CASES, ids=str)
def test_cpu(c):
    check(c)


def test_browser(gpu):
    check_all(CASES, gpu)


def test_browser_with_the_kernels_of_a_gpu(gpu):
    with hardware_routes(gpu):
        check_all(CASES, gpu)


def f32(*dims):
    return In(f"x{'_'.join(map(str, dims))}", np.zeros(dims, np.float32))


Q, K = f32(1, 2, 4, 8), f32(1, 2, 2, 8)
T = Const(np.zeros((2, 4), np.float32))
H = Const(np.zeros((4, 8), np.float32))


@pytest.mark.parametrize(
    ("op", "args", "kind", "text"),
    [
        (PAIRS, [f32(2, 8), f32(2, 8), T, T], ShapeError, "at least 3"),
        (PAIRS, [Q, f32(2, 2, 8), T, T], ShapeError, "one rank"),
        (PAIRS, [Q, f32(1, 3, 2, 8), T, T], ShapeError, "differ in the heads"),
        (PAIRS, [Q, f32(1, 2, 2, 6), T, T], ShapeError, "differ in the heads"),
        (PAIRS, [Q, f32(2, 2, 2, 8), T, T], ShapeError, "differ in the heads"),
        (PAIRS, [f32(1, 2, 4, 7), f32(1, 2, 2, 7), T, T], ShapeError, "head dimension 7"),
        (PAIRS, [Q, K, H, H], ShapeError, r"must be \[S, 8/2\]"),
        (PAIRS, [Q, K, f32(4), f32(4)], ShapeError, r"must be \[S, 8/2\]"),
        (PAIRS, [Q, K, T, H], ShapeError, "same shape"),
        (PAIRS, [Q, K, f32(3, 4), f32(3, 4)], ShapeError, "3 rows"),
        (PAIRS, [Q, K, f32(1, 4), f32(1, 4)], ShapeError, "1 rows"),
        (PAIRS, [Q, K, T], UnsupportedOperator, "'sin' is missing"),
        (PAIRS, [Q, K, T, None], UnsupportedOperator, "'sin' is missing"),
        (PAIRS, [Q, K, T, 1], UnsupportedOperator, "must be a Tensor"),
        (PAIRS, [Q, In("k", np.zeros((1, 2, 2, 8), np.int32)), T, T], DtypeError, "k is int32"),
        (PAIRS, [Q, K, T, T, 0], ShapeError, "at most 4"),
        (HALVES, [f32(2, 8), f32(2, 8), H, H, 0], ShapeError, "at least 3"),
        (HALVES, [Q, f32(2, 2, 2, 8), H, H, 0], ShapeError, "differ in the heads"),
        (HALVES, [Q, K, f32(1, 4, 8), f32(1, 4, 8), 0], ShapeError, "max_seq"),
        (HALVES, [Q, K, f32(4, 5), f32(4, 5), 0], ShapeError, "rotary dimension 5"),
        (HALVES, [Q, K, f32(4, 10), f32(4, 10), 0], ShapeError, "at most 8"),
        (HALVES, [Q, K, H, f32(4, 6), 0], ShapeError, "same shape"),
        (HALVES, [Q, K, f32(1, 8), f32(1, 8), 0], ShapeError, "2 tokens, cos and sin have 1"),
        (HALVES, [Q, K, H, H, -1], IndexOutOfRange, "start_pos=-1"),
        (HALVES, [Q, K, H, H, 3], IndexOutOfRange, "allowed are 0 to 2"),
        (HALVES, [Q, K, H, H, None], UnsupportedOperator, "'start_pos' is missing"),
        (HALVES, [Q, K, H, H, 0.5], UnsupportedOperator, "must be an integer"),
        (HALVES, [Q, K, H, H, "0"], UnsupportedOperator, "must be a number"),
        (INTERLEAVED, [f32(4, 8), f32(4, 8)], ShapeError, "rank 3 or more"),
        (INTERLEAVED, [f32(1, 4, 7), f32(4, 7)], ShapeError, "must be even"),
        (INTERLEAVED, [f32(1, 4, 8), f32(5, 8)], ShapeError, "freqs has 40"),
        (INTERLEAVED, [f32(1, 4, 8), f32(3, 8)], ShapeError, "freqs has 24"),
        (INTERLEAVED, [f32(1, 4, 8), None], UnsupportedOperator, "'freqs' is missing"),
    ],
)
def test_refused_before_any_buffer(op, args, kind, text):
    with pytest.raises(kind, match=text) as caught:
        check(OpCase(op, args, []))
    assert "[buffers created: 0]" in str(caught.value)


@pytest.mark.parametrize(
    ("inputs", "kind"),
    [
        ({"start": -1}, IndexOutOfRange),
        ({"start": 1}, IndexOutOfRange),
        ({"q": np.zeros((1, 5, 3, 8), np.float32)}, ShapeError),
    ],
)
def test_refused_at_a_run(inputs, kind):
    c = live_halves_case()
    c.runs.append((inputs, []))
    with pytest.raises(kind):
        check(c)
