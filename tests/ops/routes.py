"""Which kernels a test's browser chooses: those of a GPU, or those of a software adapter."""

import contextlib

from ops.opcase import In, OpCase, check, distinct


@contextlib.contextmanager
def hardware_routes(gpu):
    """Kernels are chosen as for a GPU although the adapter is software."""
    x = distinct((2,))
    check(OpCase("aten.add.Tensor", [In("x", x), In("y", x)], [2 * x]), gpu)
    device = f"_test_device_{gpu.kind}"
    say = f"import webgpu_py; webgpu_py.{device}.bridge.info['software'] = {{}}; None"
    gpu.run(say.format(False))
    try:
        yield
    finally:
        gpu.run(say.format(True))
