"""Safetensors headers, single files and shards, read by ranges; and headers to write.

Layout, little-endian: u64 length of the header, the header (JSON, padded with spaces), the data.
The header maps a name to `{"dtype", "shape", "data_offsets": [begin, end]}`, offsets from the
start of the data, and `__metadata__` to strings. The tensors cover the data without gap or
overlap. A sharded model has an index beside its files: `{"weight_map": {tensor: file}}`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from ..errors import FormatError
from ..graph.values import Source
from .bounded_json import parse_json

MAX_HEADER = 32 << 20
MAX_RANK = 16
ITEMSIZE = {
    "BOOL": 1,
    "U8": 1,
    "I8": 1,
    "F8_E4M3": 1,
    "F8_E5M2": 1,
    "F8_E8M0": 1,
    "I16": 2,
    "U16": 2,
    "F16": 2,
    "BF16": 2,
    "I32": 4,
    "U32": 4,
    "F32": 4,
    "I64": 8,
    "U64": 8,
    "F64": 8,
}
"""Bytes per element of the dtypes that are known."""


@dataclass(frozen=True, slots=True)
class SafetensorsTensor:
    """A tensor record: bytes `offset` to `offset + nbytes` of the file, row-major."""

    name: str
    dtype: str
    dims: tuple[int, ...]
    offset: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class SafetensorsFile:
    """A parsed header: `metadata` strings, and `tensors` by name in the order of the data."""

    name: str
    metadata: dict[str, str]
    tensors: dict[str, SafetensorsTensor]
    data_offset: int


@dataclass(frozen=True, slots=True)
class ShardedTensors:
    """The tensors of a model in several files: each name's source and record."""

    tensors: dict[str, tuple[Source, SafetensorsTensor]]
    files: dict[str, SafetensorsFile]


async def read_safetensors(source: Source, max_header: int = MAX_HEADER) -> SafetensorsFile:
    """Read the header of a safetensors file in two ranged reads.

    Raises:
        FormatError: not a safetensors file, damaged or truncated, or a header above `max_header`.
    """
    if source.nbytes < 10:
        raise FormatError(f"{source.name}: {source.nbytes} bytes are no safetensors file")
    start = await source.read(0, 9)
    length = int.from_bytes(start[:8], "little")
    if start[8:] != b"{" or length > min(max_header, source.nbytes - 8):
        raise FormatError(
            f"{source.name}: starts with {start!r}, which is no safetensors header of at most "
            f"{min(max_header, source.nbytes - 8)} bytes — another format, a web page that was "
            "served in its place, or truncated"
        )
    entries = _object(source.name, await source.read(8, length))
    metadata = entries.pop("__metadata__", {})
    if not _is_strings(metadata):
        raise FormatError(f"{source.name}: __metadata__ must map strings to strings")
    data_offset = 8 + length
    records = [_record(source.name, name, entry) for name, entry in entries.items()]
    records.sort(key=lambda record: (record.offset, record.nbytes))
    _check_places(source, records, data_offset)
    tensors = {
        record.name: SafetensorsTensor(
            record.name, record.dtype, record.dims, data_offset + record.offset, record.nbytes
        )
        for record in records
    }
    return SafetensorsFile(source.name, metadata, tensors, data_offset)


async def read_sharded(
    index: bytes | str, open_file: Callable[[str], Awaitable[Source]]
) -> ShardedTensors:
    """Read the headers of all files that an index (`model.safetensors.index.json`) names.

    Args:
        index: the index file's content.
        open_file: gives the source of a file beside the index, by its name.

    Raises:
        FormatError: a damaged index, a file name that leaves the folder, or a tensor that is not
            in the file that the index names.
    """
    places = read_index(index)
    files: dict[str, SafetensorsFile] = {}
    sources: dict[str, Source] = {}
    for name in sorted(set(places.values())):
        sources[name] = await open_file(name)
        files[name] = await read_safetensors(sources[name])
    tensors = {}
    for name, file in places.items():
        record = files[file].tensors.get(name)
        if record is None:
            raise FormatError(
                f"{file}: the index says that tensor {name!r} is here, it is not — "
                "the files are not of one model; download all of them again"
            )
        tensors[name] = (sources[file], record)
    return ShardedTensors(tensors, files)


def read_index(index: bytes | str) -> dict[str, str]:
    """The `weight_map` of a sharded model's index: tensor name to file name."""
    raw = index.encode() if isinstance(index, str) else index
    if len(raw) > MAX_HEADER:
        raise FormatError(f"safetensors index of {len(raw)} bytes, at most {MAX_HEADER} are read")
    places = _object("safetensors index", raw).get("weight_map")
    if not places or not _is_strings(places):
        raise FormatError("safetensors index: weight_map must map tensor names to file names")
    for name in set(places.values()):
        if not name or name.startswith(".") or any(letter in name for letter in "/\\:?#\0"):
            raise FormatError(f"safetensors index: {name!r} is no plain file name")
    return dict(places)


def safetensors_header(
    tensors: Mapping[str, tuple[str, tuple[int, ...]]], metadata: Mapping[str, str] | None = None
) -> bytes:
    """The start of a safetensors file; the tensors' bytes follow it in the given order.

    Args:
        tensors: dtype and dimensions by name. Order by falling element size, so that every tensor
            is aligned.
        metadata: strings to keep in the file.
    """
    entries: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    end = 0
    for name, (dtype, dims) in tensors.items():
        begin, end = end, end + prod(dims) * ITEMSIZE[dtype]
        entries[name] = {"dtype": dtype, "shape": list(dims), "data_offsets": [begin, end]}
    header = json.dumps(entries, separators=(",", ":"), ensure_ascii=False).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header


def _record(file: str, name: str, entry: Any) -> SafetensorsTensor:
    """A checked record; its offset still counts from the start of the data."""
    try:
        dtype, dims, (begin, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
    except (TypeError, KeyError, ValueError) as error:
        raise FormatError(f"{file}: tensor {name!r} has no whole record: {error!r}") from error
    numbers = [begin, end, *dims] if isinstance(dims, list) else [None]
    if not isinstance(dtype, str) or len(numbers) > MAX_RANK + 2:
        raise FormatError(f"{file}: tensor {name!r} has a dtype or rank that cannot be read")
    if any(type(number) is not int or number < 0 for number in numbers):
        raise FormatError(f"{file}: tensor {name!r} has a shape or offset that is no whole number")
    expected = prod(dims) * ITEMSIZE.get(dtype, 0)
    if end < begin or (dtype in ITEMSIZE and end - begin != expected):
        raise FormatError(
            f"{file}: tensor {name!r} {dtype} {dims} takes {expected} bytes, its place has "
            f"{end - begin}"
        )
    return SafetensorsTensor(name, dtype, tuple(dims), begin, end - begin)


def _check_places(source: Source, records: list[SafetensorsTensor], data_offset: int) -> None:
    """The tensors cover the data exactly."""
    end, last = 0, "the header"
    for record in records:
        if record.offset != end:
            kind = "overlaps the one before" if record.offset < end else "leaves a gap"
            raise FormatError(
                f"{source.name}: tensor {record.name!r} at data byte {record.offset} {kind}, "
                f"which ends at {end}"
            )
        end += record.nbytes
        last = f"tensor {record.name!r}, the last,"
    if data_offset + end != source.nbytes:
        raise FormatError(
            f"{source.name}: {last} ends at byte {data_offset + end}, the file at "
            f"{source.nbytes} — it is truncated or not whole; download it again"
        )


def _object(file: str, raw: bytes) -> dict[str, Any]:
    """A JSON object."""
    parsed = parse_json(file, raw)
    if not isinstance(parsed, dict):
        raise FormatError(f"{file}: the header is a JSON {type(parsed).__name__}, not an object")
    return parsed


def _is_strings(value: Any) -> bool:
    """Whether a value maps strings to strings."""
    return isinstance(value, dict) and all(isinstance(part, str) for part in value.values())
