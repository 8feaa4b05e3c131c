"""Bounds-checked reading of flatbuffers that nobody vouches for.

The `flatbuffers` runtime trusts its input. Here every offset, vector length, vtable and string is
checked against the buffer before it is used, and what has been visited is counted: an honest
buffer visits each byte about once, so offsets that share or cycle to multiply a small file into
endless work run out of budget. All failures are `FormatError` with the byte position.

Layout of a table: `i32` distance back to its vtable, then fields. Vtable: `u16` own size, `u16`
table size, one `u16` per field (0 = absent). Strings, vectors and sub-tables are `u32` forward
offsets; a union is a `u8` kind field followed by such an offset.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from struct import Struct

import numpy as np
from flatbuffers import packer

from ..errors import FormatError, WebGPUPyError

MAX_FLATBUFFER = 1 << 28
"""Largest flatbuffer that is read into memory; weights belong in segments, not in it."""

MAX_DEPTH = 16
"""Nesting of tables; the deepest schema here needs 5."""

_VECTOR_DTYPES = {"i32": "<i4", "u32": "<u4", "i64": "<i8", "u64": "<u8", "f64": "<f8", "u8": "u1"}


@contextmanager
def within(place: str) -> Iterator[None]:
    """Let errors from inside say the place: what a person finds in the exported program."""
    try:
        yield
    except WebGPUPyError as error:
        raise type(error)(f"{error} (in {place})") from None


class FlatBuffer:
    """A byte buffer with a name for messages and a budget of bytes that may still be visited."""

    __slots__ = ("_strings", "budget", "data", "name", "size")

    def __init__(self, data: bytes | memoryview, name: str) -> None:
        self.data = memoryview(data)
        self.size = len(self.data)
        self.name = name
        # Twice the size leaves room for writers that share equal parts, and no more.
        self.budget = 2 * self.size + 1024
        self._strings: dict[int, str] = {}

    def fail(self, position: int, message: str) -> FormatError:
        """The error for what is wrong at `position`."""
        return FormatError(f"{self.name}: at byte {position} of {self.size}: {message}")

    def spend(self, nbytes: int, position: int) -> None:
        """Count `nbytes` as visited; `FormatError` when the budget is gone."""
        self.budget -= nbytes
        if self.budget < 0:
            raise self.fail(
                position, "offsets overlap: far more data is referred to than the buffer holds"
            )

    def scalar(self, kind: Struct, position: int) -> int:
        """The integer of packer `kind` at `position`."""
        if position < 0 or position + kind.size > self.size:
            raise self.fail(position, f"{kind.size} bytes expected past the end of the buffer")
        return int(kind.unpack_from(self.data, position)[0])

    def follow(self, position: int) -> int:
        """Target of the forward offset stored at `position`."""
        distance = self.scalar(packer.uoffset, position)
        target = position + distance
        if distance == 0 or target + 4 > self.size:
            raise self.fail(position, f"offset {distance} leads outside the buffer")
        return target

    def root(self, identifier: bytes, what: str) -> Table:
        """The root table, after checking the four-byte file identifier."""
        if self.size < 8:
            raise self.fail(0, f"too small for a flatbuffer, which needs at least 8 bytes, {what}")
        seen = bytes(self.data[4:8])
        if seen != identifier:
            raise self.fail(
                4, f"identifier {seen!r} is not {identifier.decode()}: not a {what} of this kind"
            )
        position = self.scalar(packer.uoffset, 0)
        if position < 8 or position + 4 > self.size:
            raise self.fail(0, f"root offset {position} must be at least 8 and inside the buffer")
        return Table(self, position, what, 0)

    def string(self, position: int) -> str:
        """The string whose length word is at `position`; equal positions are decoded once."""
        if position in self._strings:
            return self._strings[position]
        start, length = self.extent(position, 1)
        try:
            text = str(self.data[start : start + length], "utf-8")
        except UnicodeDecodeError as error:
            raise self.fail(start, f"string is not UTF-8 ({error.reason})") from None
        self._strings[position] = text
        return text

    def extent(self, position: int, width: int) -> tuple[int, int]:
        """First byte and element count of the vector at `position`, `width` bytes an element."""
        count = self.scalar(packer.uint32, position)
        if count * width > self.size - position - 4:
            raise self.fail(
                position, f"{count} elements of {width} bytes do not fit before the end"
            )
        self.spend(4 + count * width, position)
        return position + 4, count


class Table:
    """A checked table; fields go by id (declaration order), absent numbers are 0."""

    __slots__ = ("_depth", "_size", "_vtable", "_vtable_size", "buffer", "position", "what")

    def __init__(self, buffer: FlatBuffer, position: int, what: str, depth: int) -> None:
        self.buffer, self.position, self.what, self._depth = buffer, position, what, depth
        if depth > MAX_DEPTH:
            raise buffer.fail(position, f"{what} is nested deeper than {MAX_DEPTH} tables")
        self._vtable = position - buffer.scalar(packer.soffset, position)
        self._vtable_size = buffer.scalar(packer.voffset, self._vtable)
        self._size = buffer.scalar(packer.voffset, self._vtable + 2)
        if (
            self._vtable_size < 4
            or self._vtable_size % 2
            or self._vtable + self._vtable_size > buffer.size
            or self._size < 4
            or position + self._size > buffer.size
        ):
            raise buffer.fail(
                position,
                f"{what} has a vtable of {self._vtable_size} bytes for a table of {self._size} "
                "bytes, which does not fit the buffer",
            )
        buffer.spend(self._size + 4, position)

    def fail(self, message: str) -> FormatError:
        """The error for what is wrong with this table."""
        return self.buffer.fail(self.position, f"{self.what}: {message}")

    def field(self, index: int, width: int) -> int | None:
        """Byte position of field `index`, or None when absent."""
        slot = 4 + 2 * index
        if slot + 2 > self._vtable_size:
            return None
        offset = self.buffer.scalar(packer.voffset, self._vtable + slot)
        if offset == 0:
            return None
        if offset < 4 or offset + width > self._size:
            raise self.fail(f"field {index} at offset {offset} is outside the table")
        return self.position + offset

    def _int(self, index: int, kind: Struct) -> int:
        position = self.field(index, kind.size)
        return 0 if position is None else self.buffer.scalar(kind, position)

    def u8(self, index: int) -> int:
        """Unsigned byte."""
        return self._int(index, packer.uint8)

    def i8(self, index: int) -> int:
        """Signed byte."""
        return self._int(index, packer.int8)

    def i32(self, index: int) -> int:
        """Signed 32-bit integer."""
        return self._int(index, packer.int32)

    def u32(self, index: int) -> int:
        """Unsigned 32-bit integer."""
        return self._int(index, packer.uint32)

    def i64(self, index: int) -> int:
        """Signed 64-bit integer."""
        return self._int(index, packer.int64)

    def u64(self, index: int) -> int:
        """Unsigned 64-bit integer."""
        return self._int(index, packer.uint64)

    def f64(self, index: int) -> float:
        """Double."""
        position = self.field(index, 8)
        if position is None:
            return 0.0
        return float(packer.float64.unpack_from(self.buffer.data, position)[0])

    def flag(self, index: int) -> bool:
        """Truth value; any byte but 0 is true."""
        return self.u8(index) != 0

    def string(self, index: int) -> str | None:
        """String, or None when absent."""
        position = self.field(index, 4)
        return None if position is None else self.buffer.string(self.buffer.follow(position))

    def text(self, index: int, field: str) -> str:
        """String that must be there; `FormatError` naming `field` otherwise."""
        value = self.string(index)
        if value is None:
            raise self.fail(f"{field} is missing")
        return value

    def table(self, index: int, what: str) -> Table | None:
        """Sub-table, or None when absent."""
        position = self.field(index, 4)
        if position is None:
            return None
        return Table(self.buffer, self.buffer.follow(position), what, self._depth + 1)

    def union(self, index: int, names: tuple[str, ...]) -> tuple[int, Table | None]:
        """Kind (field `index`) and table (field `index + 1`) of a union whose kinds are `names`.

        Kind 0 means none. A kind without a table, or one past `names`, is a `FormatError`.
        """
        kind = self.u8(index)
        if kind == 0:
            return 0, None
        if kind >= len(names):
            raise self.fail(f"union kind {kind} is unknown; kinds go from 0 to {len(names) - 1}")
        value = self.table(index + 1, names[kind])
        if value is None:
            raise self.fail(f"{names[kind]} is announced but missing")
        return kind, value

    def _vector(self, index: int, width: int) -> tuple[int, int]:
        position = self.field(index, 4)
        if position is None:
            return 0, 0
        return self.buffer.extent(self.buffer.follow(position), width)

    def has(self, index: int) -> bool:
        """Whether the field is present."""
        return self.field(index, 1) is not None

    def tables(self, index: int, what: str) -> list[Table]:
        """Vector of tables; empty when absent."""
        start, count = self._vector(index, 4)
        follow, depth = self.buffer.follow, self._depth + 1
        return [Table(self.buffer, follow(start + 4 * i), what, depth) for i in range(count)]

    def ints(self, index: int, kind: str) -> tuple[int, ...]:
        """Vector of integers of `kind` (i32, u32, i64, u64, u8); empty when absent."""
        return tuple(self._numbers(index, kind).tolist())

    def doubles(self, index: int) -> tuple[float, ...]:
        """Vector of doubles; empty when absent."""
        return tuple(self._numbers(index, "f64").tolist())

    def bools(self, index: int) -> tuple[bool, ...]:
        """Vector of truth values; empty when absent."""
        return tuple((self._numbers(index, "u8") != 0).tolist())

    def _numbers(self, index: int, kind: str) -> np.ndarray:
        dtype = np.dtype(_VECTOR_DTYPES[kind])
        start, count = self._vector(index, dtype.itemsize)
        return np.frombuffer(self.buffer.data, dtype, count, start)

    def span(self, index: int) -> tuple[int, int]:
        """First byte and length of a byte vector, unread; (0, 0) when absent."""
        return self._vector(index, 1)

    def blob(self, index: int) -> bytes:
        """Byte vector, copied; empty when absent."""
        start, count = self._vector(index, 1)
        return bytes(self.buffer.data[start : start + count])
