"""Damaged and hostile safetensors files end in FormatError, soon and in little memory."""

import asyncio
import json

import pytest

from hostile.bounds import bounds
from webgpu_py.errors import FormatError
from webgpu_py.formats.safetensors import read_safetensors
from webgpu_py.sources import BytesSource


def with_header(header, data=16):
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(raw).to_bytes(8, "little") + raw + bytes(data)


def one(**changes):
    entry = {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16], **changes}
    return with_header({"w": {key: value for key, value in entry.items() if value is not None}})


def two(first, second):
    entry = {"dtype": "F32", "shape": [2]}
    return with_header(
        {"a": {**entry, "data_offsets": first}, "b": {**entry, "data_offsets": second}}
    )


GOOD = one()
HOSTILE = {
    "empty": (b"", "0 bytes"),
    "a web page": (b"<!doctype html><html></html>", "starts with b'<!doctyp.*web page"),
    "huge length": ((2**63).to_bytes(8, "little") + b"{}" + bytes(99), "at most 101 bytes"),
    "length past the end": ((200).to_bytes(8, "little") + b"{}" + bytes(99), "at most 101 bytes"),
    "no brace": (with_header(b" {}"), "starts with"),
    "not JSON": (with_header(b"{nonsense"), "no JSON"),
    "not UTF-8": (with_header(b'{"\xff": 1}'), "no JSON"),
    "deep JSON": (with_header(b'{"a":' * 100_000 + b"1" + b"}" * 100_000), "nested 100000 deep"),
    "deep, closed in strings": (
        with_header(b'{"a\\\\":["]]", ' + b"[" * 70 + b'"\\"]]]"' + b"]" * 71 + b"}"),
        "nested 72 deep",
    ),
    "long number": (with_header(b'{"a":' + b"9" * 100_000 + b"}"), "JSON|whole record"),
    "name twice": (with_header(b'{"a":1,"a":2}'), "stands twice"),
    "metadata not strings": (with_header({"__metadata__": {"a": 1}}), "__metadata__"),
    "metadata a list": (with_header({"__metadata__": []}), "__metadata__"),
    "record a number": (with_header({"w": 1}), "no whole record"),
    "record a list": (with_header({"w": [1, 2, 3]}), "no whole record"),
    "no dtype": (one(dtype=None), "no whole record"),
    "no offsets": (one(data_offsets=None), "no whole record"),
    "three offsets": (one(data_offsets=[0, 16, 32]), "no whole record"),
    "dtype a number": (one(dtype=3), "dtype or rank"),
    "shape a number": (one(shape=4), "no whole number"),
    "shape text": (one(shape="22"), "no whole number"),
    "shape of fractions": (one(shape=[2.0, 2]), "no whole number"),
    "shape of truths": (one(shape=[True, 4]), "no whole number"),
    "negative shape": (one(shape=[-2, -2]), "no whole number"),
    "huge shape": (one(shape=[2**62, 2**62]), "its place has 16"),
    "rank 1000": (one(shape=[1] * 1000), "dtype or rank"),
    "negative offset": (one(data_offsets=[-16, 0]), "no whole number"),
    "offsets turned round": (one(data_offsets=[16, 0]), "its place has -16"),
    "offset text": (one(data_offsets=["0", "16"]), "no whole number"),
    "offset past the end": (one(data_offsets=[2**60, 2**60 + 16]), "leaves a gap"),
    "too few bytes": (one(shape=[2, 3]), "takes 24 bytes, its place has 16"),
    "overlap": (two([0, 8], [4, 12]), "overlaps"),
    "the same place": (two([0, 8], [0, 8]), "overlaps"),
    "gap": (two([0, 8], [12, 20]), "leaves a gap"),
    "gap at the start": (two([8, 16], [16, 24]), "leaves a gap"),
    "truncated": (GOOD[:-1], "truncated"),
    "bytes left over": (GOOD + b"x", "not whole"),
}


def read(raw, **options):
    return asyncio.run(read_safetensors(BytesSource(raw, "m.safetensors"), **options))


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_file(name):
    raw, message = HOSTILE[name]
    with bounds(0.5, 8 << 20), pytest.raises(FormatError, match=message):
        read(raw)


def test_a_header_above_the_bound_is_refused():
    with pytest.raises(FormatError, match="at most 20 bytes"):
        read(GOOD, max_header=20)


def test_every_truncation_is_refused():
    assert len(read(GOOD).tensors) == 1
    for length in range(len(GOOD)):
        with pytest.raises(FormatError):
            read(GOOD[:length])
