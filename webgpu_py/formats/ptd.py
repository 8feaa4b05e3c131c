"""ExecuTorch's `.ptd` data files (FlatTensor): named constants kept outside a `.pte`.

Layout (little-endian)::

    0   u32 root offset, "FT01"
    8   "FH01", u32 length (40), u64 flatbuffer_offset, u64 flatbuffer_size,
        u64 segment_base_offset, u64 segment_data_size; then the flatbuffer and the segments

Tables: FlatTensor {version, segments, named_data}; NamedData {key, segment_index, layout}.
"""

from __future__ import annotations

from ..errors import FormatError
from ..graph.values import Source
from .flat import MAX_FLATBUFFER, FlatBuffer
from .segments import Span, read_named_data, read_segments

_HEAD_BYTES = 48


async def read_ptd(source: Source) -> dict[str, Span]:
    """Key -> range of the file, for every tensor of the `.ptd` in `source`.

    Raises:
        FormatError: the file is truncated or contradicts itself.
    """
    if source.nbytes < _HEAD_BYTES:
        raise FormatError(f"{source.name}: {source.nbytes} bytes, a .ptd has {_HEAD_BYTES} or more")
    head = await source.read(0, _HEAD_BYTES)
    if head[4:8] != b"FT01" or head[8:12] != b"FH01":
        raise FormatError(
            f"{source.name}: identifiers {head[4:8]!r} and {head[8:12]!r}, a .ptd has b'FT01' "
            "and b'FH01'"
        )
    length = int.from_bytes(head[12:16], "little")
    if length < 40:
        raise FormatError(f"{source.name}: header of {length} bytes, at least 40")
    start, size, base, segment_bytes = (
        int.from_bytes(head[at : at + 8], "little") for at in (16, 24, 32, 40)
    )
    if start + size > source.nbytes or base + segment_bytes > source.nbytes:
        raise FormatError(
            f"{source.name}: flatbuffer of {size} bytes at {start} and segments of "
            f"{segment_bytes} at {base} in a file of {source.nbytes} — the file is truncated"
        )
    if start + size > MAX_FLATBUFFER:
        raise FormatError(f"{source.name}: flatbuffer of {size} bytes, at most {MAX_FLATBUFFER}")
    # Offsets in the flatbuffer count from byte 0: the header was spliced in after the identifier.
    data = await source.read(0, start + size)
    root = FlatBuffer(data, source.name).root(b"FT01", "FlatTensor")
    segments = read_segments(root.tables(1, "DataSegment"), source, base, segment_bytes)
    return read_named_data(root.tables(2, "NamedData"), segments)
