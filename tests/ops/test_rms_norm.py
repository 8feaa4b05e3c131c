"""et_vk.rms_norm: widths around the workgroup, many rows, live shapes, errors."""

import numpy as np
import pytest

from ops.opcase import Const, In, OpCase, check, check_all, distinct
from ops.routes import hardware_routes
from webgpu_py import DtypeError, ShapeError, UnsupportedOperator

NAME = "et_vk.rms_norm.default"
EPS = 1e-6


def expected(x, w, eps=EPS):
    wide = x.astype(np.float64)
    return wide * (1 / np.sqrt((wide * wide).mean(-1, keepdims=True) + eps)) * w.reshape(-1)


def case(dims, limits=None, w=None, x=None, eps=EPS):
    x = np.linspace(-1, 1, int(np.prod(dims)), dtype=np.float32).reshape(dims) if x is None else x
    w = np.linspace(0.5, 1.5, dims[-1], dtype=np.float32) if w is None else w
    want = expected(x, w, np.finfo(np.float32).eps if eps is None else eps)
    return OpCase(NAME, [In("x", x), Const(w), eps], [want], limits=limits)


def rows_of_their_own_size():
    return distinct((1, 1, 5, 256)) * (10.0 ** np.arange(-2, 3, dtype=np.float32))[:, None]


def live_case():
    w = distinct((64,), 9)

    def step(n):
        x = distinct((1, 1, n, 64), n)
        return {"x": x}, [expected(x, w)]

    first, want = step(128)
    args = [In("x", first["x"], (1, 1, 128, 64)), Const(w, prepack=True), EPS]
    return OpCase(NAME, args, want, [step(n) for n in (1, 64, 8, 128)])


CASES = [
    case((1, 1, 7, 896)),
    *(case((3, n)) for n in (2, 32, 63, 64, 65, 100, 130, 255, 257, 513)),
    case((1, 1), w=np.array([1.3], np.float32), x=np.array([[0.7]], np.float32)),
    case((5,)),
    case((1, 5, 4, 128)),
    case((1, 1, 5, 256), x=rows_of_their_own_size()),
    case((2, 4), x=np.zeros((2, 4), np.float32)),
    case((1, 2048)),
    case((3, 128), eps=None, x=distinct((3, 128), 3, -1e-4, 1e-4)),
    case((3, 128), eps=1),
    case((2, 8), w=distinct((1, 1, 8), 4)),
    case((13, 5), {"max_compute_workgroups_per_dimension": 4}),
    *(case((3, 70), {"max_compute_invocations_per_workgroup": w}) for w in (1, 32, 64, 128)),
    live_case(),
]


@pytest.mark.parametrize("c", CASES, ids=str)
def test_cpu(c):
    check(c)


def test_browser(gpu):
    check_all(CASES, gpu)


def test_browser_with_the_kernels_of_a_gpu(gpu):
    one_row = [case((1, 1, n)) for n in (1, 3, 4, 100, 576, 1030, 2048)]
    with hardware_routes(gpu):
        check_all([*CASES, *one_row], gpu)


@pytest.mark.slow
def test_browser_large(gpu):
    check_all([case((1, 1, 1024, 64)), case((2, 4096)), case((2, 8192)), case((70000, 8))], gpu)


@pytest.mark.parametrize(
    ("x", "w", "eps", "kind", "text"),
    [
        (distinct(()), distinct((1,)), EPS, ShapeError, "scalar"),
        (distinct((2, 8)), distinct((7,)), EPS, ShapeError, "weight has 7 elements"),
        (distinct((2, 8)), distinct((2, 8)), EPS, ShapeError, "weight has 16 elements"),
        (np.zeros((2, 8), np.int32), distinct((8,)), EPS, DtypeError, "x is int32"),
        (distinct((2, 8)), np.zeros(8, np.int32), EPS, DtypeError, "weight is int32"),
        (distinct((2, 8)), distinct((8,)), "1", UnsupportedOperator, "must be a number"),
    ],
)
def test_refused_before_any_buffer(x, w, eps, kind, text):
    with pytest.raises(kind, match=text) as caught:
        check(OpCase(NAME, [In("x", x), Const(w), eps], []))
    assert "[buffers created: 0]" in str(caught.value)
