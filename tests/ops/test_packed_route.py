"""Which kernel a packed linear layer takes: a rule of shapes, limits and features."""

import pytest

from webgpu_py.graph.limits import Limits
from webgpu_py.graph.values import TensorSpec
from webgpu_py.ops.packed import PackedMatrix
from webgpu_py.ops.packed_kernels import (
    DOT_FEATURES,
    INT8_FEATURES,
    MATRICES,
    MATRIX_FEATURES,
)
from webgpu_py.ops.packed_route import choose, others

LARGE = Limits(
    max_compute_workgroup_storage_size=49152,
    max_compute_invocations_per_workgroup=1024,
    max_compute_workgroup_size_x=1024,
)


def matrix(k=2048, n=64, group=32, row_bytes=None, codes="u4"):
    ref = type("Ref", (), {"max_spec": TensorSpec("uint8", (n, k // 2))})()
    row_bytes = (k + 1) // 2 if row_bytes is None else row_bytes
    return PackedMatrix(ref, ref, n, k, codes, "f32", group, 8, row_bytes, 1, n, False)


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
        (matrix(n=2048, k=64), 127, {}, "packed_gemm"),
        (matrix(n=1 << 17), 17, {}, "packed_gemm_matrix"),
        (matrix(n=512), 128, {}, "packed_gemm_int8"),
        (matrix(n=512), 129, {}, "packed_gemm_matrix"),
        (matrix(n=1 << 17, k=64), 16, {}, "packed_gemm_int8"),
        (matrix(n=1 << 18), 4, {}, "packed_gemv"),
        (matrix(n=2048, k=36), 128, {}, "packed_any"),
        (matrix(n=2048), 128, {"max_compute_workgroup_storage_size": 20480}, "packed_gemm_matrix"),
        (matrix(n=2048), 128, {"max_compute_workgroup_storage_size": 20479}, "packed_gemm"),
        (matrix(n=2048), 128, {"max_compute_invocations_per_workgroup": 255}, "packed_gemm"),
        (matrix(n=2048), 128, {"max_compute_workgroup_storage_size": 16384}, "packed_gemm"),
        (matrix(n=2048, group=24), 16, {}, "packed_gemm"),
        (matrix(n=2048, codes="f16", row_bytes=4096), 16, {}, "packed_gemm"),
    ],
)
def test_choice_with_subgroup_matrices(weight, m, limits, kernel):
    found = LARGE.capped(limits)
    assert choose(weight, m, found, False, MATRIX_FEATURES).kernel == kernel
    for feature in ("subgroups", MATRICES):
        without = choose(weight, m, found, False, MATRIX_FEATURES - {feature}).kernel
        assert without == kernel.removesuffix("_matrix").removesuffix("_int8")


@pytest.mark.parametrize(
    ("weight", "m", "rows", "splits"),
    [
        (matrix(2048, 8192), 5, 16, 4),
        (matrix(2048, 8192), 17, 32, 2),
        (matrix(2048, 8192), 128, 128, 2),
        (matrix(2048, 2048), 512, 128, 2),
        (matrix(576, 1536), 512, 64, 1),
        (matrix(576, 1536, codes="i8"), 512, 64, 1),
    ],
)
def test_choice_of_tiles_of_int8(weight, m, rows, splits):
    route = choose(weight, m, LARGE, False, INT8_FEATURES)
    assert (route.kernel, route.rows, route.splits) == ("packed_gemm_int8", rows, splits)


@pytest.mark.parametrize(
    ("weight", "m", "limits", "lanes", "turns"),
    [
        (matrix(2048, 8192), 1, {}, 64, 1),
        (matrix(8192, 2048), 1, {}, 256, 1),
        (matrix(2048, 128256), 1, {}, 32, 2),
        (matrix(576, 49152), 1, {}, 4, 5),
        (matrix(640, 49152), 1, {}, 4, 5),
        (matrix(672, 49152), 1, {}, 16, 2),
        (matrix(576, 16384), 1, {}, 4, 5),
        (matrix(576, 4096), 4, {}, 4, 5),
        (matrix(576, 16352), 1, {}, 32, 1),
        (matrix(576, 576), 1, {}, 32, 1),
        (matrix(32, 8), 1, {}, 4, 1),
        (matrix(1 << 20, 8), 1, {}, 256, 1),
        (matrix(8192, 2048), 1, {"max_compute_workgroup_storage_size": 16384}, 64, 1),
        (matrix(8192, 64), 1, {"max_compute_invocations_per_workgroup": 64}, 64, 4),
    ],
)
def test_choice_of_integer_dot_products(weight, m, limits, lanes, turns):
    route = choose(weight, m, LARGE.capped(limits), False, DOT_FEATURES)
    assert route.kernel == "packed_gemv_dot"
    assert route.constants["lanes"] == lanes
    assert route.constants["slots"] == lanes * turns
    for feature in DOT_FEATURES:
        without = choose(weight, m, LARGE.capped(limits), False, DOT_FEATURES - {feature})
        assert without.kernel == "packed_gemv"


@pytest.mark.parametrize(
    ("weight", "m", "rows", "splits"),
    [
        (matrix(2048, 8192), 64, 64, 4),
        (matrix(2048, 8192), 65, 128, 4),
        (matrix(2048, 2048), 128, 128, 8),
        (matrix(8192, 2048), 512, 128, 4),
        (matrix(576, 49152), 128, 128, 1),
        (matrix(576, 1536), 512, 64, 1),
        (matrix(1536, 576), 1024, 128, 6),
    ],
)
def test_choice_of_tiles_of_float16(weight, m, rows, splits):
    route = choose(weight, m, LARGE, False, MATRIX_FEATURES)
    assert (route.kernel, route.rows, route.splits) == ("packed_gemm_matrix", rows, splits)
    assert route.constants["tall"] == (rows == 128)


def test_int8_sums_are_exact_as_long_as_k_is():
    for k, kernel in ((1 << 16, "packed_gemm_int8"), ((1 << 16) + 32, "packed_gemm")):
        assert choose(matrix(k=k), 128, LARGE, False, INT8_FEATURES).kernel == kernel


@pytest.mark.parametrize("weight", [matrix(group=24), matrix(codes="f16", row_bytes=4096)])
def test_what_integer_dot_products_cannot_do(weight):
    assert choose(weight, 1, LARGE, False, DOT_FEATURES).kernel == "packed_gemv"


def test_others_hold_the_rules_choice_and_differ():
    for features in (frozenset(), INT8_FEATURES | DOT_FEATURES, MATRIX_FEATURES | DOT_FEATURES):
        for m in (1, 3, 5, 8, 16, 17, 128):
            for weight in (matrix(n=2048), matrix(n=8192)):
                ways = others(weight, m, LARGE, False, features)
                kernels = {way.kernel for way in ways}
                assert choose(weight, m, LARGE, False, features).kernel in kernels
