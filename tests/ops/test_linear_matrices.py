"""Packed linear layers of many rows on subgroup matrices, where the adapter has them."""

from dataclasses import replace

import numpy as np
import pytest

from ops.opcase import check_all
from ops.test_linear_extras import layer

TOLERANCE = 2e-3
"""Of the largest value: float16 factors."""


def loose(c):
    return replace(c, atol=TOLERANCE * float(np.abs(c.expected[0]).max()), rtol=0)


# Rows and columns that end within a tile, k within a turn of the loop; shared k and not.
CASES = [
    loose(c)
    for c in (
        *(
            layer(kind, 2050, 288, 129)
            for kind in ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "F16", "BF16", "F32")
        ),
        *(layer(kind, 2050, 512, 129) for kind in ("Q4_K", "Q5_K", "Q6_K")),
        layer("Q8_0", 2050, 32, 129, bias=True),
        layer("F16", 2050, 40, 129, residual=True),
        layer("F32", 2050, 40, 129, bias=True, residual=True),
        layer("Q4_1", 5300, 64, 50, norm=True, bias=True, gate="silu", residual=True),
        layer("Q4_0", 5300, 2048, 50, norm=True, bias=True, gate="gelu_tanh", residual=True),
        layer("Q4_1", 33000, 64, 70, norm=True, gate="silu", residual=True),
        layer("Q4_0", 43700, 32, 6, bias=True),
        layer("Q4_0", 2100, 64, 700, norm=True, residual=True),
    )
]


async def features(kind):
    import webgpu_py as wg

    device = await wg.request_device(kind)
    found = sorted(device.features)
    await device.close()
    return found


@pytest.mark.slow
def test_agrees_with_float64(gpu):
    if "chromium-experimental-subgroup-matrix" not in gpu.call(features, kind=gpu.kind):
        pytest.skip("this adapter offers no subgroup matrices of 16 by 16 float16")
    check_all(CASES, gpu)
