"""What a packed linear layer does beside its product: norm, bias, gate, residual."""

import numpy as np
import pytest

from ops.opcase import Const, In, OpCase, check, check_all, distinct, run
from ops.routes import EVERYWHERE, hardware_routes
from ops.test_linear_packed import SUFFIX, of, weight_args
from webgpu_py import ShapeError, UnsupportedOperator


def activated(kind, gate):
    if kind == "silu":
        return gate / (1 + np.exp(-gate))
    inner = np.sqrt(2 / np.pi) * (gate + 0.044715 * gate**3)
    return 0.5 * gate * (1 + np.tanh(inner))


def layer(kind, n, k, m, norm=False, bias=False, gate=None, residual=False, limits=None):
    weight, values = of(kind, n, k)
    x = distinct((m, k), m)
    args = [In("x", x), *weight_args(weight.layout, weight.codes, weight.scales)]
    u = x.astype(np.float64)
    extras = [None, None, 1e-5, gate, None]
    if norm:
        extras[1] = Const(1 + distinct((k,), 7))
        u = u / np.sqrt(np.mean(u**2, axis=1, keepdims=True) + 1e-5) * extras[1].array
    scale = float(np.abs(values).max() * np.abs(u).max()) * np.sqrt(k)
    u = u @ values.T.astype(np.float64)
    if bias:
        extras[0] = Const(distinct((n,), 2))
        u = u + extras[0].array
    if gate:
        u = activated(gate, u[:, : n // 2]) * u[:, n // 2 :]
        scale *= 1 + scale
    if residual:
        extras[4] = In("residual", distinct(u.shape, 3))
        u = u + extras[4].array
    op = f"webgpu_py.linear_{SUFFIX[weight.layout.codes]}"
    return OpCase(op, [*args, *extras], [u], limits=limits, atol=4e-6 * scale, rtol=2e-5)


SMALL = {"max_storage_buffer_binding_size": 16384}
CASES = [
    *(layer(kind, 38, 512, 1, norm=True) for kind in ("Q4_0", "Q4_1", "Q8_0", "Q6_K", "F16")),
    layer("Q4_0", 38, 96, 3, norm=True, bias=True, residual=True),
    layer("Q4_1", 38, 96, 1, norm=True, gate="silu"),
    layer("Q4_1", 37, 64, 2, residual=True),
    layer("Q8_0", 38, 96, 2, bias=True, gate="gelu_tanh", residual=True),
    layer("Q8_0", 38, 96, 5, bias=True, gate="silu"),
    layer("F16", 38, 96, 1, norm=True, bias=True, gate="gelu_tanh", residual=True),
    layer("F16", 38, 7, 5, norm=True, bias=True, gate="silu", residual=True),
    layer("Q4_1", 134, 64, 34, norm=True, bias=True, gate="silu", residual=True),
    layer("Q4_0", 130, 64, 70, gate="gelu_tanh"),
    layer("Q8_0", 70, 64, 70, norm=True, residual=True),
    layer("Q4_1", 1200, 64, 2, norm=True, gate="silu", residual=True, limits=SMALL),
]


@pytest.mark.parametrize("c", CASES, ids=str)
def test_cpu(c):
    check(c)


def test_browser(gpu):
    check_all(CASES, gpu)


@pytest.mark.parametrize("without", [(), EVERYWHERE])
def test_browser_with_the_kernels_of_a_gpu(gpu, without):
    with hardware_routes(gpu, without):
        check_all(CASES, gpu)


@pytest.mark.parametrize(
    ("change", "kind", "text"),
    [
        ({6: "relu"}, UnsupportedOperator, "gate 'relu'"),
        ({4: Const(np.ones(5, np.float32))}, ShapeError, "norm has 5 elements"),
        ({7: In("r", np.ones((2, 5), np.float32))}, ShapeError, "residual is"),
    ],
)
def test_refused(change, kind, text):
    c = layer("F16", 4, 8, 2)
    for at, value in change.items():
        c.args[at] = value
    with pytest.raises(kind, match=text):
        check(c)


def test_gate_needs_two_halves():
    c = layer("F16", 5, 8, 2)
    c.args[6] = "silu"
    with pytest.raises(ShapeError, match="5 rows, must be even"):
        check(c)


LONG = [
    layer("Q4_1", 70, 1024, 20, norm=True, bias=True, gate="silu", residual=True),
    layer("F32", 67, 260, 70, bias=True, residual=True),
    layer("Q6_K", 67, 1024, 40),
]


def test_shared_k(gpu):
    with hardware_routes(gpu):
        check_all(LONG, gpu)


def test_sets_of_four_columns(gpu):
    with hardware_routes(gpu):
        check(layer("Q4_0", 16402, 1024, 1, norm=True), gpu)
        # Sets of 4 columns with a gate, and four lanes a column.
        check(layer("Q4_0", 16402, 1024, 1, True, True, "silu", True), gpu)
        check(layer("Q4_0", 16390, 576, 1, norm=True), gpu)


def test_integer_dot_products_of_what_is_not_finite_or_very_small(gpu):
    c = layer("Q4_0", 38, 512, 4)
    x = c.args[0].array.copy()
    x[1, 5], x[2, 300] = np.nan, np.inf
    x[3] *= 2.0**-110
    c.args[0] = In("x", x)
    with hardware_routes(gpu):
        ((found,),) = run(c, gpu)
    assert not np.isfinite(found[1:3]).any(), "a NaN and an infinity reach their whole row"
    exact = c.expected[0]
    assert np.abs(found[0] - exact[0]).max() <= 1e-6 * np.abs(exact).max()
    # Numbers of 32 that are all below 2^-100 are rounded to 2^-123 or so.
    _, weight = of("Q4_0", 38, 512)
    assert np.abs(found[3] - exact[3] * 2.0**-110).max() <= 2.0**-123 * np.abs(weight).sum(1).max()
