"""linear_q4gsw_backward, linear_dW, q4gsw_requant: every route, odd sizes, bytes exact, errors."""

import numpy as np
import pytest

from ops.opcase import Const, In, OpCase, check, check_all, distinct
from ops.q4case import packed, quantized, transposed
from ops.routes import hardware_routes
from webgpu_py import DtypeError, ShapeError, UnsupportedOperator

BACKWARD = "et_vk.linear_q4gsw_backward.default"
DW = "et_vk.linear_dW.default"
REQUANT = "et_vk.q4gsw_requant.default"
WIDTHS = [{"max_compute_invocations_per_workgroup": w} for w in (1, 32, 64, 128)]
SMALL_GRID = {"max_compute_workgroups_per_dimension": 4}


def backward(dims, k, group, live=(), limits=None):
    n = dims[-1]
    codes, scales = quantized(n, k, group, 7)
    values = (codes.astype(np.float64) - 8) * np.repeat(scales, group, 1)[:, :k]

    def expected(d):
        total = np.zeros((*d.shape[:-1], k))
        for i in range(n):
            total += d[..., i : i + 1].astype(np.float64) * values[i]
        return total

    d = distinct(dims, 1)
    args = [In("d", d, dims if live else None), Const(packed(codes), prepack=True)]
    args += [Const(transposed(scales, fill=np.nan)), group]
    runs = [{"d": distinct((m, n), m)} for m in live]
    runs = [(r, [expected(r["d"])]) for r in runs]
    return OpCase(BACKWARD, args, [expected(d)], runs, limits=limits)


def dweight(lead, n, k, live=(), limits=None):
    d, x = distinct((*lead, n), 1), distinct((*lead, k), 2)

    def expected(d, x):
        rows = zip(d.reshape(-1, n), x.reshape(-1, k), strict=True)
        return sum(np.outer(a.astype(np.float64), b) for a, b in rows)

    args = [In("d", d, d.shape if live else None), In("x", x, x.shape if live else None)]
    runs = [{"d": distinct((m, n), m), "x": distinct((m, k), m + 1)} for m in live]
    runs = [(r, [expected(r["d"], r["x"])]) for r in runs]
    return OpCase(DW, args, [expected(d, x)], runs, limits=limits)


def codes_of(latent, scales, group):
    """One element at a time: a float32 quotient, then Python's round, which is half to even."""
    n, k = latent.shape
    codes = np.zeros((n, k + k % 2), np.uint8)
    for i, j in np.ndindex(n, k):
        scale = scales[j // group, i]
        steps = round(float(latent[i, j] / scale)) if scale else 0
        codes[i, j] = min(max(steps, -8), 7) + 8
    return codes[:, 0::2] | codes[:, 1::2] << 4


def requant(latent, scales, group, limits=None):
    args = [In("latent", latent), Const(scales), group]
    return OpCase(REQUANT, args, [codes_of(latent, scales, group)], limits=limits)


def latents(n, k, group, seed=0):
    """Values on, between and beside codes, some far outside; scales of 0 and negative ones."""
    rng = np.random.default_rng(seed)
    groups = -(-k // group)
    scales = rng.uniform(0.001, 0.3, (groups, -(-n // 4) * 4)).astype(np.float32)
    scales[:, 1::3] *= -1
    scales[0, 0] = 0
    by_row = np.repeat(scales[:, :n].T, group, axis=1)[:, :k]
    halves = (rng.integers(-20, 20, (n, k)) * np.float32(0.5)).astype(np.float32)
    latent = halves * by_row
    nudged = rng.integers(-2, 3, (n, k))
    for step in (-2, -1, 1, 2):
        toward = np.float32(np.sign(step) * np.inf)
        moved = np.nextafter(latent, toward, dtype=np.float32)
        moved = np.nextafter(moved, toward, dtype=np.float32) if abs(step) == 2 else moved
        latent = np.where(nudged == step, moved, latent)
    latent[n // 2, : k // 2] = rng.uniform(-3, 3, k // 2)
    return latent, scales


BACKWARD_CASES = [
    backward((1, 16), 32, 32),
    backward((3, 5, 7), 10, 8),
    backward((20, 33), 72, 24),
    backward((9, 12), 2, 16),
    backward((8,), 64, 32),
    backward((40, 8), 70, 32, limits=SMALL_GRID),
    backward((2, 8), 70, 32, limits={**SMALL_GRID, **WIDTHS[2]}),
    *(backward((m, 20), 40, 16, limits=w) for w in WIDTHS[1:] for m in (2, 12)),
    backward((3, 20), 10, 16, limits=WIDTHS[0]),
    backward((32, 12), 24, 8, live=(1, 32, 7, 12)),
]
DW_CASES = [
    dweight((13,), 10, 18),
    dweight((2, 3), 5, 7),
    dweight((), 3, 4),
    dweight((1,), 1, 1),
    dweight((20,), 33, 40),
    dweight((7,), 70, 3),
    dweight((9,), 40, 40, limits=SMALL_GRID),
    *(dweight((5,), 12, 20, limits=w) for w in WIDTHS),
    dweight((16,), 12, 20, live=(1, 16, 5)),
]


def live_requant():
    sizes = [(8, 30), (1, 3), (8, 30), (5, 17)]
    cases = [requant(*latents(*s, 16, s[0]), 16) for s in sizes]
    c = cases[0]
    scales = [In("scales", d.args[1].array, d.args[1].array.shape) for d in cases]
    c.args[0].max_dims, c.args[1] = sizes[0], scales[0]
    c.runs = [
        ({"latent": d.args[0].array, "scales": s.array}, d.expected)
        for d, s in zip(cases[1:], scales[1:], strict=True)
    ]
    return c


CASES = [
    *BACKWARD_CASES,
    *DW_CASES,
    requant(*latents(6, 129, 64, 1), 64),
    live_requant(),
    requant(*latents(5, 32, 8, 2), 8),
    requant(*latents(1, 1, 32, 3), 32),
    requant(*latents(3, 7, 4, 4), 4),
    requant(*latents(8, 64, 16, 5), 16, {**SMALL_GRID, **WIDTHS[1]}),
    *(requant(*latents(4, 20, 8, 6), 8, w) for w in WIDTHS),
]


@pytest.mark.parametrize("c", CASES, ids=str)
def test_cpu(c):
    check(c)


def test_browser(gpu):
    check_all(CASES, gpu)


def test_browser_hardware_routes(gpu):
    with hardware_routes(gpu):
        check_all((*BACKWARD_CASES[:6], BACKWARD_CASES[-1], *DW_CASES[:3], DW_CASES[4]), gpu)


def test_browser_every_tie(gpu):
    """Tens of thousands of quotients on and beside the middle between two codes."""
    check(requant(*latents(64, 512, 32, 7), 32), gpu)


@pytest.mark.slow
def test_browser_large(gpu):
    with hardware_routes(gpu):
        large(gpu)


def large(gpu):
    for dims, k in (((1, 2048), 2048), ((1, 2048), 8192), ((112, 512), 2048)):
        c = backward(dims, k, 64)
        c.atol = 5e-4
        check(c, gpu)
    c = dweight((112,), 512, 2048)
    c.atol = 5e-4
    check(c, gpu)


def byte(*dims):
    return np.zeros(dims, np.uint8)


@pytest.mark.parametrize(
    ("op", "args", "kind", "text"),
    [
        (BACKWARD, [distinct((2, 3)), byte(4, 8), distinct((1, 4)), 16], ShapeError, "d_out"),
        (BACKWARD, [distinct((2, 4)), byte(4, 8), distinct((1, 3)), 16], ShapeError, "scales"),
        (BACKWARD, [distinct((2, 4)), byte(4, 8), distinct((1, 4)), 8], ShapeError, "G >= 2"),
        (BACKWARD, [distinct((2, 4)), byte(4, 8), distinct((1, 4)), 0], UnsupportedOperator, "=0"),
        (BACKWARD, [distinct((2, 4)), distinct((4, 8)), distinct((1, 4)), 8], DtypeError, "weight"),
        (DW, [distinct((2, 3)), distinct((3, 4))], ShapeError, r"\[..., N\] and \[..., K\]"),
        (DW, [np.ones((2, 3), np.int32), distinct((2, 4))], DtypeError, "d_out is int32"),
        (REQUANT, [distinct((4,)), distinct((1, 4)), 8], ShapeError, r"must be \[N, K\]"),
        (REQUANT, [distinct((4, 8)), distinct((1, 3)), 8], ShapeError, "N >= 4"),
        (REQUANT, [distinct((4, 8)), distinct((1, 4)), -1], UnsupportedOperator, "group_size=-1"),
    ],
)
def test_refused_before_any_buffer(op, args, kind, text):
    made = [In(f"t{i}", a) if isinstance(a, np.ndarray) else a for i, a in enumerate(args)]
    with pytest.raises(kind, match=text) as caught:
        check(OpCase(op, made, []))
    assert "[buffers created: 0]" in str(caught.value)
