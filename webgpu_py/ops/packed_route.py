"""Which kernel computes y = x . w^T on packed weights: a rule of shapes, limits and features."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..graph.choices import Choices
from ..graph.dims import ceil_div
from ..graph.limits import Limits
from .packed import PackedMatrix

FEW_ROWS = 4
SOME_ROWS = 16
"""Up to so many rows each reads the weight for itself, which caches serve; more share tiles of it,
which take 32 or 64 rows whether they are there or not. Some may go either way."""

QUAD = 4
ROW_COLUMNS = 4
BLOCK_ROWS, BLOCK_COLUMNS = 8, 8
"""Of an invocation of packed_block_subgroup, which takes twice as many rows where there are more;
one or two rows are computed each by itself."""

MANY_GROUPS = 256
"""Workgroups that keep a large GPU busy."""

GEMV_VECTORS = 1280
"""Most vec4 of x that a workgroup has in its memory."""

NARROW = 2048
"""Columns of a layer that leave a large GPU half empty."""

GEMV_SUMS = 24
"""Bytes of workgroup memory an invocation adds up its sums with."""

REDUCE_NBYTES = 64
"""Workgroup memory of `wgsl/lib/reduce.wgsl` beside a number an invocation."""

INTEGER_DOT = "packed_4x8_integer_dot_product"
DOT_FEATURES = frozenset({"subgroups", INTEGER_DOT})
DOT_MANY = 16384
"""Columns from which on few lanes a column take less time (H200)."""
DOT_LARGE = 1 << 24
"""Elements of a weight from which on sets of 4 columns take less time than sets of 2 (H200)."""
DOT_STORAGE = 8
"""Bytes beside x that packed_gemv_dot keeps for an invocation, and as reduce.wgsl does."""

MATRICES = "chromium-experimental-subgroup-matrix"
MATRIX_FEATURES = frozenset({"shader-f16", "subgroups", MATRICES})
INT8_FEATURES = frozenset({"subgroups", MATRICES})
INT8_THREADS, INT8_COLUMNS, INT8_DEPTH = 256, 128, 64
INT8_WORK = 1 << 26
"""Least products of a layer: fewer take packed_gemm less time (H200)."""
INT8_GROUPS = 132
"""Workgroups of packed_gemm_int8 that keep a large GPU busy."""
MATRIX_STORAGE = 32768
MATRIX_THREADS = 512
MATRIX_COLUMNS = 256
MATRIX_GROUPS = 128
"""Workgroups that keep a large GPU busy: they are four times as wide as packed_gemm's."""
MATRIX_SUMS = 1 << 18
"""Least rows times columns: fewer take packed_gemm's smaller tiles less time (H200)."""

GEMM_THREADS = 128
TILE_STORAGE = 16384
LARGE_STORAGE, LARGE_K, LARGE_GROUPS = 24576, 1024, 240
"""What tiles of 128 rows, which read weights less often, need: memory, a long k, their number."""
GEMM_COLUMNS = 64
GEMM_DEPTH = 32
MOST_SPLITS = 16


@dataclass(frozen=True, slots=True)
class Route:
    """A kernel with its constants; how much of y a unit covers, and units a workgroup.

    With `splits`, so many workgroups share the k of a unit and leave a sum each.
    """

    kernel: str
    constants: Mapping[str, float]
    rows: int
    columns: int
    units: int = 1
    splits: int = 1

    @property
    def name(self) -> str:
        """What tells it from other routes of a layer."""
        own = {k: v for k, v in self.constants.items() if k not in ("chunk", "per_word")}
        text = " ".join(f"{k}={int(v)}" for k, v in {**own, "splits": self.splits}.items())
        return f"{self.kernel} {text}"

    def groups(self, m: int, n: int) -> int:
        """Workgroups for m rows and n columns of the product."""
        units = ceil_div(m, self.rows) * ceil_div(n, self.columns)
        return ceil_div(units * self.splits, self.units)


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
    room = limits.max_compute_workgroup_storage_size >= TILE_STORAGE
    if not weight.vectors or limits.workgroup_width(QUAD) < QUAD:
        return _any(weight, m, limits)
    if software and "subgroups" in features:
        return _block(weight, m, limits)
    if m > FEW_ROWS and room and limits.workgroup_width(GEMM_THREADS) == GEMM_THREADS:
        large = m > SOME_ROWS and m * weight.n >= MATRIX_SUMS and weight.k % 8 == 0
        if large and has_matrices(limits, features):
            return _gemm_matrix(weight, m)
        if m * weight.n * weight.k >= INT8_WORK and _has_int8(weight, limits, features):
            return _gemm_int8(weight, m, limits)
        return _gemm(weight, m, limits)
    if not room:
        return _any(weight, m, limits)
    dots = _has_dots(weight, features)
    return _gemv_dot(weight, m, limits) if dots else _gemv(weight, m, limits)


def others(
    weight: PackedMatrix, m: int, limits: Limits, software: bool, features: frozenset[str]
) -> Iterator[Route]:
    """Kernels that may be faster than the rule's on some GPU, and the rule's among them."""
    kernel = rule(weight, m, limits, software, features).kernel
    if kernel == "packed_any" or kernel.endswith("_subgroup"):
        return
    if m <= SOME_ROWS:
        for lanes in (8, 16, 32, 64, 128):
            yield _gemv(weight, m, limits, lanes)
            if _has_dots(weight, features):
                yield _gemv_dot(weight, m, limits, lanes)
    if m > 1 and limits.workgroup_width(GEMM_THREADS) == GEMM_THREADS:
        yield from _gemms(weight, m, limits)
        if weight.k % 8 == 0 and has_matrices(limits, features):
            yield _gemm_matrix(weight, m)
        if _has_int8(weight, limits, features):
            yield from (_int8(weight, m, rows) for rows in (16, 32, 64, 128) if rows < 2 * m)


def _chunks(weight: PackedMatrix) -> dict[str, float]:
    per_word = weight.scale_kind != "none" and weight.span % weight.chunk != 0
    return {"chunk": weight.chunk, "per_word": per_word}


def _gemv(weight: PackedMatrix, m: int, limits: Limits, wanted: int | None = None) -> Route:
    # Measured on an H200: few lanes where columns abound, many where a row is long or columns few.
    chunks, sums = weight.k // weight.chunk, m * weight.n
    row = 1 << (chunks - 1).bit_length()
    sums_nbytes = GEMV_SUMS * limits.workgroup_width(256) + REDUCE_NBYTES
    storage = limits.max_compute_workgroup_storage_size - sums_nbytes
    room = min(GEMV_VECTORS, storage // 16) // (weight.chunk // 4 + 1)
    most = max(4, min(1 << (room.bit_length() - 1), row))
    if wanted is None:
        wanted = 128 if chunks >= 256 else 16 if sums >= 16384 else 32 if sums >= 1024 else 64
    lanes = min(limits.workgroup_width(wanted), most)
    width = max(lanes, limits.workgroup_width(128 if lanes <= 32 else 256))
    # A narrow layer is a matter of latency: its workgroups stage their row at once.
    slots = most if sums < NARROW else lanes
    constants = {**_chunks(weight), "lanes": lanes, "slots": slots, "wg_size": width}
    return Route("packed_gemv", constants, 1, 4 * width // lanes)


def _pairs(weight: PackedMatrix) -> bool:
    """Whether codes times one scale for 16 or 32 of them fit pairs of int8 (`int8_pair.wgsl`)."""
    return weight.code_kind in ("u4", "u4_even_high", "i8") and not _chunks(weight)["per_word"]


def _has_dots(weight: PackedMatrix, features: frozenset[str]) -> bool:
    return features >= DOT_FEATURES and _pairs(weight)


def _gemv_dot(weight: PackedMatrix, m: int, limits: Limits, wanted: int = 256) -> Route:
    # Measured on an H200: a lane for each chunk of a row, but fewer where columns abound.
    chunks = weight.k // weight.chunk
    row = 1 << (chunks - 1).bit_length()
    if m * weight.n >= DOT_MANY:
        wanted = min(wanted, 32)
    slot = 3 * weight.chunk + 40
    room = limits.max_compute_workgroup_storage_size - REDUCE_NBYTES
    lanes = max(4, min(limits.workgroup_width(wanted), row))
    while lanes * slot + DOT_STORAGE * limits.workgroup_width(8 * lanes) > room:
        lanes //= 2
    width = limits.workgroup_width(lanes * (4 if lanes == row else 8))
    turns = min(ceil_div(chunks, lanes), (room - DOT_STORAGE * width) // (lanes * slot))
    columns = 4 if weight.n * weight.k >= DOT_LARGE else 2
    constants = {"chunk": weight.chunk, "lanes": lanes, "slots": lanes * turns}
    constants |= {"columns": columns, "wg_size": width}
    return Route("packed_gemv_dot", constants, 1, columns * width // lanes)


def _block(weight: PackedMatrix, m: int, limits: Limits) -> Route:
    # SwiftShader compiles 16 rows by 8 columns in 0.9 s. By 4 columns it would in 0.4 s, and take
    # 1.15 times as long at each run; 8 rows by 8 columns take 1.25 times as long.
    kernel, rows, columns = "packed_row_subgroup", 1, ROW_COLUMNS
    constants: dict[str, float] = _chunks(weight)
    if m > 2:
        kernel, columns = "packed_block_subgroup", BLOCK_COLUMNS
        rows = BLOCK_ROWS if m <= BLOCK_ROWS else 2 * BLOCK_ROWS
        constants = {"chunk": weight.chunk, "rows": rows}
    widest = limits.workgroup_width(limits.max_compute_invocations_per_workgroup)
    width, most = QUAD, limits.max_compute_workgroups_per_dimension**2
    while ceil_div(m, rows) * ceil_div(weight.n, columns * width) > most and width < widest:
        width *= 2
    return Route(kernel, {**constants, "wg_size": width}, rows, columns * width)


def _gemm(weight: PackedMatrix, m: int, limits: Limits) -> Route:
    blocks = 2 if m > 32 else 1
    splits = _splits(weight, m, blocks)
    large = limits.max_compute_workgroup_storage_size >= LARGE_STORAGE
    if large and m > 64 and weight.k >= LARGE_K:
        groups = _tiles(weight, m, 4) * _splits(weight, m, 4)
        if groups >= LARGE_GROUPS:
            blocks, splits = 4, _splits(weight, m, 4)
    return _tiled(weight, blocks, splits)


def _gemms(weight: PackedMatrix, m: int, limits: Limits) -> Iterator[Route]:
    large = limits.max_compute_workgroup_storage_size >= LARGE_STORAGE
    most = max(1, min(weight.k // (2 * GEMM_DEPTH), MOST_SPLITS))
    for blocks in (1, 2, 4):
        if blocks == 1 or (m > 16 * blocks and (blocks < 4 or large)):
            splits = _splits(weight, m, blocks)
            for some in sorted({1, max(1, splits // 2), splits, min(2 * splits, most)}):
                yield _tiled(weight, blocks, some)


def _tiled(weight: PackedMatrix, blocks: int, splits: int) -> Route:
    constants = {**_chunks(weight), "blocks": blocks}
    return Route("packed_gemm", constants, 32 * blocks, GEMM_COLUMNS, splits=splits)


def _tiles(weight: PackedMatrix, m: int, blocks: int) -> int:
    return ceil_div(m, 32 * blocks) * ceil_div(weight.n, GEMM_COLUMNS)


def _splits(weight: PackedMatrix, m: int, blocks: int) -> int:
    # Two turns of the loop are the least that is worth a share of its own.
    wanted = MANY_GROUPS // _tiles(weight, m, blocks)
    return max(1, min(wanted, weight.k // (2 * GEMM_DEPTH), MOST_SPLITS))


def has_matrices(limits: Limits, features: frozenset[str]) -> bool:
    """Whether `packed_gemm_matrix` runs on such a device."""
    room = limits.max_compute_workgroup_storage_size >= MATRIX_STORAGE
    return (
        features >= MATRIX_FEATURES
        and room
        and limits.workgroup_width(MATRIX_THREADS) == MATRIX_THREADS
    )


def _gemm_matrix(weight: PackedMatrix, m: int) -> Route:
    rows = 128 if m > 64 else 64
    tiles = ceil_div(m, rows) * ceil_div(weight.n, MATRIX_COLUMNS)
    splits = max(1, min(MATRIX_GROUPS // tiles, weight.k // (4 * GEMM_DEPTH), MOST_SPLITS))
    constants = {**_chunks(weight), "tall": rows == 128}
    return Route("packed_gemm_matrix", constants, rows, MATRIX_COLUMNS, splits=splits)


def _has_int8(weight: PackedMatrix, limits: Limits, features: frozenset[str]) -> bool:
    fits = limits.workgroup_width(INT8_THREADS) == INT8_THREADS
    room = limits.max_compute_workgroup_storage_size >= _int8_nbytes(64)
    return features >= INT8_FEATURES and _pairs(weight) and fits and room


def _int8_nbytes(rows: int) -> int:
    """Workgroup memory of packed_gemm_int8."""
    stride = 5 if rows == 128 else 9
    return 16 * max(stride * (rows + INT8_COLUMNS), 1024) + 4 * (INT8_COLUMNS + INT8_THREADS)


def _gemm_int8(weight: PackedMatrix, m: int, limits: Limits) -> Route:
    # Measured on an H200: large tiles as long as they are enough to keep it busy.
    rows = 16 if m <= SOME_ROWS else 32
    for larger, least in ((64, 2 * INT8_GROUPS // 3), (128, 3 * INT8_GROUPS // 4)):
        room = limits.max_compute_workgroup_storage_size >= _int8_nbytes(larger)
        if room and m > larger // 2 and _int8(weight, m, larger).groups(m, weight.n) >= least:
            rows = larger
    return _int8(weight, m, rows)


def _int8(weight: PackedMatrix, m: int, rows: int) -> Route:
    tiles = ceil_div(m, rows) * ceil_div(weight.n, INT8_COLUMNS)
    wanted = (2 if rows == SOME_ROWS else 1) * INT8_GROUPS // tiles
    splits = max(1, min(wanted, weight.k // (2 * INT8_DEPTH), MOST_SPLITS))
    constants = {"chunk": weight.chunk, "rows": rows}
    return Route("packed_gemm_int8", constants, rows, INT8_COLUMNS, splits=splits)


def _any(weight: PackedMatrix, m: int, limits: Limits) -> Route:
    width = fitting_width(64, ceil_div(m, 4) * weight.n, limits)
    return Route("packed_any", {"wg_size": width}, 4, 1, width)


def fitting_width(wanted: int, invocations: int, limits: Limits) -> int:
    """The wanted workgroup width, or a larger one where the grid would be too small for it."""
    width = limits.workgroup_width(wanted)
    most = limits.max_compute_workgroups_per_dimension**2
    while invocations > most * width and limits.workgroup_width(2 * width) > width:
        width *= 2
    return width
