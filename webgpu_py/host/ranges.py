"""The `Range` header of one HTTP request, for single byte ranges."""

from __future__ import annotations

import re
from dataclasses import dataclass

_RANGE = re.compile(r"bytes=(\d*)-(\d*)")


class Unsatisfiable(ValueError):
    """A well-formed range that lies outside the file: the answer is 416."""


@dataclass(frozen=True)
class Span:
    """Bytes `start` up to, not including, `stop`."""

    start: int
    stop: int

    @property
    def nbytes(self) -> int:
        """How many bytes the span holds."""
        return self.stop - self.start


def span_of(header: str | None, nbytes: int) -> Span | None:
    """The part that a `Range` header asks of a file; None means the whole file.

    As the standard allows, forms that are malformed or ask for several ranges mean the whole file.

    Raises:
        Unsatisfiable: the range begins past the end, or asks for the last 0 bytes.
    """
    match = _RANGE.fullmatch(header.strip()) if header else None
    if match is None:
        return None
    first, last = match.groups()
    if not first and not last:
        return None
    if not first:
        count = min(int(last), nbytes)
        if count == 0:
            raise Unsatisfiable(header)
        return Span(nbytes - count, nbytes)
    start = int(first)
    stop = min(int(last) + 1, nbytes) if last else nbytes
    if last and int(last) < start:
        return None
    if start >= nbytes:
        raise Unsatisfiable(header)
    return Span(start, stop)
