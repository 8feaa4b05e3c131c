"""webgpu_py.self_attention against a float64 route of the test's own, token by token."""

import numpy as np
import pytest

from ops.opcase import Const, In, OpCase, Sym, check, check_all, distinct
from ops.routes import hardware_routes
from webgpu_py import DtypeError, IndexOutOfRange, ShapeError

HALF_ROUNDING = 2e-3


def rotated(head, angles, interleaved):
    out = head.copy()
    for i, angle in enumerate(angles):
        a, b = (2 * i, 2 * i + 1) if interleaved else (i, i + len(angles))
        out[a] = head[a] * np.cos(angle) - head[b] * np.sin(angle)
        out[b] = head[b] * np.cos(angle) + head[a] * np.sin(angle)
    return out


def weighted(q, keys, values, scale, softcap):
    scores = keys @ q * scale
    if softcap:
        scores = softcap * np.tanh(scores / softcap)
    weights = np.exp(scores - scores.max())
    return weights @ values / weights.sum()


def case(tokens, heads, dim, position, capacity=24, rotary=None, **options):
    q_heads, kv_heads = heads
    rotary = dim if rotary is None else rotary
    packed, norms = options.get("packed", False), options.get("norms", False)
    interleaved, window = options.get("interleaved", False), options.get("window", 0)
    softcap, scale = options.get("softcap", 0.0), options.get("scale")
    angles = np.arange(capacity)[:, None] / 7.0 ** (np.arange(rotary // 2) / max(rotary // 2, 1))
    table = np.stack([np.cos(angles), np.sin(angles)], axis=2).astype(np.float32)
    qkv = distinct((tokens, (q_heads + 2 * kv_heads) * dim), 3)
    stored = np.float16 if packed else np.float32
    caches = [np.zeros((capacity, kv_heads, dim), stored) for _ in range(2)]
    for n, cache in enumerate(caches):
        cache[:position] = distinct((position, kv_heads, dim), 5 + n) if position else 0
    q_norm, k_norm = 1 + distinct((dim,), 8), 1 - distinct((dim,), 9)
    rows = qkv.astype(np.float64).reshape(tokens, -1, dim)
    k, v = (c.astype(np.float64) for c in caches)
    out = np.empty((tokens, q_heads, dim))
    for t in range(tokens):
        turned = []
        for h, head in enumerate(rows[t, : q_heads + kv_heads]):
            if norms:
                weight = q_norm if h < q_heads else k_norm
                head = head / np.sqrt(np.mean(head**2) + 1e-5) * weight
            turned.append(rotated(head, angles[position + t], interleaved))
        k[position + t] = np.array(turned[q_heads:])
        v[position + t] = rows[t, q_heads + kv_heads :]
        if packed:
            k, v = (c.astype(np.float16).astype(np.float64) for c in (k, v))
        end = position + t + 1
        seen = slice(max(0, end - window) if window else 0, end)
        for h in range(q_heads):
            at = h // (q_heads // kv_heads)
            factor = 1 / np.sqrt(dim) if scale is None else scale
            out[t, h] = weighted(turned[h], k[seen, at], v[seen, at], factor, softcap)
    words = [c.view(np.uint32) if packed else c for c in caches]
    args = [In("qkv", qkv), Const(table), *(Const(w) for w in words), Sym("pos", position)]
    args += [q_heads, interleaved, scale, window, softcap]
    args += [*((Const(q_norm), Const(k_norm)) if norms else (None, None)), 1e-5]
    tolerance = HALF_ROUNDING if packed else 3e-6
    return OpCase(
        "webgpu_py.self_attention",
        args,
        [out.reshape(tokens, -1)],
        atol=tolerance * float(np.abs(out).max()),
        rtol=tolerance,
    )


CASES = [
    case(1, (4, 1), 64, 0),
    case(1, (6, 2), 64, 17, interleaved=True),
    case(1, (3, 3), 16, 9, norms=True, scale=0.3),
    case(1, (4, 2), 32, 130, capacity=140, window=70, packed=True),
    case(1, (8, 1), 128, 70, capacity=80, rotary=96, softcap=0.7),
    case(1, (14, 2), 64, 12),
    case(1, (4, 2), 24, 11, norms=True, interleaved=True),
    case(1, (2, 1), 6, 3, rotary=4, packed=True),
    case(3, (4, 2), 32, 5, norms=True, window=4),
    case(12, (4, 2), 64, 7, interleaved=True, softcap=2.0, packed=True),
    case(20, (2, 1), 20, 0),
    case(2, (4, 1), 256, 6),
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
    return np.zeros(dims, np.float32)


@pytest.mark.parametrize(
    ("change", "kind", "text"),
    [
        ({0: In("qkv", f32(1, 70))}, ShapeError, "a row of qkv must be"),
        ({1: Const(f32(24, 10, 2))}, ShapeError, "rotation is"),
        ({1: Const(f32(4, 8, 2))}, IndexOutOfRange, "rotation has 4 rows"),
        ({2: Const(f32(24, 3, 8))}, ShapeError, "caches are"),
        ({3: Const(np.zeros((24, 1, 16), np.uint32))}, DtypeError, "they must agree"),
        ({4: 24}, IndexOutOfRange, "input_pos=24"),
        ({5: 0}, ShapeError, "q_heads=0"),
        ({8: -1}, ShapeError, "window=-1"),
        ({9: -1.0}, ShapeError, "softcap=-1"),
        ({10: Const(f32(16))}, ShapeError, "given together"),
        ({10: Const(f32(5)), 11: Const(f32(16))}, ShapeError, "q_norm must have 16"),
    ],
)
def test_refused(change, kind, text):
    c = case(1, (2, 1), 16, 9)
    for at, value in change.items():
        c.args[at] = value
    with pytest.raises(kind, match=text):
        check(c)
