"""The primitive values of a GGUF header, over a window of the file that grows on demand."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError
from ..graph.values import Source

FIRST_READ = 2 << 20
MAX_DEPTH = 4
MAX_STRINGS = 1 << 22

STRING, ARRAY = 8, 9
NUMBERS: dict[int, tuple[str, int]] = {
    0: ("<u1", 1),
    1: ("<i1", 1),
    2: ("<u2", 2),
    3: ("<i2", 2),
    4: ("<u4", 4),
    5: ("<i4", 4),
    6: ("<f4", 4),
    7: ("?", 1),
    10: ("<u8", 8),
    11: ("<i8", 8),
    12: ("<f8", 8),
}
"""Value type to NumPy dtype and bytes."""

T = TypeVar("T")


class StringArray(Sequence[str]):
    """Many strings as one block of bytes: a vocabulary of 100,000 costs its bytes and 4 each.

    Strings are decoded when asked for; FormatError where one is not UTF-8.
    """

    def __init__(self, data: bytes, starts: array[int], name: str) -> None:
        # Each string follows its own 8-byte length, so one ends 8 bytes before the next starts.
        self._data = data
        self._starts = starts
        self._name = name

    def __len__(self) -> int:
        return len(self._starts) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        try:
            return self.raw(index).decode()
        except UnicodeDecodeError as error:
            raise FormatError(f"{self._name}: string {index} is not UTF-8") from error

    def raw(self, index: int) -> bytes:
        """The UTF-8 bytes of one string."""
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError(f"string {index} of {len(self)}")
        return self._data[self._starts[index] : self._starts[index + 1] - 8]

    def raws(self) -> Iterator[bytes]:
        """The UTF-8 bytes of all strings, in order."""
        data, start = self._data, self._starts[0]
        for following in self._starts[1:]:
            yield data[start : following - 8]
            start = following

    def __iter__(self) -> Iterator[str]:
        for index, raw in enumerate(self.raws()):
            try:
                yield raw.decode()
            except UnicodeDecodeError:
                yield self[index]

    def __repr__(self) -> str:
        return f"<StringArray of {len(self)}>"


MetadataValue: TypeAlias = (
    int | float | bool | str | NDArray[np.generic] | StringArray | list["MetadataValue"]
)
Metadata: TypeAlias = dict[str, MetadataValue]


class _Short(Exception):
    """The window ends before byte `end` of the file."""

    def __init__(self, end: int) -> None:
        self.end = end


class HeaderReader:
    """A parse position in a window of `source`; `item` repeats a parse after more was read."""

    def __init__(self, source: Source, max_header: int) -> None:
        self.name = source.name
        self._source = source
        self._limit = min(source.nbytes, max_header)
        self._window = b""
        self._base = 0
        self._at = 0
        self._next_read = FIRST_READ
        self._reading = "its beginning"

    @property
    def position(self) -> int:
        """Bytes of the file that have been parsed."""
        return self._base + self._at

    async def item(self, parse: Callable[[HeaderReader], T], what: str) -> T:
        """`parse(self)`, from the same position again each time that the window was too short.

        `what` names the item where the file ends in it, until its own name was read.
        """
        start, self._reading = self._at, what
        while True:
            try:
                return parse(self)
            except _Short as short:
                await self._grow(start, short.end)
                start = self._at

    async def _grow(self, start: int, end: int) -> None:
        if end > self._limit:
            raise FormatError(
                f"{self.name}: {self._reading} reaches to byte {end} at least, the file has "
                f"{self._source.nbytes} and {self._limit} are read as header — truncated or damaged"
            )
        have = self._base + len(self._window)
        upto = min(self._limit, max(end, have + self._next_read))
        self._next_read *= 2
        more = await self._source.read(have, upto - have)
        self._window = self._window[start:] + more
        self._base += start
        self._at = 0

    def need(self, nbytes: int) -> int:
        """The position of the next `nbytes` bytes in the window, which it then has in full."""
        at = self._at
        if at + nbytes > len(self._window):
            raise _Short(self._base + at + nbytes)
        return at

    def take(self, nbytes: int) -> bytes:
        """The next bytes."""
        at = self.need(nbytes)
        self._at = at + nbytes
        return self._window[at : at + nbytes]

    def u32(self) -> int:
        """The next four bytes as an unsigned number."""
        return int.from_bytes(self.take(4), "little")

    def u64(self) -> int:
        """The next eight bytes as an unsigned number."""
        return int.from_bytes(self.take(8), "little")

    def text(self, what: str, limit: int | None = None) -> str:
        """The next string; `what` names it in errors."""
        nbytes = self.u64()
        if limit is not None and nbytes > limit:
            raise FormatError(f"{self.name}: {what} of {nbytes} bytes, at most {limit} are allowed")
        raw = self.take(nbytes)
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise FormatError(f"{self.name}: {what} is not UTF-8: {raw[:40]!r}") from error

    def pair(self) -> tuple[str, MetadataValue]:
        """The next metadata pair."""
        key = self.text("a metadata key", limit=65535)
        self._reading = f"the value of {key!r}"
        return key, self._value(key, self.u32(), 0)

    def _value(self, key: str, kind: int, depth: int) -> MetadataValue:
        if kind == STRING:
            return self.text(f"the value of {key!r}")
        if kind == ARRAY:
            return self._array(key, depth + 1)
        dtype, nbytes = self._number(key, kind)
        value: int | float | bool = np.frombuffer(self.take(nbytes), dtype)[0].item()
        return value

    def _array(self, key: str, depth: int) -> MetadataValue:
        if depth > MAX_DEPTH:
            raise FormatError(f"{self.name}: {key!r} nests arrays deeper than {MAX_DEPTH}")
        kind, count = self.u32(), self.u64()
        if kind == STRING:
            return self._strings(key, count)
        if kind == ARRAY:
            if count > MAX_STRINGS:
                raise FormatError(f"{self.name}: {key!r} has {count} arrays")
            self.need(12 * count)
            return [self._array(key, depth + 1) for _ in range(count)]
        dtype, nbytes = self._number(key, kind)
        return np.frombuffer(self.take(count * nbytes), dtype)

    def _number(self, key: str, kind: int) -> tuple[str, int]:
        if kind not in NUMBERS:
            raise FormatError(
                f"{self.name}: {key!r} has value type {kind}, 0 to 12 are known — damaged or newer"
            )
        return NUMBERS[kind]

    def _strings(self, key: str, count: int) -> StringArray:
        if count > MAX_STRINGS:
            raise FormatError(
                f"{self.name}: {key!r} has {count} strings, at most {MAX_STRINGS} are read"
            )
        start = at = self.need(8 * count)
        window, ends = self._window, len(self._window)
        length_at = struct.Struct("<Q").unpack_from
        starts = array("I", [8])
        append = starts.append
        for _ in range(count):
            if at + 8 > ends:
                raise _Short(self._base + at + 8)
            at += 8 + length_at(window, at)[0]
            if at > ends:
                raise _Short(self._base + at)
            append(at - start + 8)
        self._at = at
        return StringArray(window[start:at], starts, f"{self.name}: {key!r}")
