"""Random-access bytes on the host: memory and files, behind the `Source` protocol.

Sources that live in a browser (a URL, a dropped file, the cache) come with the bridge.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from .errors import FormatError
from .graph.values import Source


def check_range(name: str, total: int, offset: int, nbytes: int) -> None:
    """Refuse a range that does not lie inside `total` bytes."""
    if offset < 0 or nbytes < 0 or offset + nbytes > total:
        raise FormatError(
            f"{name}: bytes {offset} to {offset + nbytes} were asked for, it holds {total} — "
            "the file is truncated or its header is wrong; download it again"
        )


class BytesSource:
    """Bytes in memory as a `Source`; the buffer is kept, not copied."""

    def __init__(self, data: bytes | bytearray | memoryview, name: str = "memory") -> None:
        self._data = memoryview(data).cast("B")
        self.name = name
        self.nbytes = self._data.nbytes

    async def read(self, offset: int, nbytes: int) -> bytes:
        """Exactly `nbytes` bytes from `offset`; FormatError when the source is shorter."""
        check_range(self.name, self.nbytes, offset, nbytes)
        return bytes(self._data[offset : offset + nbytes])


class FileSource:
    """A file on the host as a `Source`; open until `close()`, also a context manager."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.name = Path(path).name
        self._file = open(path, "rb", buffering=0)
        self.nbytes = os.fstat(self._file.fileno()).st_size

    async def read(self, offset: int, nbytes: int) -> bytes:
        """Exactly `nbytes` bytes from `offset`; FormatError when the file is shorter."""
        check_range(self.name, self.nbytes, offset, nbytes)
        self._file.seek(offset)
        parts = []
        while nbytes > 0:
            part = self._file.read(nbytes)
            if not part:
                raise FormatError(
                    f"{self.name}: ended {nbytes} bytes early while being read — "
                    "another program is changing it; read it again when that is done"
                )
            parts.append(part)
            nbytes -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def close(self) -> None:
        """Close the file; a later read is an error."""
        self._file.close()

    def __enter__(self) -> FileSource:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def open_source(given: str | os.PathLike[str] | bytes | bytearray | memoryview | Source) -> Source:
    """A `Source` for a path or for bytes; a `Source` is passed through."""
    if isinstance(given, (str, os.PathLike)):
        return FileSource(given)
    if isinstance(given, (bytes, bytearray, memoryview)):
        return BytesSource(given)
    return given


HASH_STEP = 1 << 20
"""Bytes that are hashed at a time: no more of a file is in Python's heap."""


async def check_sha256(source: Source, expected: str) -> None:
    """Read a source to its end, in steps, and compare its SHA-256 (64 hexadecimal digits).

    What a browser keeps and was found right before is not read again. FormatError when it differs.
    """
    wanted = expected.lower()
    if getattr(source, "sha256", None) == wanted:
        return
    digest = hashlib.sha256()
    for at in range(0, source.nbytes, HASH_STEP):
        digest.update(await source.read(at, min(HASH_STEP, source.nbytes - at)))
    if digest.hexdigest() != wanted:
        raise FormatError(
            f"{source.name}: its SHA-256 is {digest.hexdigest()}, {wanted} was expected — "
            "it is another file or was damaged on its way; download it again"
        )
    verified = getattr(source, "verified", None)
    if verified is not None:
        await verified(wanted)


def fetch_whole(sources: Sequence[Source]) -> None:
    """Bring what was accepted and read in part to its end, where it is a download to be kept."""
    for source in sources:
        fetch = getattr(source, "fetch_all", None)
        if fetch is not None:
            fetch()


def close_sources(sources: Sequence[Source]) -> None:
    """Close those that hold a file or a download open."""
    for source in sources:
        close = getattr(source, "close", None)
        if close is not None:
            close()


async def give_up(sources: Sequence[Source], error: BaseException) -> None:
    """Close sources that could not be used; a cache keeps nothing of one that is damaged."""
    if isinstance(error, FormatError):
        for source in sources:
            discard = getattr(source, "discard", None)
            if discard is not None:
                await discard()
    close_sources(sources)
