"""Which kernels a test's browser chooses: those of a GPU, or those of a software adapter."""

import contextlib

from ops.opcase import In, OpCase, check, distinct
from webgpu_py.ops.packed_kernels import INTEGER_DOT

EVERYWHERE = (INTEGER_DOT,)
"""What a GPU does without where only the kernels that run on any are to be chosen."""


@contextlib.contextmanager
def hardware_routes(gpu, without=()):
    """Kernels are chosen as for a GPU, `without` some features, on a software adapter too."""
    x = distinct((2,))
    check(OpCase("aten.add.Tensor", [In("x", x), In("y", x)], [2 * x]), gpu)
    bridge = f"import webgpu_py; bridge = webgpu_py._test_device_{gpu.kind}.bridge; "
    gpu.run(
        bridge + "bridge.info['software'] = False; bridge.all_features = bridge.features; "
        f"bridge.features -= {set(without)!r}; None"
    )
    try:
        yield
    finally:
        gpu.run(
            bridge + "bridge.info['software'] = True; bridge.features = bridge.all_features; None"
        )
