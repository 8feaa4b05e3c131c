"""How each kernel of y = x . w^T on packed weights is laid out: constants, tiles and workgroups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..graph.dims import ceil_div
from ..graph.limits import Limits
from .packed import PackedMatrix

OF_WEIGHT = ("chunk", "per_word", "beside", "halves")
"""Constants that a weight leaves no choice in."""

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
DOT_SHORT = 20
"""Chunks of a row, at most, that so many columns leave to four lanes, at most five for each: 10 us
instead of 12 at 576x49152 (H200)."""
DOT_LARGE, DOT_LARGE_BESIDE = 1 << 24, 1 << 22
"""Elements of a weight from which on sets of 4 columns take less time than sets of 2, the second
where the scales of a set lie beside each other (H200)."""
DOT_STORAGE = 8
"""Bytes of an invocation of packed_gemv_dot: 4 of partial sums, 4 of reduce.wgsl."""

MATRICES = "chromium-experimental-subgroup-matrix"
MATRIX_FEATURES = frozenset({"shader-f16", "subgroups", MATRICES})
INT8_FEATURES = frozenset({"subgroups", MATRICES})
INT8_THREADS, INT8_COLUMNS, INT8_DEPTH, INT8_LOW = 256, 128, 64, 16
INT8_LONGEST = 1 << 16
"""Two products of int8 for each of so many elements fit an int32."""
INT8_GROUPS = 132
"""Workgroups of packed_gemm_int8 that keep a large GPU busy."""
MATRIX_STORAGE = 20480
MATRIX_THREADS, MATRIX_COLUMNS = 256, 128
MATRIX_GROUPS, MATRIX_LEAST, MATRIX_SPLITS = 264, 120, 8
"""Workgroups that keep a large GPU busy, fewer than which tiles are halved; shares of a tile's k
that are worth joining (H200)."""
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
        own = {k: v for k, v in self.constants.items() if k not in OF_WEIGHT}
        text = " ".join(f"{k}={int(v)}" for k, v in {**own, "splits": self.splits}.items())
        return f"{self.kernel} {text}"

    def groups(self, m: int, n: int) -> int:
        """Workgroups for m rows and n columns of the product."""
        units = ceil_div(m, self.rows) * ceil_div(n, self.columns)
        return ceil_div(units * self.splits, self.units)


def _chunks(weight: PackedMatrix) -> dict[str, float]:
    per_word = weight.scale_kind != "none" and weight.span % weight.chunk != 0
    return {"chunk": weight.chunk, "per_word": per_word}


def gemv(weight: PackedMatrix, m: int, limits: Limits, wanted: int | None = None) -> Route:
    """packed_gemv; `wanted` lanes a column, by default the rule's."""
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


def has_dots(weight: PackedMatrix, features: frozenset[str]) -> bool:
    """Whether `packed_gemv_dot` computes such a weight on such a device."""
    return features >= DOT_FEATURES and _pairs(weight)


def gemv_dot(weight: PackedMatrix, m: int, limits: Limits, wanted: int | None = None) -> Route:
    """packed_gemv_dot; `wanted` lanes a set of columns, by default the rule's."""
    # Measured on an H200: a lane for each chunk of a row, but fewer where columns abound. Only
    # layers that wait for each other tell: side by side 64 lanes seem better for long rows.
    chunks = weight.k // weight.chunk
    row = 1 << (chunks - 1).bit_length()
    many = m * weight.n >= DOT_MANY
    short = wanted is None and many and chunks <= DOT_SHORT
    if wanted is None:
        wanted = QUAD if short else 256 if not many else 16 if row <= 32 else 32
    slot = 3 * weight.chunk + 40
    room = limits.max_compute_workgroup_storage_size - REDUCE_NBYTES
    lanes = max(4, min(limits.workgroup_width(wanted), row))
    while lanes * slot + DOT_STORAGE * limits.workgroup_width(8 * lanes) > room:
        lanes //= 2
    width = limits.workgroup_width(lanes * (64 if short else 4 if lanes == row else 8))
    turns = min(ceil_div(chunks, lanes), (room - DOT_STORAGE * width) // (lanes * slot))
    large = DOT_LARGE_BESIDE if weight.scales_beside else DOT_LARGE
    columns = 4 if weight.n * weight.k >= large and not short else 2
    constants = {"chunk": weight.chunk, "lanes": lanes, "slots": lanes * turns}
    constants |= {"columns": columns, "wg_size": width}
    constants |= {"beside": weight.scales_beside, "halves": weight.half_scales}
    return Route("packed_gemv_dot", constants, 1, columns * width // lanes)


def block(weight: PackedMatrix, m: int, limits: Limits) -> Route:
    """packed_row_subgroup for one or two rows, packed_block_subgroup for more."""
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


def fits_tiles(limits: Limits) -> bool:
    """Whether a device launches packed_gemm's workgroups."""
    return limits.workgroup_width(GEMM_THREADS) == GEMM_THREADS


def gemm(weight: PackedMatrix, m: int, limits: Limits) -> Route:
    """packed_gemm with the tiles and splits of the rule."""
    blocks = 2 if m > 32 else 1
    splits = _splits(weight, m, blocks)
    large = limits.max_compute_workgroup_storage_size >= LARGE_STORAGE
    if large and m > 64 and weight.k >= LARGE_K:
        groups = _tiles(weight, m, 4) * _splits(weight, m, 4)
        if groups >= LARGE_GROUPS:
            blocks, splits = 4, _splits(weight, m, 4)
    return _tiled(weight, blocks, splits)


def gemms(weight: PackedMatrix, m: int, limits: Limits) -> Iterator[Route]:
    """packed_gemm with other tiles and splits."""
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


def gemm_matrix(weight: PackedMatrix, m: int) -> Route:
    """packed_gemm_matrix with the tiles and splits of the rule."""
    tall = _matrix_tiles(weight, m, 128)
    if m > 64 and tall.groups(m, weight.n) >= MATRIX_LEAST:
        return tall
    return _matrix_tiles(weight, m, 64)


def matrix_ways(weight: PackedMatrix, m: int) -> Iterator[Route]:
    """packed_gemm_matrix with tiles of every height that is worth trying."""
    yield _matrix_tiles(weight, m, 64)
    if m > 64:
        yield _matrix_tiles(weight, m, 128)


def _matrix_tiles(weight: PackedMatrix, m: int, rows: int) -> Route:
    splits = 1
    if weight.k >= LARGE_K:
        tiles = ceil_div(m, rows) * ceil_div(weight.n, MATRIX_COLUMNS)
        most = min(weight.k // (8 * GEMM_DEPTH), MATRIX_SPLITS)
        splits = max(1, min(MATRIX_GROUPS // tiles, most))
    constants = {**_chunks(weight), "tall": rows == 128}
    return Route("packed_gemm_matrix", constants, rows, MATRIX_COLUMNS, splits=splits)


def has_int8(weight: PackedMatrix, limits: Limits, features: frozenset[str]) -> bool:
    """Whether `packed_gemm_int8` computes such a weight on such a device."""
    fits = limits.workgroup_width(INT8_THREADS) == INT8_THREADS and weight.k <= INT8_LONGEST
    room = limits.max_compute_workgroup_storage_size >= _int8_nbytes(64)
    return features >= INT8_FEATURES and _pairs(weight) and fits and room


def _int8_nbytes(rows: int) -> int:
    """Workgroup memory of packed_gemm_int8."""
    stride = 5 if rows == 128 else 9
    return 16 * max(stride * (rows + INT8_COLUMNS), 1024) + 4 * (INT8_COLUMNS + INT8_THREADS)


def gemm_int8(weight: PackedMatrix, m: int, limits: Limits) -> Route:
    """packed_gemm_int8 with the tiles of the rule."""
    # Measured on an H200: large tiles as long as they are enough to keep it busy.
    rows = INT8_LOW if m <= INT8_LOW else 32
    for larger, least in ((64, 2 * INT8_GROUPS // 3), (128, 3 * INT8_GROUPS // 4)):
        room = limits.max_compute_workgroup_storage_size >= _int8_nbytes(larger)
        if room and m > larger // 2 and int8_tiles(weight, m, larger).groups(m, weight.n) >= least:
            rows = larger
    return int8_tiles(weight, m, rows)


def int8_ways(weight: PackedMatrix, m: int, limits: Limits) -> Iterator[Route]:
    """packed_gemm_int8 with tiles of every height that is worth trying."""
    for rows in (16, 32, 64, 128):
        room = limits.max_compute_workgroup_storage_size >= _int8_nbytes(rows)
        if (rows == INT8_LOW or rows < 2 * m) and room:
            yield int8_tiles(weight, m, rows)


def int8_tiles(weight: PackedMatrix, m: int, rows: int) -> Route:
    """packed_gemm_int8 with tiles of `rows` rows."""
    tiles = ceil_div(m, rows) * ceil_div(weight.n, INT8_COLUMNS)
    wanted = (2 if rows == INT8_LOW else 1) * INT8_GROUPS // tiles
    splits = max(1, min(wanted, weight.k // (2 * INT8_DEPTH), MOST_SPLITS))
    constants = {"chunk": weight.chunk, "rows": rows}
    return Route("packed_gemm_int8", constants, rows, INT8_COLUMNS, splits=splits)


def any_shape(weight: PackedMatrix, m: int, limits: Limits) -> Route:
    """packed_any."""
    width = fitting_width(64, ceil_div(m, 4) * weight.n, limits)
    return Route("packed_any", {"wg_size": width}, 4, 1, width)


def fitting_width(wanted: int, invocations: int, limits: Limits) -> int:
    """The wanted workgroup width, or a larger one where the grid would be too small for it."""
    width = limits.workgroup_width(wanted)
    most = limits.max_compute_workgroups_per_dimension**2
    while invocations > most * width and limits.workgroup_width(2 * width) > width:
        width *= 2
    return width
