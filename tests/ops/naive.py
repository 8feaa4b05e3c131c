"""Convolution as its definition has it, for expected values: every input cell, every tap."""

from itertools import product

import numpy as np


def convolved(x, w, stride, pad, dilation, groups, out_pad=(0, 0), transposed=False):
    """[N, IC, H, W] by [OC, IC / groups, KH, KW], in w's dtype; transposed spreads every cell."""
    n, _, *size = x.shape
    oc, per_in, *kernel = w.shape
    spans = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    if transposed:
        results = [(size[i] - 1) * stride[i] - 2 * pad[i] + spans[i] + out_pad[i] for i in (0, 1)]
    else:
        results = [(size[i] + 2 * pad[i] - spans[i]) // stride[i] + 1 for i in (0, 1)]
    out = np.zeros((n, oc, *results), w.dtype)
    for o in range(oc):
        first = o // (oc // groups) * per_in
        taps = np.einsum("nchw,cij->nijhw", x[:, first : first + per_in], w[o])
        for i, j, h, v in product(*map(range, (*kernel, *size))):
            if transposed:
                oh = h * stride[0] + i * dilation[0] - pad[0]
                ow = v * stride[1] + j * dilation[1] - pad[1]
            else:
                oh, rest = divmod(h + pad[0] - i * dilation[0], stride[0])
                ow, other = divmod(v + pad[1] - j * dilation[1], stride[1])
                if rest or other:
                    continue
            if 0 <= oh < results[0] and 0 <= ow < results[1]:
                out[:, o, oh, ow] += taps[:, i, j, h, v]
    return out
