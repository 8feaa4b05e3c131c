"""GGUF headers: every value type, ranges read, types refused by name."""

import asyncio

import numpy as np
import pytest

from gguf_writer import gguf_bytes, header, padded, pair, record
from webgpu_py.errors import FormatError, UnsupportedModel
from webgpu_py.formats.gguf import GGUFTensor, StringArray, read_gguf
from webgpu_py.formats.gguf_reader import FIRST_READ
from webgpu_py.quant.repack import dequantize
from webgpu_py.sources import BytesSource

METADATA = {
    "general.architecture": "llama",
    "a.u8": ("u8", 251),
    "a.i8": ("i8", -3),
    "a.u16": ("u16", 65533),
    "a.i16": ("i16", -30001),
    "a.u32": ("u32", 4294967291),
    "a.i32": ("i32", -2147483647),
    "a.f32": ("f32", 0.15625),
    "a.yes": True,
    "a.no": False,
    "a.u64": ("u64", 2**64 - 5),
    "a.i64": ("i64", -(2**63) + 1),
    "a.f64": ("f64", 0.1),
    "a.text": "größer 🎈",
    "a.empty": "",
}


class Counting(BytesSource):
    """Counts what is read; may claim to be longer than it is."""

    def __init__(self, data, nbytes=None):
        super().__init__(data, "model.gguf")
        self.held = self.nbytes
        self.nbytes = nbytes or self.held
        self.reads = []

    async def read(self, offset, nbytes):
        assert offset + nbytes <= self.nbytes
        self.reads.append((offset, nbytes))
        part = bytes(self._data[offset : min(offset + nbytes, self.held)])
        return part + bytes(nbytes - len(part))


def read(raw, **options):
    return asyncio.run(read_gguf(BytesSource(raw, "model.gguf"), **options))


@pytest.mark.parametrize("version", [2, 3])
def test_every_value_type(version):
    file = read(gguf_bytes(METADATA, {}, version))
    plain = {key: value[1] if type(value) is tuple else value for key, value in METADATA.items()}
    assert file.metadata == plain
    assert [type(value) for value in file.metadata.values()] == [type(v) for v in plain.values()]
    assert (file.version, file.alignment, file.tensors) == (version, 32, {})


def test_arrays():
    values = {
        "ints": [("i32", v) for v in (-1, 0, 7)],
        "floats": [0.5, -2.25, 1e30],
        "flags": [True, False, True],
        "longs": [("u64", 2**63 + 1), ("u64", 3)],
        "words": ["a", "", "ключ", "x" * 300],
        "nested": [("array", [("u8", 1), ("u8", 2)]), ("array", ["p", "q"]), ("array", [])],
        "none": [],
    }
    metadata = read(gguf_bytes(values, {})).metadata
    assert metadata["ints"].dtype == np.int32 and metadata["ints"].tolist() == [-1, 0, 7]
    assert metadata["floats"].tolist() == [0.5, -2.25, float(np.float32(1e30))]
    assert metadata["flags"].dtype == bool and metadata["flags"].tolist() == [True, False, True]
    assert metadata["longs"].tolist() == [2**63 + 1, 3]
    words = metadata["words"]
    assert isinstance(words, StringArray) and list(words) == values["words"]
    assert words[2] == words[-2] == "ключ" and words[1:3] == ["", "ключ"] and len(words) == 4
    assert list(words.raws()) == [word.encode() for word in values["words"]]
    assert words.raw(3) == b"x" * 300
    with pytest.raises(IndexError):
        words[4]
    nested = metadata["nested"]
    assert nested[0].tolist() == [1, 2] and list(nested[1]) == ["p", "q"] and len(nested[2]) == 0
    assert len(metadata["none"]) == 0


@pytest.mark.parametrize("alignment", [None, 8, 64, 4096])
def test_tensors_in_numpy_order_at_absolute_offsets(alignment):
    metadata = {"general.alignment": alignment} if alignment else {}
    q8 = np.random.default_rng(3).integers(0, 100, (2, 3, 34), np.uint8)
    raws = {
        "norm": ("F32", (5,), np.arange(5, dtype="<f4")),
        "embd": ("Q8_0", (2, 96), q8),
        "cube": ("F16", (2, 3, 4), np.arange(24, dtype="<f2")),
    }
    raw = gguf_bytes(metadata, raws)
    file = read(raw)
    assert file.alignment == (alignment or 32) and file.data_offset % file.alignment == 0
    assert list(file.tensors) == ["norm", "embd", "cube"]
    for name, (kind, dims, values) in raws.items():
        tensor = file.tensors[name]
        assert (tensor.type, tensor.dims, tensor.nbytes) == (kind, dims, values.nbytes)
        stored = raw[tensor.offset : tensor.offset + tensor.nbytes]
        assert stored == values.tobytes()
        assert dequantize(kind, stored, dims).shape == dims


def test_only_the_header_of_a_huge_file_is_read():
    rows = 40_000_000_000 // 4096
    records = [record("w", (rows, 1024), 0, 0), record("v", (8,), 0, rows * 4096)]
    head = header([pair("general.name", "big")], records)
    source = Counting(head, rows * 4096 + 4096)
    file = asyncio.run(read_gguf(source))
    assert file.tensors["v"] == GGUFTensor("v", "F32", (8,), file.data_offset + rows * 4096, 32)
    assert source.reads == [(0, FIRST_READ)]


def test_a_long_header_is_read_in_growing_ranges_without_repetition():
    words = [f"token {i}" * 20 for i in range(60_000)]
    raw = gguf_bytes({"a": words, "b": "after"}, {"w": ("F32", (4,), np.arange(4, dtype="<f4"))})
    source = Counting(raw + bytes(50 << 20))
    file = asyncio.run(read_gguf(source))
    assert list(file.metadata["a"]) == words and file.metadata["b"] == "after"
    ends = [offset + nbytes for offset, nbytes in source.reads]
    assert [offset for offset, _ in source.reads] == [0, *ends[:-1]]
    assert len(ends) <= 4 and ends[-1] < 3 * file.data_offset


def test_a_value_longer_than_the_first_read():
    text = "abcdefg" * (1 << 19)
    assert read(gguf_bytes({"t": text, "u": 3}, {})).metadata == {"t": text, "u": 3}


def test_types_that_do_not_run_are_refused_by_name_from_the_header():
    records = [
        record("fine", (32,), 0, 0),
        record("odd", (256,), 10, 128),
        record("odder", (256,), 10, 224),
        record("new", (256,), 250, 320),
    ]
    file = read(padded(header([], records), 32) + bytes(1000))
    with pytest.raises(UnsupportedModel, match=r"Q2_K in 2 tensors, first 'odd'; type 250 in 1"):
        file.require_supported()
    assert file.tensors["new"].nbytes == 0 and file.tensors["odd"].nbytes == 84


def test_one_part_of_a_split_model_is_refused():
    file = read(gguf_bytes({"split.count": ("u16", 3)}, {}))
    with pytest.raises(UnsupportedModel, match="one of 3 parts"):
        file.require_supported()


def test_strings_that_are_not_utf8():
    with pytest.raises(FormatError, match="value of 'k' is not UTF-8"):
        read(gguf_bytes({"k": b"\xff\xfe"}, {}))
    words = read(gguf_bytes({"k": [b"ok", b"\xff"]}, {})).metadata["k"]
    assert words.raw(1) == b"\xff"
    with pytest.raises(FormatError, match="string 1"):
        words[1]
