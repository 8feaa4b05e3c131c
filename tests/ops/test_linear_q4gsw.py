"""et_vk.linear_q4gsw and linear_qcs4w: every kernel, odd shapes, the spec's layers, errors."""

import numpy as np
import pytest

from ops.opcase import Const, In, OpCase, check, check_all, distinct
from ops.q4case import packed, product, quantized, ramp, transposed
from ops.routes import hardware_routes
from webgpu_py import DtypeError, ShapeError, UnsupportedOperator
from webgpu_py.graph.limits import Limits
from webgpu_py.graph.values import TensorSpec
from webgpu_py.ops.packed import PackedMatrix
from webgpu_py.ops.packed_route import MATRIX_FEATURES, choose

OP = "et_vk.linear_q4gsw.default"
ONE_A_DIMENSION = {"max_compute_workgroups_per_dimension": 4}


def case(m, k, n, group=32, *, x=None, bias=0, pad=0, limits=None, tolerance=(1e-4, 1e-3)):
    codes, scales = quantized(n, k, group, seed=m + k + n)
    x = distinct((m, k), seed=m) if x is None else x
    want = product(x, codes, scales, group)
    extra = []
    if bias:
        extra = [Const(distinct((n + bias - 1,), 5))]
        want = want + extra[0].array[:n]
    weight = Const(packed(codes, pad=pad))
    args = [In("x", x), weight, Const(transposed(scales, fill=1e30)), group, *extra]
    return OpCase(OP, args, [want], limits=limits, atol=tolerance[0], rtol=tolerance[1])


def live_case(k, n, group, most, sizes):
    codes, scales = quantized(n, k, group, seed=k)
    xs = [distinct((m, k), seed=m) for m in sizes]
    wants = [[product(x, codes, scales, group)] for x in xs]
    args = [In("x", xs[0], (most, k)), Const(packed(codes)), Const(transposed(scales)), group]
    runs = [({"x": x}, want) for x, want in zip(xs[1:], wants[1:], strict=True)]
    return OpCase(OP, args, wants[0], runs, atol=1e-4, rtol=1e-3)


def qcs4w_case(m, k, n):
    codes, scales = quantized(n, k, k, seed=m + k + n)
    x = distinct((m, k), seed=m)
    want = product(x, codes, scales, k)
    return OpCase(
        "et_vk.linear_qcs4w.default",
        [In("x", x), Const(packed(codes, even_high=True)), Const(scales[:, 0])],
        [want],
        atol=1e-4,
        rtol=1e-3,
    )


WIDTHS = (1, 32, 64, 128, 256)
VECTORS = [
    case(1, 64, 7, 16),
    case(1, 96, 66, 32, bias=1),
    case(6, 64, 70, 16, bias=1),
    case(17, 64, 70, 8, bias=1),
    case(33, 96, 65, 32),
    case(65, 64, 130, 64, bias=2),
    case(2, 96, 12, 32, x=distinct((2, 3, 96), 4)),
    case(1, 64, 60, 32, limits=ONE_A_DIMENSION),
    case(70, 64, 200, 32, limits=ONE_A_DIMENSION),
    *(case(1, 128, 37, limits={"max_compute_invocations_per_workgroup": w}) for w in WIDTHS),
    *(case(19, 128, 37, limits={"max_compute_invocations_per_workgroup": w}) for w in (1, 32)),
    case(2, 64, 700, 32, limits={"max_storage_buffer_binding_size": 8192}),
    case(300, 32, 8, 8, limits={"max_storage_buffer_binding_size": 8192}),
    live_case(64, 40, 32, 40, (40, 3, 1, 33, 40)),
    qcs4w_case(1, 32, 16),
    qcs4w_case(2, 64, 8),
    qcs4w_case(40, 96, 5),
]
SMALL = [
    case(1, 1, 1),
    case(1, 5, 3, 2),
    case(2, 7, 9, 3),
    case(3, 8, 4, 8, bias=1),
    case(5, 33, 13, 32, bias=4),
    case(1, 36, 5, 32, pad=2),
    case(4, 72, 17, 24),
    case(3, 48, 10, 1000),
    case(1, 96, 12, 32, x=distinct((96,), 4)),
    case(33, 40, 64, 32, limits=ONE_A_DIMENSION | {"max_compute_invocations_per_workgroup": 64}),
    *(case(5, 40, 13, limits={"max_compute_invocations_per_workgroup": w}) for w in WIDTHS),
    live_case(72, 20, 24, 12, (12, 1, 5)),
    qcs4w_case(3, 33, 31),
    qcs4w_case(4, 40, 16),
]

LAYERS = {
    "q_proj": (1, 2048, 2048),
    "kv_proj": (1, 2048, 512),
    "gate_proj": (1, 2048, 8192),
    "down_proj": (1, 8192, 2048),
}
BIG = {
    "lm_head": (1, 2048, 128256),
    "q_proj_4k": (4096, 2048, 2048),
    "kv_proj_4k": (4096, 2048, 512),
    "q_proj_8k": (8192, 2048, 2048),
    "kv_proj_8k": (8192, 2048, 512),
    "steel": (96, 2048, 256),
    "gate_proj_pf": (128, 2048, 8192),
    "down_proj_pf": (128, 8192, 2048),
    "shmem_edge": (130, 4096, 2056),
    "tall_edge": (100, 1024, 956),
}


def layer(m, k, n, group=32):
    tolerance = (1e-3, 1e-2) if k == 8192 else (1e-4, 1e-3)
    return case(m, k, n, group, x=ramp((m, k)), tolerance=tolerance)


@pytest.mark.parametrize("c", SMALL + VECTORS, ids=str)
def test_cpu(c):
    check(c)


@pytest.mark.parametrize("name", LAYERS)
def test_layer_on_cpu(name):
    check(layer(*LAYERS[name]))


def test_browser(gpu):
    check_all(SMALL + VECTORS, gpu)


def test_browser_with_the_kernels_of_a_gpu(gpu):
    with hardware_routes(gpu):
        check_all(VECTORS, gpu)


@pytest.mark.parametrize("name", LAYERS)
def test_layer(gpu, name):
    c = layer(*LAYERS[name])
    check(c, gpu)
    with hardware_routes(gpu):
        check(c, gpu)


@pytest.mark.slow
@pytest.mark.parametrize("name", BIG)
def test_big_layer(gpu, name):
    check(layer(*BIG[name]), gpu)


@pytest.mark.slow
@pytest.mark.parametrize("group", [64, 8])
def test_big_layer_of_other_groups(gpu, group):
    check(layer(96, 2048, 256, group), gpu)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["steel", "shmem_edge", "tall_edge"])
def test_big_layer_with_the_kernels_of_a_gpu(gpu, name):
    with hardware_routes(gpu):
        check(layer(*BIG[name]), gpu)


@pytest.mark.slow
@pytest.mark.parametrize(("k", "n", "group"), [(64, 128, 32), (72, 2048, 24), (72, 128, 24)])
def test_dynamic_rows(gpu, k, n, group):
    c = live_case(k, n, group, 128, (128, 32, 1, 128))
    check(c, gpu)
    with hardware_routes(gpu):
        check(c, gpu)


def matrix(k=2048, n=64, group=32, row_bytes=None):
    ref = type("Ref", (), {"max_spec": TensorSpec("uint8", (n, k // 2))})()
    row_bytes = (k + 1) // 2 if row_bytes is None else row_bytes
    return PackedMatrix(ref, ref, n, k, "u4", "f32", group, 8, row_bytes, 1, n, False)


@pytest.mark.parametrize(
    ("weight", "m", "limits", "kernel"),
    [
        (matrix(), 1, {}, "packed_gemv"),
        (matrix(), 17, {}, "packed_gemm"),
        (matrix(k=36), 1, {}, "packed_any"),
        (matrix(k=33), 50, {}, "packed_any"),
        (matrix(group=12), 1, {}, "packed_any"),
        (matrix(group=24), 1, {}, "packed_gemv"),
        (matrix(group=5000), 1, {}, "packed_gemv"),
        (matrix(), 1, {"max_compute_invocations_per_workgroup": 2}, "packed_any"),
        (matrix(), 19, {"max_compute_invocations_per_workgroup": 32}, "packed_gemv"),
        (matrix(), 19, {"max_compute_workgroup_storage_size": 4096}, "packed_any"),
    ],
)
def test_choice(weight, m, limits, kernel):
    found = Limits().capped(limits)
    for features in ((), ("subgroups",), tuple(MATRIX_FEATURES)):
        assert choose(weight, m, found, False, frozenset(features)).kernel == kernel
    assert choose(weight, m, found, True, frozenset()).kernel == kernel


@pytest.mark.parametrize(
    ("weight", "m", "limits", "rows", "width"),
    [
        (matrix(), 1, {}, 1, 4),
        (matrix(), 2, {}, 1, 4),
        (matrix(), 3, {"max_compute_workgroup_storage_size": 1}, 8, 4),
        (matrix(), 9, {}, 16, 4),
        (matrix(n=1000), 512, {"max_compute_workgroups_per_dimension": 4}, 16, 256),
        (matrix(n=1000), 8, {"max_compute_workgroups_per_dimension": 4}, 8, 8),
    ],
)
def test_choice_on_the_cpu(weight, m, limits, rows, width):
    route = choose(weight, m, Limits().capped(limits), True, frozenset({"subgroups"}))
    assert route.kernel == ("packed_row_subgroup" if rows == 1 else "packed_block_subgroup")
    assert (route.rows, route.constants["wg_size"]) == (rows, width)


def test_choice_on_the_cpu_of_what_blocks_cannot_do():
    for weight, limits in [(matrix(k=36), {}), (matrix(), {"max_compute_workgroup_size_x": 2})]:
        route = choose(weight, 9, Limits().capped(limits), True, frozenset({"subgroups"}))
        assert route.kernel == "packed_any"


@pytest.mark.parametrize(
    ("weight", "m", "limits", "kernel"),
    [
        (matrix(n=2048), 128, {}, "packed_gemm_matrix"),
        (matrix(n=2048), 127, {}, "packed_gemm"),
        (matrix(n=1 << 17), 5, {}, "packed_gemm_matrix"),
        (matrix(n=1 << 18), 4, {}, "packed_gemv"),
        (matrix(n=2048, k=36), 128, {}, "packed_any"),
        (matrix(n=2048), 128, {"max_compute_workgroup_storage_size": 32767}, "packed_gemm"),
        (matrix(n=2048), 128, {"max_compute_invocations_per_workgroup": 256}, "packed_gemm"),
    ],
)
def test_choice_with_subgroup_matrices(weight, m, limits, kernel):
    room = {
        "max_compute_workgroup_storage_size": 49152,
        "max_compute_invocations_per_workgroup": 1024,
        "max_compute_workgroup_size_x": 1024,
    }
    found = Limits(**room).capped(limits)
    assert choose(weight, m, found, False, MATRIX_FEATURES).kernel == kernel
    for feature in MATRIX_FEATURES:
        without = choose(weight, m, found, False, MATRIX_FEATURES - {feature})
        assert without.kernel == kernel.removesuffix("_matrix")


def zeros(dtype):
    return lambda dims: np.zeros(dims, dtype)


U8, F32, I32 = zeros(np.uint8), zeros(np.float32), zeros(np.int32)


@pytest.mark.parametrize(
    ("x", "weight", "scales", "group", "bias", "kind", "text"),
    [
        (F32((2, 8)), U8((3, 4)), F32((1, 4)), 8, (I32((3,)),), DtypeError, "bias is int32"),
        (I32((2, 8)), U8((3, 4)), F32((1, 4)), 8, (), DtypeError, "x is int32"),
        (F32((2, 8)), F32((3, 4)), F32((1, 4)), 8, (), DtypeError, "weight is float32"),
        (F32((2, 8)), U8((3, 4)), I32((1, 4)), 8, (), DtypeError, "scales is int32"),
        (F32(()), U8((3, 4)), F32((1, 4)), 8, (), ShapeError, "x has rank 0"),
        (F32((2, 8)), U8((12,)), F32((1, 4)), 8, (), ShapeError, "weight has rank 1"),
        (F32((2, 8)), U8((3, 5)), F32((1, 4)), 8, (), ShapeError, "5 bytes"),
        (F32((2, 8)), U8((3, 4)), F32((4,)), 8, (), ShapeError, r"scales has dims \[4\]"),
        (F32((2, 8)), U8((3, 4)), F32((1, 2)), 8, (), ShapeError, "N >= 3"),
        (F32((2, 8)), U8((3, 4)), F32((1, 4)), 4, (), ShapeError, "G >= 2"),
        (F32((2, 8)), U8((3, 4)), F32((1, 4)), 0, (), UnsupportedOperator, "must be positive"),
        (F32((2, 8)), U8((3, 4)), F32((1, 4)), "8", (), UnsupportedOperator, "a String"),
        (F32((2, 8)), U8((3, 4)), F32((1, 4)), 8, (F32((2,)),), ShapeError, "bias has 2"),
    ],
)
def test_refused_before_any_buffer(x, weight, scales, group, bias, kind, text):
    args = [In("x", x), Const(weight), Const(scales), group, *map(Const, bias)]
    with pytest.raises(kind, match=text) as caught:
        check(OpCase(OP, args, []))
    assert "[buffers created: 0]" in str(caught.value)


@pytest.mark.parametrize(
    ("x", "weight", "scales", "kind", "text"),
    [
        (F32((2, 8)), U8((3, 5)), F32((3,)), ShapeError, "5 bytes"),
        (F32((2, 8)), U8((3, 4)), F32((2,)), ShapeError, "scales has 2"),
        (F32((2, 8)), U8((3, 4)), I32((3,)), DtypeError, "scales is int32"),
    ],
)
def test_qcs4w_refused_before_any_buffer(x, weight, scales, kind, text):
    op = "et_vk.linear_qcs4w.default"
    with pytest.raises(kind, match=text) as caught:
        check(OpCase(op, [In("x", x), Const(weight), Const(scales)], []))
    assert "[buffers created: 0]" in str(caught.value)
