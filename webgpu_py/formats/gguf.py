"""GGUF headers (versions 2 and 3): metadata and tensor records, read by ranges.

Layout, little-endian: `GGUF`, u32 version, u64 tensors, u64 pairs; the pairs (string key, u32
type, value); the tensor records (string name, u32 rank, u64 dimensions innermost first, u32 type,
u64 offset from the data start); padding to `general.alignment`; data. A string is u64 length and
UTF-8, an array is u32 element type, u64 count and its elements.

Only the header is read, in growing ranges, and only its unparsed rest is held. Every length is
checked against what the file can still hold before anything of that length is made, so a damaged
or hostile file ends in FormatError soon and in little memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from ..errors import FormatError, UnsupportedModel
from ..graph.values import Source
from ..quant.ggml import BY_ID, BY_NAME, SUPPORTED
from .gguf_reader import HeaderReader, Metadata, MetadataValue, StringArray

__all__ = ["GGUFFile", "GGUFTensor", "Metadata", "MetadataValue", "StringArray", "read_gguf"]

Dims: TypeAlias = tuple[int, ...]

MAX_HEADER = 256 << 20
MAX_ENTRIES = 100_000
MAX_RANK = 4
MAX_ALIGNMENT = 1 << 16
DEFAULT_ALIGNMENT = 32
SMALLEST_PAIR = 8 + 4 + 1
SMALLEST_TENSOR = 8 + 4 + 8 + 4 + 8


@dataclass(frozen=True, slots=True)
class GGUFTensor:
    """A tensor record: dimensions in NumPy order, bytes `offset` to `offset + nbytes` of the file.

    `type` is the name of its type, or `type 123` with `nbytes` 0 for a number that is not known.
    """

    name: str
    type: str
    dims: Dims
    offset: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class GGUFFile:
    """A parsed header: `metadata` by key and `tensors` by name, both in file order."""

    name: str
    version: int
    metadata: Metadata
    tensors: dict[str, GGUFTensor]
    alignment: int
    data_offset: int

    def require_supported(self) -> None:
        """UnsupportedModel, by name, unless all tensors can run.

        Needs the header only, so it comes before any download of weights.
        """
        parts = self.metadata.get("split.count", 1)
        if isinstance(parts, int) and parts > 1:
            raise UnsupportedModel(
                f"{self.name}: one of {parts} parts of a split model — join them with "
                "`llama-gguf-split --merge` and load the result"
            )
        refused: dict[str, list[str]] = {}
        for name, tensor in self.tensors.items():
            if tensor.type not in SUPPORTED:
                refused.setdefault(tensor.type, []).append(name)
        if refused:
            seen = "; ".join(
                f"{kind} in {len(of)} tensors, first {of[0]!r}" for kind, of in refused.items()
            )
            raise UnsupportedModel(
                f"{self.name}: tensor types that do not run here: {seen} — "
                f"use a file with {', '.join(SUPPORTED)}"
            )


async def read_gguf(source: Source, max_header: int = MAX_HEADER) -> GGUFFile:
    """Read the header of a GGUF file through ranged reads of `source`.

    Raises:
        FormatError: not a GGUF file, damaged, truncated, or a header above `max_header` bytes.
    """
    reader = HeaderReader(source, max_header)
    version, tensor_count, pair_count = await reader.item(_head, "its beginning")
    _check_count(source, "tensors", tensor_count, SMALLEST_TENSOR)
    _check_count(source, "metadata pairs", pair_count, SMALLEST_PAIR)
    metadata: Metadata = {}
    for index in range(pair_count):
        key, value = await reader.item(HeaderReader.pair, f"metadata pair {index}")
        if key in metadata:
            raise FormatError(f"{source.name}: metadata key {key!r} stands twice")
        metadata[key] = value
    alignment = _alignment(source.name, metadata)
    records = [await reader.item(_record, f"tensor record {i}") for i in range(tensor_count)]
    data_offset = -(-reader.position // alignment) * alignment
    tensors: dict[str, GGUFTensor] = {}
    for name, dims, type_id, offset in records:
        if name in tensors:
            raise FormatError(f"{source.name}: tensor {name!r} stands twice")
        if offset % alignment:
            raise FormatError(
                f"{source.name}: tensor {name!r} starts at {offset}, which is not a multiple of "
                f"the alignment {alignment}"
            )
        tensors[name] = _tensor(source.name, name, dims, type_id, data_offset + offset)
    _check_places(source, tensors, data_offset)
    return GGUFFile(source.name, version, metadata, tensors, alignment, data_offset)


def _head(reader: HeaderReader) -> tuple[int, int, int]:
    """Magic, version and both counts."""
    magic = reader.take(4)
    if magic != b"GGUF":
        raise FormatError(
            f"{reader.name}: starts with {magic!r}, a GGUF file with b'GGUF' — "
            "is it another format, or a web page that was served in its place?"
        )
    version = reader.u32()
    if version not in (2, 3):
        swapped = int.from_bytes(version.to_bytes(4, "big"), "little")
        raise FormatError(
            f"{reader.name}: GGUF version {swapped}, big-endian — only little-endian files run"
            if swapped in (1, 2, 3)
            else f"{reader.name}: GGUF version {version}, 2 and 3 are read — convert it anew"
        )
    return version, reader.u64(), reader.u64()


def _record(reader: HeaderReader) -> tuple[str, Dims, int, int]:
    """One tensor record as stored: name, dimensions in NumPy order, type number, offset."""
    name = reader.text("a tensor name", limit=65535)
    rank = reader.u32()
    if not 1 <= rank <= MAX_RANK:
        raise FormatError(
            f"{reader.name}: tensor {name!r} has {rank} dimensions, 1 to {MAX_RANK} are allowed"
        )
    dims = tuple(reader.u64() for _ in range(rank))[::-1]
    return name, dims, reader.u32(), reader.u64()


def _tensor(file: str, name: str, dims: Dims, type_id: int, offset: int) -> GGUFTensor:
    """Type name and byte count of a record."""
    if 0 in dims:
        raise FormatError(f"{file}: tensor {name!r} has an empty dimension: {list(dims)}")
    kind = BY_ID.get(type_id)
    if kind is None:
        return GGUFTensor(name, f"type {type_id}", dims, offset, 0)
    if dims[-1] % kind.elements:
        raise FormatError(
            f"{file}: tensor {name!r} {list(dims)} of type {kind.name} has rows that are not "
            f"whole blocks of {kind.elements}"
        )
    return GGUFTensor(name, kind.name, dims, offset, prod(dims) // kind.elements * kind.nbytes)


def _check_count(source: Source, what: str, count: int, smallest: int) -> None:
    if count > MAX_ENTRIES or count * smallest > source.nbytes:
        raise FormatError(
            f"{source.name}: claims {count} {what} in {source.nbytes} bytes — the file is damaged "
            f"(at most {MAX_ENTRIES} are read)"
        )


def _alignment(file: str, metadata: Metadata) -> int:
    value = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
    if type(value) is not int or not 8 <= value <= MAX_ALIGNMENT or value % 8:
        raise FormatError(
            f"{file}: general.alignment is {value!r}, allowed are multiples of 8 up to "
            f"{MAX_ALIGNMENT}"
        )
    return value


def _check_places(source: Source, tensors: dict[str, GGUFTensor], data_offset: int) -> None:
    """Every tensor lies in the file and none over another."""
    end, before = data_offset, ""
    for tensor in sorted(tensors.values(), key=lambda tensor: (tensor.offset, tensor.nbytes)):
        if tensor.offset < end and tensor.type in BY_NAME:
            raise FormatError(
                f"{source.name}: tensor {tensor.name!r} at byte {tensor.offset} lies over "
                f"{before!r}, which ends at {end}"
            )
        if tensor.offset + tensor.nbytes > source.nbytes:
            raise FormatError(
                f"{source.name}: tensor {tensor.name!r} ends at byte "
                f"{tensor.offset + tensor.nbytes}, the file at {source.nbytes} — "
                "it is truncated; download it again"
            )
        end, before = tensor.offset + tensor.nbytes, tensor.name
