"""Packed linear layers of many rows on subgroup matrices, where the adapter has them."""

from dataclasses import replace

import numpy as np
import pytest

from ops.opcase import check_all
from ops.routes import hardware_routes
from ops.test_linear_extras import layer
from webgpu_py.ops.packed_kernels import MATRICES

TOLERANCE = {"float16": 2e-3, "int8": 3e-4}
"""Of the largest value: factors of 11 and of 16 bits."""


def loose(c, kind="float16"):
    return replace(c, atol=TOLERANCE[kind] * float(np.abs(c.expected[0]).max()), rtol=0)


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


# The same with 16, 32, 64 and 128 rows a tile: 2^26 products are the least that are worth it.
INT8_CASES = [
    loose(c, "int8")
    for c in (
        *(layer(kind, 2050, 288, 129) for kind in ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0")),
        *(layer(kind, 2050, 512, 129) for kind in ("Q4_K", "Q5_K", "Q6_K")),
        layer("Q4_0", 16500, 800, 6, bias=True),
        layer("Q8_0", 26001, 160, 17, norm=True),
        layer("Q4_1", 8200, 352, 33, norm=True, bias=True, gate="silu", residual=True),
        layer("Q4_0", 4200, 2048, 9, norm=True, bias=True, gate="gelu_tanh", residual=True),
        layer("Q4_K", 2100, 256, 700, norm=True, residual=True),
    )
]


async def features(kind):
    import webgpu_py as wg

    device = await wg.request_device(kind)
    found = sorted(device.features)
    await device.close()
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "cases"), [("float16", CASES), ("int8", INT8_CASES)])
def test_agrees_with_float64(gpu, kind, cases):
    found = gpu.call(features, kind=gpu.kind)
    if MATRICES not in found or (kind == "float16" and "shader-f16" not in found):
        pytest.skip(f"this adapter offers no subgroup matrices of 16 by 16 {kind}")
    with hardware_routes(gpu, () if kind == "float16" else ("shader-f16",)):
        check_all(cases, gpu)
