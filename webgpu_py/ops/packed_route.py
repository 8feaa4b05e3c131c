"""Which kernel computes y = x . w^T on packed weights: a rule of shapes, limits and features."""

from __future__ import annotations

from collections.abc import Iterator

from ..graph.choices import Choices
from ..graph.limits import Limits
from . import packed_kernels as kernels
from .packed import PackedMatrix
from .packed_kernels import Route

FEW_ROWS = 4
SOME_ROWS = 16
"""Up to so many rows each reads the weight for itself, which caches serve; more share tiles of it,
which take 32 or 64 rows whether they are there or not. Some may go either way."""

INT8_WORK = 1 << 26
"""Least products of a layer: fewer take packed_gemm less time (H200)."""
MATRIX_WORK = 1 << 27
"""Products of a layer up to which packed_gemm_matrix takes more time than the others (H200)."""


def choose(
    weight: PackedMatrix,
    m: int,
    limits: Limits,
    software: bool,
    features: frozenset[str],
    choices: Choices | None = None,
) -> Route:
    """The kernel for m rows of x: what `choices` found fastest, by default the rule's."""
    first = rule(weight, m, limits, software, features)
    case = case_name(weight, m)
    if choices is None or case not in choices:
        return first
    ways = {first.name: first} | {w.name: w for w in others(weight, m, limits, software, features)}
    return list(ways.values())[choices.pick(case, list(ways))]


def case_name(weight: PackedMatrix, m: int) -> str:
    """What is measured once: a layer's shape and types, and rows up to a power of two."""
    rows = 1 << (m - 1).bit_length()
    kinds = f"{weight.code_kind} {weight.scale_kind} group {weight.group}"
    return f"linear {weight.k}x{weight.n} {kinds}, m = {rows}"


def rule(
    weight: PackedMatrix, m: int, limits: Limits, software: bool, features: frozenset[str]
) -> Route:
    """The kernel for m rows of x by shapes and limits alone.

    `packed_gemv`, lanes along k, for few rows, or `packed_gemv_dot` where there are integer dot
    products; `packed_gemm`, tiles in workgroup memory, for many, or `packed_gemm_matrix` and
    `packed_gemm_int8` where there are subgroup matrices, of float16 and of int8. On adapters that
    run on the CPU `packed_row_subgroup` and `packed_block_subgroup`, registers alone. `packed_any`
    for shapes that are no whole vectors, and where there is no room for the others.
    """
    room = limits.max_compute_workgroup_storage_size >= kernels.TILE_STORAGE
    if not weight.vectors or limits.workgroup_width(kernels.QUAD) < kernels.QUAD:
        return kernels.any_shape(weight, m, limits)
    if software and "subgroups" in features:
        return kernels.block(weight, m, limits)
    if m > FEW_ROWS and room and kernels.fits_tiles(limits):
        work = m * weight.n * weight.k
        large = m > SOME_ROWS and work > MATRIX_WORK and weight.k % 8 == 0
        if large and kernels.has_matrices(limits, features):
            return kernels.gemm_matrix(weight, m)
        if work >= INT8_WORK and kernels.has_int8(weight, limits, features):
            return kernels.gemm_int8(weight, m, limits)
        return kernels.gemm(weight, m, limits)
    if not room:
        return kernels.any_shape(weight, m, limits)
    dots = kernels.has_dots(weight, features)
    return kernels.gemv_dot(weight, m, limits) if dots else kernels.gemv(weight, m, limits)


def others(
    weight: PackedMatrix, m: int, limits: Limits, software: bool, features: frozenset[str]
) -> Iterator[Route]:
    """Kernels that may be faster than the rule's on some GPU, and the rule's among them."""
    kernel = rule(weight, m, limits, software, features).kernel
    if kernel == "packed_any" or kernel.endswith("_subgroup"):
        return
    if m <= SOME_ROWS:
        for lanes in (8, 16, 32, 64, 128):
            yield kernels.gemv(weight, m, limits, lanes)
            if kernels.has_dots(weight, features):
                yield kernels.gemv_dot(weight, m, limits, lanes)
    if m > 1 and kernels.fits_tiles(limits):
        yield from kernels.gemms(weight, m, limits)
        if weight.k % 8 == 0 and kernels.has_matrices(limits, features):
            yield from kernels.matrix_ways(weight, m)
        if kernels.has_int8(weight, limits, features):
            yield from kernels.int8_ways(weight, m, limits)
