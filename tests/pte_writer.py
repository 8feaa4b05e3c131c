"""Writes small `.pte` files, `.ptd` files and delegate blobs, sound or broken on purpose.

A flatbuffer is described by plain Python, `Tab({field id: value})`; a value is `Num(kind, n)`,
`Vec(kind, [numbers])`, a `str`, a `Tab` or a list of `Tab`s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import flatbuffers
import numpy as np

_PREPEND = {
    "u8": "PrependUint8Slot",
    "i8": "PrependInt8Slot",
    "i32": "PrependInt32Slot",
    "u32": "PrependUint32Slot",
    "i64": "PrependInt64Slot",
    "u64": "PrependUint64Slot",
    "f64": "PrependFloat64Slot",
}
_DTYPE = {
    "u8": np.uint8,
    "i32": np.int32,
    "u32": np.uint32,
    "i64": np.int64,
    "u64": np.uint64,
    "f64": np.float64,
}
NAMED = (1 << 64) - 1


@dataclass
class Num:
    kind: str
    value: float


@dataclass
class Vec:
    kind: str
    items: Any


@dataclass
class Tab:
    fields: dict[int, Any]


def flat(root: Tab, identifier: bytes) -> bytes:
    """The flatbuffer of `root`."""
    builder = flatbuffers.Builder(1024)
    builder.ForceDefaults(True)
    builder.Finish(_table(builder, root), file_identifier=identifier)
    return bytes(builder.Output())


def _table(builder: Any, table: Tab) -> int:
    offsets = {}
    for index, value in table.fields.items():
        if isinstance(value, str):
            offsets[index] = builder.CreateString(value)
        elif isinstance(value, Tab):
            offsets[index] = _table(builder, value)
        elif isinstance(value, Vec):
            offsets[index] = builder.CreateNumpyVector(np.asarray(value.items, _DTYPE[value.kind]))
        elif isinstance(value, list):
            entries = [_table(builder, entry) for entry in value]
            builder.StartVector(4, len(entries), 4)
            for entry in reversed(entries):
                builder.PrependUOffsetTRelative(entry)
            offsets[index] = builder.EndVector()
    builder.StartObject(max(table.fields, default=-1) + 1)
    for index, value in table.fields.items():
        if isinstance(value, Num):
            getattr(builder, _PREPEND[value.kind])(index, value.value, None)
        else:
            builder.PrependUOffsetTRelativeSlot(index, offsets[index], 0)
    return int(builder.EndObject())


# --- values and instructions of a `.pte` --------------------------------------------------------


def _union(kind: int, body: Tab) -> Tab:
    return Tab({0: Num("u8", kind), 1: body})


def null() -> Tab:
    return _union(1, Tab({}))


def int_value(value: int) -> Tab:
    return _union(2, Tab({0: Num("i64", value)}))


def bool_value(value: bool) -> Tab:
    return _union(3, Tab({0: Num("u8", value)}))


def double_value(value: float) -> Tab:
    return _union(4, Tab({0: Num("f64", value)}))


def string_value(value: str) -> Tab:
    return _union(6, Tab({0: value}))


def int_list(ids: list[int]) -> Tab:
    return _union(7, Tab({0: Vec("i64", ids)}))


def bool_list(items: list[bool]) -> Tab:
    return _union(9, Tab({0: Vec("u8", items)}))


def double_list(items: list[float]) -> Tab:
    return _union(8, Tab({0: Vec("f64", items)}))


def tensor_list(ids: list[int], optional: bool = False) -> Tab:
    return _union(11 if optional else 10, Tab({0: Vec("i32", ids)}))


SCALAR = {"uint8": 0, "int8": 1, "int16": 2, "int32": 3, "int64": 4, "float16": 5, "float32": 6,
          "float64": 7, "bool": 11, "bfloat16": 15}  # fmt: skip


def tensor(
    dtype: str,
    sizes: list[int],
    *,
    constant: int = 0,
    planned: bool = False,
    offset: int = 0,
    dynamic: int = 0,
    dim_order: list[int] | None = None,
    external: str | None = None,
    state: int | None = None,
) -> Tab:
    fields: dict[int, Any] = {
        0: Num("i8", SCALAR[dtype]),
        2: Vec("i32", sizes),
        3: Vec("u8", dim_order if dim_order is not None else range(len(sizes))),
        5: Num("u32", constant),
        8: Num("i8", dynamic),
    }
    if planned:
        low, high = offset & 0xFFFFFFFF, offset >> 32
        fields[6] = Tab({0: Num("u32", 1), 1: Num("u32", low), 2: Num("u32", high)})
    if external is not None:
        fields[9] = Tab({1: external, 2: Num("i8", 1)})
    elif state is not None:
        fields[9] = Tab({0: Num("u64", state)})
    return _union(5, Tab(fields))


def kernel_call(op: int, args: list[int]) -> Tab:
    return _union(1, Tab({0: Num("i32", op), 1: Vec("i32", args)}))


def delegate_call(delegate: int, args: list[int]) -> Tab:
    return _union(2, Tab({0: Num("i32", delegate), 1: Vec("i32", args)}))


def move_call(source: int, target: int) -> Tab:
    return _union(3, Tab({0: Num("i32", source), 1: Num("i32", target)}))


def jump_false(condition: int, destination: int) -> Tab:
    return _union(4, Tab({0: Num("i32", condition), 1: Num("i32", destination)}))


def free_call(value: int) -> Tab:
    return _union(5, Tab({0: Num("i32", value)}))


def delegate(index: int, name: str = "VulkanBackend", *, inline: bool = False) -> Tab:
    place = Tab({0: Num("i8", 0 if inline else 1), 1: Num("u32", index)})
    return Tab({0: name, 1: place, 2: [Tab({0: "option", 1: Vec("u8", [1, 2])})]})


def plan(
    values: list[Tab],
    instructions: list[Tab],
    inputs: list[int],
    outputs: list[int],
    *,
    name: str = "forward",
    operators: list[str] = (),  # type: ignore[assignment]
    delegates: list[Tab] = (),  # type: ignore[assignment]
) -> Tab:
    """One method; an operator is "aten::add.out", or "aten::copy_" without an overload."""
    split = [op.partition(".") for op in operators]
    return Tab(
        {
            0: name,
            2: values,
            3: Vec("i32", inputs),
            4: Vec("i32", outputs),
            5: [Tab({2: instructions})],
            6: [Tab({0: head, 1: tail}) for head, _, tail in split],
            7: list(delegates),
        }
    )


def segment_table(spans: list[tuple[int, int]]) -> list[Tab]:
    return [Tab({0: Num("u64", offset), 1: Num("u64", size)}) for offset, size in spans]


def pte(
    plans: list[Tab],
    *,
    segments: list[bytes] = (),  # type: ignore[assignment]
    constants: tuple[int, list[int]] | None = None,
    states: list[tuple[int, list[int]]] = (),  # type: ignore[assignment]
    named: list[tuple[str, int]] = (),  # type: ignore[assignment]
    inline: list[bytes] = (),  # type: ignore[assignment]
    old_constants: list[bytes] = (),  # type: ignore[assignment]
    spans: list[tuple[int, int]] | None = None,
    extra: dict[int, Any] | None = None,
) -> bytes:
    """A whole `.pte`; segments lie one after another, 16 bytes aligned, unless `spans` says."""
    data, places = _lay_out(segments)
    fields: dict[int, Any] = {0: Num("u32", 0), 1: list(plans)}
    if old_constants:
        fields[2] = [Tab({0: Vec("u8", list(blob))}) for blob in old_constants]
    if inline:
        fields[3] = [Tab({0: Vec("u8", list(blob))}) for blob in inline]
    fields[4] = segment_table(places if spans is None else spans)
    if constants is not None:
        fields[5] = Tab({0: Num("u32", constants[0]), 1: Vec("u64", constants[1])})
    if states:
        fields[6] = [Tab({0: Num("u32", i), 1: Vec("u64", offsets)}) for i, offsets in states]
    fields[7] = [Tab({0: key, 1: Num("u32", index)}) for key, index in named]
    return with_header(flat(Tab(fields | (extra or {})), b"ET12"), data, b"eh00")


def with_header(program: bytes, data: bytes, magic: bytes, length: int = 32) -> bytes:
    """Splice the extended header in after the identifier and put the segments behind."""
    program += b"\0" * (-len(program) % 16)
    size = len(program) + 32
    base = size + -size % 128
    header = magic + length.to_bytes(4, "little")
    header += b"".join(n.to_bytes(8, "little") for n in (size, base if data else 0, len(data)))
    root = int.from_bytes(program[:4], "little") + 32
    body = root.to_bytes(4, "little") + program[4:8] + header + program[8:]
    return body.ljust(base, b"\0") + data if data else body


def ptd(entries: dict[str, bytes]) -> bytes:
    """A `.ptd` file with one segment a key."""
    data, places = _lay_out(list(entries.values()))
    named = [Tab({0: key, 1: Num("u32", i)}) for i, key in enumerate(entries)]
    program = flat(Tab({0: Num("u32", 0), 1: segment_table(places), 2: named}), b"FT01")
    size = len(program) - 8
    base = (48 + size + 127) // 128 * 128
    root = int.from_bytes(program[:4], "little") + 40
    header = b"FH01" + (40).to_bytes(4, "little")
    header += b"".join(n.to_bytes(8, "little") for n in (48, size, base, len(data)))
    return (root.to_bytes(4, "little") + b"FT01" + header + program[8:]).ljust(base, b"\0") + data


def _lay_out(segments: list[bytes]) -> tuple[bytes, list[tuple[int, int]]]:
    data, places = b"", []
    for segment in segments:
        data += b"\0" * (-len(data) % 16)
        places.append((len(data), len(segment)))
        data += segment
    return data, places


# --- delegate blobs -----------------------------------------------------------------------------

VK = {"bool": 0, "uint8": 1, "int8": 2, "int32": 3, "float16": 4, "float32": 5, "float64": 6,
      "int64": 7}  # fmt: skip


def vk_tensor(dtype: str, dims: list[int], constant: int = -1) -> Tab:
    return _union(
        5,
        Tab(
            {
                0: Num("i8", VK[dtype]),
                1: Vec("u32", dims),
                2: Num("i32", constant),
                3: Num("i32", -1),
            }
        ),
    )


def vk_null() -> Tab:
    return _union(1, Tab({}))


def vk_int(value: int) -> Tab:
    return _union(2, Tab({0: Num("i64", value)}))


def vk_double(value: float) -> Tab:
    return _union(3, Tab({0: Num("f64", value)}))


def vk_bool(value: bool) -> Tab:
    return _union(4, Tab({0: Num("u8", value)}))


def vk_list(kind: str, items: list[Any]) -> Tab:
    """`kind` is int, double, bool or value."""
    code, width = {"int": (6, "i64"), "double": (7, "f64"), "bool": (8, "u8"), "value": (9, "i32")}[
        kind
    ]
    return _union(code, Tab({0: Vec(width, items)}))


def vk_string(value: str) -> Tab:
    return _union(10, Tab({0: value}))


def vk_symint(value: int) -> Tab:
    return _union(11, Tab({0: Num("i32", value)}))


def vk_blob(
    values: list[Tab],
    nodes: list[tuple[str, list[int]]],
    inputs: list[int],
    outputs: list[int],
    *,
    constants: list[tuple[int, int, str | None]] = (),  # type: ignore[assignment]
    region: bytes = b"",
) -> bytes:
    """A delegate blob; a constant is (offset, length, key), offset `NAMED` for named data."""
    stored = []
    for offset, length, key in constants:
        fields: dict[int, Any] = {0: Num("u64", offset), 1: Num("u64", length)}
        if key is not None:
            fields[2] = key
        stored.append(Tab(fields))
    chain = [
        Tab({0: Num("u32", i), 1: op, 2: Vec("i32", args)}) for i, (op, args) in enumerate(nodes)
    ]
    root = Tab(
        {0: "0", 1: chain, 2: values, 3: Vec("u32", inputs), 4: Vec("u32", outputs), 5: stored}
    )
    return vk_wrap(flat(root, b"VK00"), region)


def vk_wrap(program: bytes, region: bytes = b"") -> bytes:
    """The VH00 header, the flatbuffer and the constant region, each padded to 16 bytes."""
    padded = program + b"\0" * (-len(program) % 16)
    header = b"\0\0\0\0VH00" + (30).to_bytes(2, "little")
    header += b"".join(n.to_bytes(4, "little") for n in (32, len(program), 32 + len(padded)))
    header += len(region).to_bytes(8, "little")
    return header.ljust(32, b"\0") + padded + region
