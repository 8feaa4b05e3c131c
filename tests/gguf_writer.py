"""Writes GGUF files for tests, right ones and, part by part, wrong ones.

    gguf_bytes({"general.name": "x", "x.count": ("u32", 7)}, {"a": ("F32", (2, 3), raw)})

A bare value gets the type that converters use: str, bool, int -> u32, float -> f32, a list of one
of these -> array. A pair `(type, value)` names it: u8 i8 u16 i16 u32 i32 f32 bool str u64 i64 f64,
or `array`.
"""

import struct

import numpy as np

from webgpu_py.quant.ggml import BY_NAME

TYPES = ("u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "str", "array", "u64", "i64", "f64")
FORMATS = dict(u8="B", i8="b", u16="H", i16="h", u32="I", i32="i", f32="f", bool="?", u64="Q")
FORMATS |= dict(i64="q", f64="d")


def string(text):
    raw = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(raw)) + raw


def named(value):
    """The type name and plain value of what a caller wrote."""
    if isinstance(value, tuple):
        return value
    for kind, name in ((bool, "bool"), (str, "str"), (bytes, "str"), (int, "u32"), (float, "f32")):
        if isinstance(value, kind):
            return name, value
    return "array", list(value)


def encode(kind, value):
    if kind == "str":
        return string(value)
    if kind == "array":
        items = [named(item) for item in value]
        inner = items[0][0] if items else "u32"
        body = b"".join(encode(inner, item) for _, item in items)
        return struct.pack("<IQ", TYPES.index(inner), len(items)) + body
    return struct.pack("<" + FORMATS[kind], value)


def pair(key, value):
    kind, plain = named(value)
    return string(key) + struct.pack("<I", TYPES.index(kind)) + encode(kind, plain)


def record(name, dims, type_id, offset):
    """A tensor record; `dims` in NumPy order."""
    inner_first = tuple(dims)[::-1]
    head = string(name) + struct.pack("<I", len(inner_first))
    return head + struct.pack(f"<{len(inner_first)}QIQ", *inner_first, type_id, offset)


def header(pairs, records, version=3, counts=None, magic=b"GGUF"):
    """A header of ready-made parts; `counts` lies about (tensors, pairs)."""
    tensors, metadata = counts or (len(records), len(pairs))
    head = magic + struct.pack("<IQQ", version, tensors, metadata)
    return head + b"".join(pairs) + b"".join(records)


def padded(raw, alignment):
    return raw + bytes(-len(raw) % alignment)


def gguf_bytes(metadata, tensors, version=3):
    """A whole file; `tensors` maps a name to (type, NumPy dims, bytes or array)."""
    _, alignment = named(metadata.get("general.alignment", 32))
    records, data = [], b""
    for name, (kind, dims, raw) in tensors.items():
        raw = raw.tobytes() if isinstance(raw, np.ndarray) else raw
        records.append(record(name, dims, BY_NAME[kind].id, len(data)))
        data += padded(raw, alignment)
    pairs = [pair(key, value) for key, value in metadata.items()]
    return padded(header(pairs, records, version), alignment) + data
