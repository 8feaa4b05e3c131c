"""Matrix products, convolutions and their gradients in float32."""

from math import inf, nan, prod

import numpy as np
from hypothesis import strategies as st

from numerics.bound import Row, Sample, share
from numerics.values import Floats, dims, edge
from ops.naive import convolved
from ops.opcase import Const, In

LEFT = Floats(-40, 40, special=(nan, inf, -inf, -0.0), denormal=False)
RIGHT = Floats(-40, 40, special=(-0.0,), denormal=False)
CLASSIC = "(K + 4) Σ|a b|"
"""What summing K products one after the other can lose at most, in units of 2^-24."""


def finite(x):
    return np.nan_to_num(abs(x.astype(np.float64)), nan=0, posinf=0)


def sizes(draw, most=2048):
    """M, K, N with the edges of tiles among them."""
    m, k = edge(draw, 129), edge(draw, 257)
    return m, k, edge(draw, max(1, min(129, most * 16 // (m * k))))


def multiplied(draw, op):
    m, k, n = sizes(draw)
    lead = (edge(draw, 3),) if op == "aten.bmm.default" else ()
    a, b = LEFT(draw, (*lead, m, k)), RIGHT(draw, (*lead, k, n))
    return Sample([In("a", a), In("b", b)], (k + 4) * (finite(a) @ finite(b)))


def linear(draw, op):
    (m, k, n), lead = sizes(draw), dims(draw, 0, 1, 3)
    x, w, bias = LEFT(draw, (*lead, m, k)), RIGHT(draw, (n, k)), RIGHT(draw, (n,))
    size = (k + 5) * (finite(x) @ finite(w).T + finite(bias))
    return Sample([In("x", x), Const(w), Const(bias)], size)


def added(draw, op):
    m, k, n = sizes(draw)
    c = RIGHT(draw, draw(st.sampled_from([(n,), (m, n)])))
    a, b = LEFT(draw, (m, k)), RIGHT(draw, (k, n))
    beta, alpha = (draw(st.sampled_from([0.0, 1.0, -0.5, 3.0])) for _ in range(2))
    size = (k + 6) * (abs(alpha) * (finite(a) @ finite(b)) + abs(beta) * finite(c))
    return Sample([In("c", c), In("a", a), In("b", b), beta, alpha], size)


def gradient(draw, op):
    m, k, n = sizes(draw)
    d_out, x = LEFT(draw, (m, n)), RIGHT(draw, (m, k))
    return Sample([In("d_out", d_out), In("x", x)], (m + 4) * (finite(d_out).T @ finite(x)))


def window(draw, signal):
    """kernel, stride, padding, dilation; a signal's first entries are 1 and 0."""
    one = 1 if signal else None
    kernel, stride, dilation = (
        (one or draw(st.integers(1, 4)), draw(st.integers(1, 4))) for _ in range(3)
    )
    return (
        kernel,
        stride,
        (0 if signal else draw(st.integers(0, 2)), draw(st.integers(0, 2))),
        dilation,
    )


def convolution(draw, op):
    clamped = op == "et_vk.conv_with_clamp.default"
    signal, transposed = not clamped and draw(st.booleans()), draw(st.integers(0, 3)) == 0
    groups = draw(st.sampled_from([1, 1, 2, 3]))
    per_in, per_out = edge(draw, 9), edge(draw, 9)
    channels, results = groups * per_in, groups * per_out
    kernel, stride, pad, dilation = window(draw, signal)
    spans = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    size = [1 if signal and i == 0 else spans[i] + edge(draw, 9) for i in (0, 1)]
    if transposed and any((size[i] - 1) * stride[i] - 2 * pad[i] + spans[i] < 1 for i in (0, 1)):
        pad = (0, 0)
    x = RIGHT(draw, (edge(draw, 3), channels, *size))
    w = RIGHT(draw, (results, per_in, *kernel))
    bias = RIGHT(draw, (results,))
    depth = prod((per_in, *kernel))
    measured = convolved(finite(x), finite(w), stride, pad, dilation, groups, (0, 0), transposed)
    measured = (depth + 5) * (measured + finite(bias)[:, None, None])
    stored = w
    if transposed:
        # [IC, OC / groups, ...]: channels of a group change places.
        stored = w.reshape(groups, per_out, per_in, *kernel).swapaxes(1, 2)
        stored = np.ascontiguousarray(stored.reshape(channels, per_out, *kernel))
    lists = [list(stride), list(pad), list(dilation)]
    if signal:
        x, stored, measured = (a.squeeze(2) for a in (x, stored, measured))
        lists = [values[1:] for values in lists]
    args = [In("x", x), Const(stored), Const(bias), *lists, transposed, [0] * len(lists[0]), groups]
    return Sample([*args, -1.5, 1e6] if clamped else args, measured)


def row(ops, sample, terms=CLASSIC, specials="NaN and ±inf reach their row only"):
    return Row(ops, sample, share(1, terms), f"{RIGHT}", specials)


ROWS = [
    row(("aten.mm.default", "aten.bmm.default"), multiplied),
    row(("aten.linear.default",), linear, "(K + 5) (Σ|x w| + |bias|)"),
    row(("aten.addmm.default",), added, "(K + 6) (|alpha| Σ|a b| + |beta c|)"),
    row(
        ("et_vk.linear_dW.default",),
        gradient,
        "(M + 4) Σ|d x|",
        "NaN and ±inf reach their column only",
    ),
    row(
        ("aten.convolution.default", "et_vk.conv_with_clamp.default"),
        convolution,
        "(K + 5) (Σ|x w| + |bias|), K products a result",
        "not promised",
    ),
]
