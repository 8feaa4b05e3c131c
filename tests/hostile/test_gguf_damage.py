"""Damaged and hostile GGUF files end in FormatError, soon and in little memory."""

import asyncio
import struct

import numpy as np
import pytest

from gguf_writer import gguf_bytes, header, padded, pair, record, string
from hostile.bounds import bounds
from webgpu_py.errors import FormatError
from webgpu_py.formats.gguf import read_gguf
from webgpu_py.sources import BytesSource

MANY = 2**63 - 1


def key(name, kind, rest):
    return string(name) + struct.pack("<I", kind) + rest


def nested(depth):
    inner = struct.pack("<IQ", 4, 0)
    for _ in range(depth):
        inner = struct.pack("<IQ", 9, 1) + inner
    return key("deep", 9, inner)


def with_tensors(*records, pairs=(), data=4096):
    return padded(header(pairs, records), 32) + bytes(data)


GOOD = gguf_bytes(
    {"general.architecture": "llama", "words": ["a", "bc"], "numbers": [1, 2, 3], "x": 0.5},
    {"w": ("F32", (3, 4), np.arange(12, dtype="<f4")), "v": ("Q8_0", (32,), bytes(34))},
)

HOSTILE = {
    "empty": (b"", "byte 4"),
    "three bytes": (b"GGU", "byte 4"),
    "a web page": (b"<!doctype html><html>not found</html>", "b'<!do'.*web page"),
    "version 1": (header([], [], version=1), "GGUF version 1"),
    "version 4": (header([], [], version=4), "GGUF version 4"),
    "big-endian": (header([], [], version=3 << 24), "version 3, big-endian"),
    "huge tensor count": (header([], [], counts=(MANY, 0)) + bytes(999), f"{MANY} tensors"),
    "huge pair count": (header([], [], counts=(0, MANY)) + bytes(999), f"{MANY} metadata pairs"),
    "many entries": (header([], [], counts=(0, 200_000)) + bytes(3 << 20), "at most 100000"),
    "huge key": (header([struct.pack("<Q", MANY)], []) + bytes(99), "metadata key of"),
    "huge string": (header([key("k", 8, struct.pack("<Q", MANY))], []) + bytes(99), "truncated"),
    "huge array": (header([key("k", 9, struct.pack("<IQ", 4, MANY))], []) + bytes(99), "truncated"),
    "huge string array": (
        header([key("k", 9, struct.pack("<IQ", 8, MANY))], []) + bytes(99),
        "strings",
    ),
    "string array past the end": (
        header([key("k", 9, struct.pack("<IQ", 8, 1000))], []) + bytes(99),
        "truncated",
    ),
    "string of an array past the end": (
        header([key("k", 9, struct.pack("<IQQ", 8, 2, MANY))], []) + bytes(99),
        "truncated",
    ),
    "huge nested array": (
        header([key("k", 9, struct.pack("<IQ", 9, MANY))], []) + bytes(99),
        f"{MANY} arrays",
    ),
    "deep nesting": (header([nested(100)], []) + bytes(99), "deeper than 4"),
    "unknown value type": (header([key("k", 13, bytes(8))], []) + bytes(99), "value type 13"),
    "unknown array type": (
        header([key("k", 9, struct.pack("<IQ", 77, 1))], []) + bytes(99),
        "value type 77",
    ),
    "key twice": (header([pair("k", 1), pair("k", 2)], []), "'k' stands twice"),
    "key not UTF-8": (header([pair(b"\xff", 1)], []), "not UTF-8"),
    "name twice": (
        with_tensors(record("w", (8,), 0, 0), record("w", (8,), 0, 32)),
        "'w' stands twice",
    ),
    "rank 0": (with_tensors(record("w", (), 0, 0)), "0 dimensions"),
    "rank 5": (with_tensors(record("w", (1,) * 5, 0, 0)), "5 dimensions"),
    "rank 2**31": (
        with_tensors(string("w") + struct.pack("<I", 2**31)),
        f"{2**31} dimensions",
    ),
    "empty dimension": (with_tensors(record("w", (4, 0), 0, 0)), "empty dimension"),
    "huge dimensions": (with_tensors(record("w", (2**62, 2**62), 0, 0)), "truncated"),
    "rows that are no whole blocks": (with_tensors(record("w", (4, 33), 8, 0)), "whole blocks"),
    "offset past the end": (with_tensors(record("w", (8,), 0, 2**40)), "ends at byte"),
    "offset near 2**64": (with_tensors(record("w", (8,), 0, 2**64 - 32)), "ends at byte"),
    "offset not aligned": (with_tensors(record("w", (8,), 0, 4)), "multiple of the alignment"),
    "overlap": (
        with_tensors(record("w", (16,), 0, 0), record("v", (8,), 0, 32)),
        "'v' .* lies over 'w'",
    ),
    "the same place twice": (
        with_tensors(record("w", (8,), 0, 0), record("v", (8,), 0, 0)),
        "lies over",
    ),
    "data missing": (with_tensors(record("w", (8,), 0, 0), data=31), "download it again"),
    "alignment 0": (header([pair("general.alignment", 0)], []), "alignment is 0"),
    "alignment 12": (header([pair("general.alignment", 12)], []), "alignment is 12"),
    "alignment NaN": (header([pair("general.alignment", float("nan"))], []), "alignment is nan"),
    "alignment true": (header([pair("general.alignment", True)], []), "alignment is True"),
    "alignment huge": (header([pair("general.alignment", 2**31)], []), "alignment is 2147483648"),
}


def read(raw, **options):
    return asyncio.run(read_gguf(BytesSource(raw, "model.gguf"), **options))


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_file(name):
    raw, message = HOSTILE[name]
    with bounds(0.5, 8 << 20), pytest.raises(FormatError, match=message):
        read(raw)


def test_every_truncation_is_refused():
    assert len(read(GOOD).tensors) == 2
    for length in range(len(GOOD) - 30):
        with pytest.raises(FormatError):
            read(GOOD[:length])


def test_a_header_above_the_bound_is_refused():
    raw = gguf_bytes({"t": "x" * 5000}, {})
    with pytest.raises(FormatError, match="1000 are read"):
        read(raw, max_header=1000)


def test_a_long_header_of_garbage_is_not_read_to_the_end():
    source = BytesSource(header([], [], counts=(0, 90_000)) + bytes(3 << 20))
    with pytest.raises(FormatError, match="stands twice"):
        asyncio.run(read_gguf(source))
