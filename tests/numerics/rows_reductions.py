"""Sums, extremes, softmax, norms, windows: many elements into one, and images resized."""

from dataclasses import replace
from math import inf, nan, prod

import numpy as np
from hypothesis import strategies as st

from numerics.bound import EXACT, Row, Sample, share
from numerics.rows_copies import a_dim, some_dims
from numerics.values import ANY, LARGEST, MILD, Floats, dims, edge
from ops.opcase import Const, In

SUMMED = Floats(-40, 40, special=(nan, inf, -inf, -0.0))
LOGITS = Floats(-30, 30, special=(nan, -inf, -LARGEST), denormal=True)
NORMED = Floats(-10, 40, special=(-0.0,), denormal=False)
GAINS = Floats(-4, 4, special=(0.0, -1.0), denormal=False)


def finite(size):
    return np.nan_to_num(size, nan=0, posinf=0, neginf=0)


def summed(draw, op):
    shape = dims(draw)
    x, chosen, keep = SUMMED(draw, shape), some_dims(draw, shape), draw(st.booleans())
    axes = tuple(chosen) or tuple(range(len(shape)))
    size = finite(abs(x.astype(np.float64))).sum(axis=axes, keepdims=keep)
    count = prod(shape[a] for a in axes)
    size = size * (8 + 2 * count**0.5) / (count if op == "aten.mean.dim" else 1)
    return Sample([In("x", x), chosen, keep], size)


def extreme(draw, op):
    shape = dims(draw)
    return Sample([In("x", ANY(draw, shape)), some_dims(draw, shape), draw(st.booleans())])


def placed(draw, op):
    """Few different numbers, so that many are equal."""
    shape = dims(draw, 1)
    x = ANY(draw, shape)
    if draw(st.booleans()):
        x = np.sign(x) * np.float32(2)
    return Sample([In("x", x), draw(st.sampled_from([None, a_dim(draw, shape)]))])


def softened(draw, op):
    shape = dims(draw, 1)
    dim, x = a_dim(draw, shape), LOGITS(draw, shape)
    if draw(st.integers(0, 3)) == 0:
        # Rows that a mask leaves nothing of: PyTorch gives NaN for -inf, equal shares for -FLT_MAX.
        x = np.full(shape, draw(st.sampled_from([-inf, -LARGEST, LARGEST])), np.float32)
    wide = x.astype(np.float64)
    with np.errstate(invalid="ignore"):
        below = finite(wide.max(axis=dim, keepdims=True) - wide)
    turns = 8 + shape[dim] ** 0.5
    if op == "aten._log_softmax.default":
        largest = finite(abs(wide)).max(axis=dim, keepdims=True)
        return Sample([In("x", x), dim, False], turns + 2 * below + 2 * largest * (below < 2**30))
    share_of = np.exp(-below) * (turns + 4 * np.minimum(below, 200))
    return Sample([In("x", x), dim, False], share_of + turns * 2.0**-30)


def rms_normed(draw, op):
    shape = dims(draw, 1, 3)
    x, weight = NORMED(draw, shape), GAINS(draw, shape[-1:])
    wide = x.astype(np.float64)
    eps = draw(st.sampled_from([1e-6, 1e-5, 2.0**-23]))
    size = abs(wide * weight) / np.sqrt((wide**2).mean(-1, keepdims=True) + eps)
    return Sample([In("x", x), Const(weight), eps], size * (4 + shape[-1] ** 0.5))


def centred_sizes(x, rows, weight, bias, eps):
    """What layer and group norm lose: their mean is as exact as the largest distance in a row."""
    wide = x.astype(np.float64).reshape(rows, -1)
    count = wide.shape[1]
    rstd = 1 / np.sqrt(wide.var(axis=1, keepdims=True) + eps)
    spread = abs(wide - wide[:, :1]).max(axis=1, keepdims=True)
    largest = abs(wide).max(axis=1, keepdims=True)
    turns = 8 + count**0.5
    # An error d of the mean moves every result by d * rstd, and the variance by d * spread.
    lost = spread * rstd
    y = (lost + lost**2) * turns * np.ones_like(wide)
    mean = (largest + spread * turns) * np.ones((rows, 1))
    return [
        y.reshape(x.shape) * abs(weight) + abs(bias),
        mean,
        rstd * (4 + turns * np.minimum(lost, 4) ** 2),
    ]


OFFSET = Floats(-4, 4, special=(0.0,), denormal=False)


def shifted(draw, shape):
    """Rows of a common height, which may be far above what they differ by."""
    x = OFFSET(draw, shape)
    return x + np.float32(draw(st.sampled_from([0, 0, 1, -100, 10000])))


def layer_normed(draw, op):
    shape = dims(draw, 1, 3)
    cut = draw(st.integers(1, len(shape)))
    inner = shape[-cut:]
    x, weight, bias = shifted(draw, shape), GAINS(draw, inner), GAINS(draw, inner)
    eps = draw(st.sampled_from([1e-6, 1e-5]))
    y, *stats = centred_sizes(x, prod(shape) // prod(inner), weight, bias, eps)
    lead = (*shape[:-cut], *[1] * cut)
    args = [In("x", x), list(inner), Const(weight), Const(bias), eps]
    return Sample(args, [y, *(s.reshape(lead) for s in stats)])


def group_normed(draw, op):
    n, group, per = edge(draw, 3), draw(st.integers(1, 4)), draw(st.integers(1, 3))
    shape = (n, group * per, edge(draw, 9), edge(draw, 9))
    x, weight, bias = shifted(draw, shape), GAINS(draw, shape[1:2]), GAINS(draw, shape[1:2])
    eps, each = 1e-5, (slice(None), None, None)
    y, *stats = centred_sizes(x, n * group, weight[each], bias[each], eps)
    args = [In("x", x), Const(weight), Const(bias), n, shape[1], prod(shape[2:]), group, eps]
    return Sample(args, [y, *(s.reshape(n, group) for s in stats)])


def batch_normed(draw, op):
    shape = (edge(draw, 3), edge(draw, 9), edge(draw, 9), edge(draw, 9))
    x = shifted(draw, shape)
    weight, bias, mean = (GAINS(draw, shape[1:2]) for _ in range(3))
    variance = replace(GAINS, positive=True, special=(0.0,))(draw, shape[1:2])
    eps, each = 1e-5, (slice(None), None, None)
    scale = (abs(weight) / np.sqrt(variance.astype(np.float64) + eps))[each]
    size = (abs(x) + abs(mean)[each]) * scale + abs(bias)[each]
    consts = [Const(a) for a in (weight, bias, mean, variance)]
    return Sample([In("x", x), *consts, 0.1, eps], size, outputs=(0,))


def window(draw, shape):
    """kernel, stride and padding that fit images of the shape."""
    kernel = [draw(st.integers(1, min(4, d))) for d in shape[-2:]]
    return [
        kernel,
        [draw(st.integers(1, 3)) for _ in range(2)],
        [draw(st.integers(0, k // 2)) for k in kernel],
    ]


def images(draw, numel=1500):
    return (edge(draw, 2), edge(draw, 5), *(edge(draw, 17) for _ in range(2)))


def averaged(draw, op):
    shape = images(draw)
    x = SUMMED(draw, shape)
    rest = [draw(st.booleans()), draw(st.booleans()), draw(st.sampled_from([None, 1, 3]))]
    kernel, stride, pad = window(draw, shape)
    cells = prod(kernel)
    divisor = rest[-1] or 1
    size = cells**2 / divisor * finite(abs(x)).max()
    return Sample([In("x", x), kernel, stride, pad, *rest], size)


def largest_of(draw, op):
    shape = images(draw)
    rest = [[1, 1], draw(st.booleans())]
    return Sample([In("x", ANY(draw, shape)), *window(draw, shape), *rest])


def resized(draw, op):
    shape = images(draw)
    x, size = MILD(draw, shape), [edge(draw, 33), edge(draw, 33)]
    if op == "aten.upsample_nearest2d.vec":
        return Sample([In("x", ANY(draw, shape)), size, None])
    # A place is f32(at) * in / out, good to an ulp of itself: the slope times that.
    span = 2 * abs(x).max() * max(shape[2:])
    return Sample([In("x", x), size, draw(st.booleans()), None], span)


def sampled(draw, op):
    n, c, height, width = images(draw)
    x = MILD(draw, (n, c, height, width))
    grid = Floats(-4, 1, special=(0.0, 1.0, -1.0, 1e4, -1e4), denormal=False)
    places = grid(draw, (n, edge(draw, 9), edge(draw, 9), 2))
    args = [0, draw(st.integers(0, 2)), draw(st.booleans())]
    far = np.maximum(abs(places).max(), 1)
    return Sample(
        [In("x", x), In("grid", places), *args], 8 * far * abs(x).max() * (height + width)
    )


CENTRED = (
    share(2, "(8 + √n) |w| (d + d²) + |b|, d = largest distance in a row / deviation"),
    share(2, "max|x| + (8 + √n) largest distance"),
    share(2, "(4 + (8 + √n) d²) rstd"),
)
ROWS = [
    Row(
        ("aten.sum.dim_IntList", "aten.mean.dim"),
        summed,
        share(1, "(8 + 2√n) Σ|x|; of the mean an n-th of it"),
        str(SUMMED),
        "as IEEE sums: NaN, and inf - inf, give NaN",
    ),
    Row(("aten.amax.default", "aten.amin.default"), extreme, EXACT, str(ANY), "NaN wins"),
    Row(
        ("aten.argmax.default", "aten.argmin.default"),
        placed,
        EXACT,
        str(ANY),
        "the first of equal ones, the first NaN before all",
    ),
    Row(
        ("aten._softmax.default",),
        softened,
        share(1, "y (8 + √n + 4 (max - x)), and 2^-54 (8 + √n)"),
        str(LOGITS),
        "NaN, inf or a row of -inf: a row of NaN; a row of -FLT_MAX: equal shares",
    ),
    Row(
        ("aten._log_softmax.default",),
        softened,
        share(1, "8 + √n + 2 (max - x) + 2 max|x|"),
        str(LOGITS),
        "as softmax; -inf beside finite ones: -inf",
    ),
    Row(
        ("et_vk.rms_norm.default",),
        rms_normed,
        share(1, "(4 + √n) |y|"),
        f"{NORMED}: squares and their sum must fit float32",
        "not promised",
    ),
    *(
        Row(ops, sample, CENTRED, "up to 2^5 around 0 to 10000", "not promised")
        for ops, sample in [
            (("aten.native_layer_norm.default",), layer_normed),
            (("aten.native_group_norm.default",), group_normed),
        ]
    ),
    Row(
        ("aten._native_batch_norm_legit_no_training.default",),
        batch_normed,
        share(4, "(|x| + |mean|) |w| / deviation + |b|"),
        str(GAINS),
        "not promised",
    ),
    Row(
        ("aten.avg_pool2d.default",),
        averaged,
        share(1, "n² max|x| / divisor, n cells a window"),
        str(SUMMED),
        "as IEEE sums",
    ),
    Row(
        ("aten.max_pool2d_with_indices.default",),
        largest_of,
        EXACT,
        str(ANY),
        "NaN wins; the index of the first of equal ones, of the last NaN",
    ),
    Row(("aten.upsample_nearest2d.vec",), resized, EXACT, str(ANY), "NaN stays NaN"),
    Row(
        ("aten.upsample_bilinear2d.vec",),
        resized,
        share(2, "2 max|x| max(H, W)"),
        str(MILD),
        "not promised",
    ),
    Row(
        ("aten.grid_sampler_2d.default",),
        sampled,
        share(1, "8 max|grid| max|x| (H + W)"),
        f"x: {MILD}; grid: up to 10000",
        "not promised",
    ),
]
