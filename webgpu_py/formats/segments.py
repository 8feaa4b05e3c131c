"""Segments and named data: the ranges of a file that its flatbuffer points at.

Shared by `.pte` and `.ptd`. Tables: DataSegment {u64 offset, u64 size}; NamedData {string key,
u32 segment_index}. Several keys may name one segment; segments never overlap.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..errors import FormatError
from ..graph.values import Source
from .flat import Table


@dataclass(frozen=True, slots=True)
class Span:
    """A range of a source, not read yet."""

    source: Source
    offset: int
    nbytes: int

    async def read(self) -> bytes:
        """All its bytes."""
        return await self.source.read(self.offset, self.nbytes)

    def part(self, offset: int, nbytes: int, what: str) -> Span:
        """The sub-range at `offset`; `FormatError` naming `what` when it sticks out."""
        if offset < 0 or nbytes < 0 or offset + nbytes > self.nbytes:
            raise FormatError(
                f"{self.source.name}: {what} needs bytes {offset} to {offset + nbytes} of a "
                f"region of {self.nbytes} — the file is damaged or truncated"
            )
        return Span(self.source, self.offset + offset, nbytes)


def read_segments(
    tables: Sequence[Table], source: Source, base: int, limit: int
) -> tuple[Span, ...]:
    """The segments as ranges of the file: inside it, and none over another.

    `base` is the file offset of segment 0, `limit` the bytes of all segments (0 = not said).

    Raises:
        FormatError: a segment sticks out or two overlap.
    """
    room = min(limit or source.nbytes, source.nbytes - base)
    spans = []
    for index, table in enumerate(tables):
        offset, nbytes = table.u64(0), table.u64(1)
        if offset + nbytes > room:
            raise table.fail(
                f"segment {index} ends at byte {offset + nbytes} of {room} — the file is "
                "truncated; download it again"
            )
        if nbytes and not base:
            raise table.fail("there are segments but the header does not say where")
        spans.append(Span(source, base + offset, nbytes))
    end = 0
    for span in sorted((s for s in spans if s.nbytes), key=lambda s: s.offset):
        if span.offset < end:
            raise FormatError(
                f"{source.name}: segment at byte {span.offset} overlaps one that ends at {end}"
            )
        end = span.offset + span.nbytes
    return tuple(spans)


def read_named_data(tables: Iterable[Table], segments: Sequence[Span]) -> dict[str, Span]:
    """Key -> segment for a list of NamedData; `FormatError` for a bad index or a key twice."""
    named: dict[str, Span] = {}
    for entry in tables:
        key, index = entry.text(0, "key"), entry.u32(1)
        if index >= len(segments):
            raise entry.fail(f"{key!r} is in segment {index} of {len(segments)}")
        if key in named:
            raise entry.fail(f"key {key!r} is there twice")
        named[key] = segments[index]
    return named


def merge_named_data(first: dict[str, Span], second: dict[str, Span]) -> dict[str, Span]:
    """Both maps as one; `FormatError` when a key is in both."""
    for key in first.keys() & second.keys():
        raise FormatError(
            f"{second[key].source.name}: key {key!r} is in {first[key].source.name} as well — "
            "give only the .ptd files that belong to the program"
        )
    return first | second
