"""4-bit weights for tests, quantized and packed by a route of the tests' own."""

import numpy as np


def quantized(n, k, group, seed=0):
    """Codes [N, K] and scales [N, G] of weights uniform in +-1/sqrt(K), absmax / 7.5."""
    rng = np.random.default_rng(seed)
    groups = -(-k // group)
    codes = np.empty((n, k), np.uint8)
    scales = np.empty((n, groups), np.float32)
    step = max(1, (1 << 22) // k)
    for start in range(0, n, step):
        rows = slice(start, min(n, start + step))
        w = rng.uniform(-1, 1, (rows.stop - start, k)).astype(np.float32) / np.float32(np.sqrt(k))
        for g in range(groups):
            part = w[:, g * group : (g + 1) * group]
            scale = np.abs(part).max(axis=1) / np.float32(7.5)
            scales[rows, g] = scale
            codes[rows, g * group : (g + 1) * group] = np.clip(
                np.rint(part / scale[:, None]) + 8, 0, 15
            )
    return codes, scales


def packed(codes, even_high=False, pad=0):
    """Two codes a byte; `pad` more bytes a row, of codes 8."""
    wide = np.pad(codes, ((0, 0), (0, codes.shape[1] % 2)), constant_values=8)
    first, second = wide[:, 0::2], wide[:, 1::2]
    done = first * 16 + second if even_high else first + second * 16
    return np.pad(done.astype(np.uint8), ((0, 0), (0, pad)), constant_values=0x88)


def transposed(scales, pad_to=4, fill=0.0):
    """Scales [G, N padded]; what fills the padding must not matter."""
    n = scales.shape[0]
    return np.pad(scales.T, ((0, 0), (0, -n % pad_to)), constant_values=fill)


def product(x, codes, scales, group):
    """x [..., K] times the weights, in float64, by row blocks."""
    n, k = codes.shape
    at = np.arange(k) // group
    flat = x.reshape(-1, k).astype(np.float64)
    out = np.empty((len(flat), n))
    step = max(1, (1 << 22) // k)
    for start in range(0, n, step):
        rows = slice(start, start + step)
        w = (codes[rows].astype(np.float64) - 8) * scales[rows][:, at].astype(np.float64)
        out[:, rows] = np.einsum("mk,nk->mn", flat, w, optimize=True)
    return out.reshape(*x.shape[:-1], n)


def ramp(shape, modulus=17, offset=8):
    """((i % modulus) - offset) / 16: exact in float32."""
    i = np.arange(int(np.prod(shape)))
    return (((i % modulus) - offset) / 16).astype(np.float32).reshape(shape)
