"""Attention: cached with float32 and float16 caches, windows, dense with masks; both routes."""

import numpy as np
import pytest

from ops.opcase import Const, In, OpCase, Sym, check, check_all, distinct
from ops.routes import hardware_routes
from webgpu_py.graph.limits import Limits
from webgpu_py.ops.attention import Geometry, route, split_sizes

CACHED = "sdpa_with_kv_cache.default"
OURS = "webgpu_py.attention"
DENSE = "et_vk.sdpa.default"
INVOCATIONS = "max_compute_invocations_per_workgroup"
GRID = {"max_compute_workgroups_per_dimension": 4}


def ramp(mod, off, *dims, phase=0, unit=16):
    n = int(np.prod(dims))
    return (((np.arange(n) + phase) % mod - off) / unit).astype(np.float32).reshape(dims)


def softmax(scores):
    e = np.exp(scores - scores.max())
    return e / e.sum()


def attended(q, k, v, position, scale=None, window=0, cap=0):
    """A token and a head at a time: q [S, Hq, D], k and v [C, Hkv, D] with this step's rows in."""
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    out = np.zeros(q.shape)
    group = q.shape[1] // k.shape[1]
    scale = q.shape[2] ** -0.5 if scale is None else scale
    for s in range(q.shape[0]):
        end = position + s + 1
        start = max(0, end - window) if window else 0
        for h in range(q.shape[1]):
            scores = k[start:end, h // group] @ q[s, h] * scale
            weights = softmax(cap * np.tanh(scores / cap) if cap else scores)
            out[s, h] = weights @ v[start:end, h // group]
    return out


def packed_pairs(cache):
    odd = cache.shape[-1] % 2
    wide = np.pad(cache, [(0, 0)] * (cache.ndim - 1) + [(0, odd)]).astype(np.float16)
    return np.ascontiguousarray(wide).view(np.uint32)


class Stream:
    """A cache and the steps that go through it."""

    def __init__(self, hq, hkv, d, capacity, unit=16, packed=False, prior=0):
        self.hq, self.hkv, self.d, self.unit, self.packed = hq, hkv, d, unit, packed
        self.k, self.v = (np.zeros((1, capacity, hkv, d), np.float32) for _ in range(2))
        self.k[:, :prior] = ramp(7, 3, 1, prior, hkv, d)
        self.v[:, :prior] = ramp(5, 2, 1, prior, hkv, d)
        self.start = self.caches()

    def caches(self):
        pair = (self.k.copy(), self.v.copy())
        return [packed_pairs(x) for x in pair] if self.packed else list(pair)

    def step(self, s, position, scale=None, window=0, phase=0, cap=0):
        q = ramp(17, 8, 1, s, self.hq, self.d, phase=phase, unit=self.unit)
        k = ramp(13, 6, 1, s, self.hkv, self.d, phase=phase, unit=self.unit)
        v = ramp(11, 5, 1, s, self.hkv, self.d, phase=phase)
        self.k[:, position : position + s] = k
        self.v[:, position : position + s] = v
        out = attended(q[0], self.k[0], self.v[0], position, scale, window, cap)[None]
        return {"q": q, "k": k, "v": v, "position": position}, [out, *self.caches()]


def cached_case(
    hq,
    hkv,
    d,
    s,
    capacity,
    position=0,
    unit=16,
    limits=None,
    op=CACHED,
    packed=False,
    window=0,
    cap=0,
):
    stream = Stream(hq, hkv, d, capacity, unit, packed, prior=position)
    inputs, expected = stream.step(s, position, window=window, cap=cap)
    args = [*(In(n, inputs[n]) for n in "qkv"), *(Const(c) for c in stream.start), position]
    args += [None, window, cap] if op == OURS else [1, None, 0, True, None]
    return OpCase(op, args, expected, limits=limits, mutated=(3, 4), atol=1e-4, rtol=1e-3)


def replay(hq, hkv, d, capacity, steps, live, limits=None, op=CACHED, packed=False, window=0):
    """Steps of live length, one after the other, in one session."""
    stream = Stream(hq, hkv, d, capacity, packed=packed)
    runs, position = [], 0
    for n, s in enumerate(steps):
        runs.append(stream.step(s, position, window=window, phase=31 * n))
        position += s
    (first, expected), *rest = runs
    heads = {"q": hq, "k": hkv, "v": hkv}
    args = [In(n, first[n], (1, live, h, d)) for n, h in heads.items()]
    args += [*(Const(c) for c in stream.start), Sym("position", 0)]
    args += [None, window] if op == OURS else []
    return OpCase(op, args, expected, rest, limits, 1e-4, 1e-3, mutated=(3, 4))


def unusual_case():
    """No batch dimension, a scale of its own, caches as inputs."""
    stream = Stream(4, 2, 8, 9, prior=3)
    inputs, expected = stream.step(2, 3, scale=0.7)
    args = [In(n, inputs[n][0]) for n in "qkv"]
    args += [In(f"{n}_cache", c[0]) for n, c in zip("kv", stream.start, strict=True)]
    args += [3, None, None, None, None, 0.7]
    return OpCase(CACHED, args, [x[0] for x in expected], mutated=(3, 4))


def batch_case():
    parts = [Stream(4, 2, 5, 7), Stream(4, 2, 5, 7)]
    steps = [p.step(3, 2, phase=5 * n) for n, p in enumerate(parts)]
    args = [In(n, np.concatenate([i[n] for i, _ in steps])) for n in "qkv"]
    args += [Const(np.concatenate(c)) for c in zip(*(p.start for p in parts), strict=True)]
    expected = [np.concatenate(x) for x in zip(*(e for _, e in steps), strict=True)]
    return OpCase(CACHED, [*args, 2], expected, mutated=(3, 4))


def dense_case(lead, sq, skv, d, mask_dims=None, limits=None, scale=None, mask=None):
    q, k, v = (distinct((*lead, n, d), n + i) for i, n in enumerate((sq, skv, skv)))
    if mask is None and mask_dims is not None:
        mask = distinct(mask_dims, 7, -1, 0)
    bias = np.zeros((sq, skv)) if mask is None else mask.astype(np.float64)
    wide = q.astype(np.float64) @ np.swapaxes(k, -1, -2) * (d**-0.5 if scale is None else scale)
    scores = np.maximum(wide + bias, -1e30)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = weights / weights.sum(-1, keepdims=True) @ v.astype(np.float64)
    args = [In("q", q), In("k", k), In("v", v), None if mask is None else Const(mask), scale]
    return OpCase(DENSE, args, [expected], limits=limits, atol=1e-4, rtol=1e-3)


def hidden_keys(value):
    mask = np.zeros((8, 12), np.float32)
    mask[:, 5:] = value
    mask[3] = value
    return mask


def live_dense_case():
    def step(sq, skv):
        c = dense_case((1, 2), sq, skv, 8)
        return {a.name: a.array for a in c.args[:3]}, c.expected

    first, expected = step(40, 70)
    most = {"q": (1, 2, 40, 8), "k": (1, 2, 70, 8), "v": (1, 2, 70, 8)}
    args = [In(n, first[n], dims) for n, dims in most.items()]
    runs = [step(1, 1), step(3, 70), step(40, 5), step(40, 70)]
    return OpCase(DENSE, [*args, None, None], expected, runs, atol=1e-4, rtol=1e-3)


# Compiling a pipeline is what takes the time in the software adapter, so these share a few.
CASES = [
    # split, one stretch: one token, several tokens
    replay(6, 2, 8, 16, (3, 1, 1, 5, 1, 1), 5),
    # split, several stretches, and several tiles in one
    cached_case(3, 1, 8, 1, 200, 150),
    cached_case(3, 1, 8, 1, 8400, 8399),
    cached_case(6, 2, 8, 1, 300, 280, limits=GRID),
    # split in quads: the same, for heads of whole quads
    replay(6, 2, 32, 16, (3, 1, 1, 5, 1, 1), 5),
    cached_case(3, 1, 16, 1, 8400, 8399),
    cached_case(5, 1, 48, 1, 200, 150, op=OURS, packed=True, window=130),
    cached_case(4, 2, 16, 3, 16, 6, unit=1, op=OURS, window=4, cap=2.5),
    cached_case(6, 2, 16, 3, 150, 100, limits={INVOCATIONS: 32}),
    # tile: diagonal inside a tile, several blocks of rows, folded grid, caches that persist
    cached_case(6, 2, 8, 40, 64, limits=GRID),
    cached_case(2, 2, 28, 65, 130),
    replay(6, 2, 12, 60, (40, 7, 12), 40),
    # our own signature: float16 caches, windows
    cached_case(6, 2, 7, 2, 100, 60, op=OURS, packed=True),
    cached_case(4, 2, 8, 3, 16, 6, op=OURS, window=4),
    # soft caps, one of them far below the scores: both routes
    cached_case(4, 2, 8, 3, 16, 6, unit=1, op=OURS, window=4, cap=2.5),
    cached_case(4, 2, 16, 40, 100, 50, unit=0.125, op=OURS, cap=0.5),
    # narrow workgroups
    *(cached_case(6, 2, 8, 5, 150, 100, limits={INVOCATIONS: w}) for w in (1, 32)),
    # dense
    dense_case((2, 3), 40, 70, 5, (2, 1, 1, 70)),
    dense_case((), 35, 9, 6, (35, 9)),
    dense_case((2, 1, 3), 4, 5, 4, (1, 1, 3, 4, 5), scale=2),
    dense_case((2, 1, 3), 4, 5, 4, (2, 1, 1, 1, 1)),
    *(dense_case((1, 2), 8, 12, d, mask=hidden_keys(-np.inf)) for d in (4, 16)),
    dense_case((2, 1, 3), 4, 70, 32, (2, 1, 3, 4, 70)),
    dense_case((1, 2), 8, 12, 4, mask=hidden_keys(np.finfo(np.float32).min)),
    live_dense_case(),
]

# Tiles on a GPU, quads on adapters that run on the CPU.
WHOLE_CASES = [
    cached_case(9, 3, 64, 40, 100, 50),
    cached_case(1, 1, 256, 33, 64),
    replay(4, 2, 16, 100, (35, 40, 20), 40, op=OURS, packed=True, window=20),
]

MORE_CASES = [
    cached_case(6, 2, 8, 4, 16),
    cached_case(4, 4, 16, 3, 8),
    cached_case(8, 4, 4, 5, 16),
    cached_case(6, 2, 8, 2, 16, 2),
    cached_case(4, 4, 32, 4, 16, unit=0.5),
    cached_case(4, 4, 6, 4, 16),
    replay(8, 4, 4, 16, (3, 1, 1, 5, 1, 1, 2), 5),
    unusual_case(),
    batch_case(),
    cached_case(3, 1, 20, 1, 200, 150),
    cached_case(20, 1, 3, 1, 130, 100),
    cached_case(5, 1, 1, 2, 70, 64),
    cached_case(1, 1, 300, 1, 5, 3),
    cached_case(2, 2, 30, 65, 130),
    cached_case(7, 1, 80, 6, 90, 80),
    cached_case(1, 1, 132, 35, 40, 2),
    cached_case(1, 1, 260, 33, 40),
    *(
        cached_case(4, 2, d, s, 100, 60, op=OURS, packed=packed, window=window)
        for d, s, packed, window in [
            (8, 1, True, 0),
            (12, 1, True, 17),
            (16, 40, True, 9),
            (6, 33, True, 0),
            (8, 40, False, 1),
            (8, 3, False, 65),
            (8, 1, False, 1),
            (8, 1, False, 100),
        ]
    ),
    *(cached_case(6, 2, 8, 1, 150, 100, limits={INVOCATIONS: w}) for w in (1, 32, 64, 128)),
    *(cached_case(6, 2, 8, 12, 150, 100, limits={INVOCATIONS: w}) for w in (64, 128)),
    dense_case((1, 4), 8, 8, 16),
    dense_case((1, 8), 4, 16, 16),
    dense_case((1, 4), 8, 8, 16, (1, 4, 8, 8)),
    dense_case((2, 2), 3, 65, 8, (2, 3, 1)),
    dense_case((1, 2), 6, 6, 128, scale=0.3),
    *(dense_case((1, 2), 40, 70, 8, (70,), {INVOCATIONS: w}) for w in (1, 64)),
]


@pytest.mark.parametrize("c", [*CASES, *WHOLE_CASES, *MORE_CASES], ids=str)
def test_cpu(c):
    check(c)


def test_browser(gpu):
    check_all([*CASES, *WHOLE_CASES], gpu)


def test_browser_tiles(gpu):
    with hardware_routes(gpu):
        check_all(WHOLE_CASES, gpu)


@pytest.mark.slow
def test_browser_more(gpu):
    check_all(MORE_CASES, gpu)


@pytest.mark.slow
def test_browser_with_the_kernels_of_a_gpu(gpu):
    with hardware_routes(gpu):
        check_all([*CASES, *MORE_CASES], gpu)


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        lambda: cached_case(24, 8, 128, 128, 256),
        lambda: cached_case(32, 8, 64, 1, 4096, 4095),
        lambda: cached_case(32, 8, 64, 1, 8192, 8191),
        lambda: cached_case(32, 8, 64, 1, 512, 127),
        lambda: cached_case(32, 8, 64, 128, 512),
        lambda: cached_case(32, 8, 64, 512, 512),
        lambda: cached_case(32, 8, 64, 2048, 2048),
        lambda: cached_case(16, 8, 128, 128, 256, op=OURS, packed=True),
        lambda: cached_case(16, 8, 128, 17, 64, 31, op=OURS, packed=True),
        lambda: replay(24, 8, 128, 256, (111, 1, 1, 1, 57, 1, 1), 111),
        lambda: replay(16, 8, 128, 64, (17, 1), 17, op=OURS, packed=True),
        lambda: dense_case((1, 12), 576, 576, 64),
        lambda: dense_case((1, 4), 6, 6, 128),
        lambda: dense_case((1, 8), 32, 256, 64),
    ],
)
def test_browser_large(gpu, make):
    c = make()
    check(c)
    check(c, gpu)


def test_the_route_is_a_function_of_shapes_and_limits():
    g = Geometry(8, 8, 4, 1, 2048, 64, 1.0, (0, 0, 0), (0, 0, 0))
    limits = Limits()
    assert route(g, limits) == "split"
    assert split_sizes(g, 64) == (4, 32)
    assert split_sizes(g, 64, 32) == (4, 4)
    assert split_sizes(g, 32) == (4, 1)
    many = Geometry(8, 8, 4, 128, 2048, 64, 1.0, (0, 0, 0), (0, 0, 0))
    assert route(many, limits) == "tile"
    assert route(many, limits.capped({INVOCATIONS: 64})) == "split"
    wide = Geometry(8, 8, 4, 128, 2048, 260, 1.0, (0, 0, 0), (0, 0, 0))
    assert route(wide, limits) == "split"
