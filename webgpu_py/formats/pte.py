"""ExecuTorch's `.pte` container: header, program flatbuffer, segments and named data.

Only the header and the program are read; what they point at stays a `Span` until somebody asks.

Layout (little-endian)::

    0   u32 root offset, "ET12"             the flatbuffer starts here
    8   "eh00", u32 length, u64 program_size, u64 segment_base_offset, u64 segment_data_size
    ..  rest of the flatbuffer
    segment_base_offset   segments, each aligned

Without "eh00" the whole file is the flatbuffer. `segment_data_size` exists when the header's
length is at least 32. Constants named in the program may lie in `.ptd` files (`ptd.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import FormatError
from ..graph.values import Source
from .flat import MAX_FLATBUFFER, FlatBuffer
from .ptd import read_ptd
from .pte_plan import PlanReader
from .pte_records import ExecutionPlan, PteProgram
from .segments import merge_named_data, read_named_data, read_segments

_HEAD_BYTES = 64
_HEADER_AT = 8


@dataclass(frozen=True, slots=True)
class _Header:
    """Bytes of the flatbuffer, file offset of segment 0, bytes of all segments (0 = not said)."""

    program_size: int
    segment_base: int
    segment_bytes: int


async def read_pte(source: Source, external: Sequence[Source] = ()) -> PteProgram:
    """Parse the `.pte` in `source`, whose external constants lie in the `.ptd` files `external`.

    Raises:
        FormatError: the file is truncated, contradicts itself or lacks a named constant.
        DtypeError: a tensor has an element type that NumPy cannot hold.
    """
    header = await _read_header(source)
    data = await source.read(0, header.program_size)
    root = FlatBuffer(data, source.name).root(b"ET12", "Program")
    segments = read_segments(
        root.tables(4, "DataSegment"), source, header.segment_base, header.segment_bytes
    )
    named_data = read_named_data(root.tables(7, "NamedData"), segments)
    for file in external:
        named_data = merge_named_data(named_data, await read_ptd(file))
    reader = PlanReader(root, source, segments, named_data)
    plans: dict[str, ExecutionPlan] = {}
    for table in root.tables(1, "ExecutionPlan"):
        plan = reader.plan(table)
        if plan.name in plans:
            raise table.fail(f"method {plan.name!r} is there twice")
        plans[plan.name] = plan
    if not plans:
        raise root.fail("there is no method in it")
    return PteProgram(source, root.u32(0), plans, segments, named_data)


async def _read_header(source: Source) -> _Header:
    """Where the flatbuffer and the segments are; `FormatError` when that cannot be."""
    if source.nbytes < _HEAD_BYTES:
        raise FormatError(
            f"{source.name}: {source.nbytes} bytes, a .pte has at least {_HEAD_BYTES} — "
            "the file is truncated or not a .pte"
        )
    head = await source.read(0, _HEAD_BYTES)
    if head[4:8] != b"ET12":
        raise FormatError(
            f"{source.name}: identifier {head[4:8]!r} at byte 4, a .pte has b'ET12' — "
            "not a .pte, or of another version"
        )
    field = head[_HEADER_AT:]
    header = _Header(source.nbytes, 0, 0)
    if field[:4] == b"eh00":
        length = int.from_bytes(field[4:8], "little")
        if length < 24:
            raise FormatError(f"{source.name}: extended header of {length} bytes, at least 24")
        header = _Header(
            int.from_bytes(field[8:16], "little"),
            int.from_bytes(field[16:24], "little"),
            int.from_bytes(field[24:32], "little") if length >= 32 else 0,
        )
    _check_header(header, source)
    return header


def _check_header(header: _Header, source: Source) -> None:
    """Refuse sizes that the file cannot have."""
    base, total = header.segment_base, source.nbytes
    if not _HEAD_BYTES <= header.program_size <= total:
        raise FormatError(
            f"{source.name}: program of {header.program_size} bytes in a file of {total} — "
            "the file is truncated"
        )
    if header.program_size > MAX_FLATBUFFER:
        raise FormatError(
            f"{source.name}: program of {header.program_size} bytes, at most {MAX_FLATBUFFER} — "
            "export it with constants and delegates in segments (the default)"
        )
    if base and base < header.program_size:
        raise FormatError(
            f"{source.name}: segments start at {base}, inside the program of "
            f"{header.program_size} bytes"
        )
    if base + header.segment_bytes > total:
        raise FormatError(
            f"{source.name}: segments end at byte {base + header.segment_bytes} of a file of "
            f"{total} — the file is truncated; download it again"
        )
