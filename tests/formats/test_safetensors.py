"""Safetensors: headers read by ranges and compared with the `safetensors` package's own files."""

import asyncio
import json
from pathlib import Path

import numpy as np
import pytest

from webgpu_py.errors import FormatError
from webgpu_py.formats.safetensors import (
    SafetensorsTensor,
    read_index,
    read_safetensors,
    read_sharded,
    safetensors_header,
)
from webgpu_py.quant.repack import dequantize
from webgpu_py.sources import BytesSource, FileSource

GOLDEN = Path(__file__).parent / "goldens" / "package.safetensors"
VALUES = {
    "f32": ("F32", np.arange(6, dtype="<f4").reshape(2, 3) / 3),
    "i64": ("I64", np.array([-(2**40), 5], "<i8")),
    "f16": ("F16", np.arange(7, dtype="<f2") - 2.5),
    "i32": ("I32", np.array([[7], [-8]], "<i4")),
    "u8": ("U8", np.arange(5, dtype=np.uint8)),
    "bool": ("BOOL", np.array([True, False, True])),
    "scalar": ("F32", np.array(0.25, "<f4")),
    "empty": ("F32", np.zeros((0, 4), "<f4")),
}


def file_of(values, metadata=None):
    header = safetensors_header({k: (d, v.shape) for k, (d, v) in values.items()}, metadata)
    return header + b"".join(value.tobytes() for _, value in values.values())


def read(raw, **options):
    return asyncio.run(read_safetensors(BytesSource(raw, "m.safetensors"), **options))


def test_a_file_of_the_package():
    with FileSource(GOLDEN) as source:
        file = asyncio.run(read_safetensors(source))
        assert file.metadata == {"format": "pt", "note": "größer"}
        assert set(file.tensors) == {"embed", "half", "brain", "ids"}
        embed = file.tensors["embed"]
        raw = asyncio.run(source.read(embed.offset, embed.nbytes))
        values = dequantize("F32", raw, embed.dims)
        assert np.array_equal(values, np.arange(12, dtype=np.float32).reshape(3, 4) / 7)
        brain = file.tensors["brain"]
        assert (brain.dtype, brain.dims, brain.nbytes) == ("BF16", (2, 3), 12)
        raw = asyncio.run(source.read(brain.offset, brain.nbytes))
        assert dequantize("BF16", raw, (2, 3)).tolist() == [
            [1.0, -2.5, 0.15625],
            [3.0, 3.140625, 0.0],
        ]


def test_what_is_written_is_read():
    raw = file_of(VALUES, {"a": "b"})
    file = read(raw)
    assert file.metadata == {"a": "b"} and file.data_offset % 8 == 0
    assert set(file.tensors) == set(VALUES)
    for name, (dtype, value) in VALUES.items():
        tensor = file.tensors[name]
        assert (tensor.dtype, tensor.dims, tensor.nbytes) == (dtype, value.shape, value.nbytes)
        assert raw[tensor.offset : tensor.offset + tensor.nbytes] == value.tobytes()


def test_only_the_header_is_read():
    class Counting(BytesSource):
        reads = ()

        async def read(self, offset, nbytes):
            self.reads += ((offset, nbytes),)
            return await super().read(offset, nbytes)

    raw = file_of(VALUES)
    source = Counting(raw)
    file = asyncio.run(read_safetensors(source))
    assert source.reads == ((0, 9), (8, file.data_offset - 8))


def test_a_dtype_that_is_not_known_has_the_bytes_the_header_says():
    new = b'{"a":{"dtype":"F4","shape":[4],"data_offsets":[0,2]}}'
    file = read(len(new).to_bytes(8, "little") + new + b"ab")
    assert file.tensors["a"] == SafetensorsTensor("a", "F4", (4,), 8 + len(new), 2)


def sharded(places, files):
    async def open_file(name):
        return BytesSource(files[name], name)

    index = json.dumps({"metadata": {"total_size": 1}, "weight_map": places})
    return asyncio.run(read_sharded(index, open_file))


def test_shards():
    files = {
        "one.safetensors": file_of({k: VALUES[k] for k in ("f32", "i64")}),
        "two.safetensors": file_of({k: VALUES[k] for k in ("f16", "u8")}),
    }
    places = {"f32": "one.safetensors", "u8": "two.safetensors", "f16": "two.safetensors"}
    model = sharded(places, files)
    assert list(model.tensors) == ["f32", "u8", "f16"] and list(model.files) == list(files)
    source, tensor = model.tensors["u8"]
    assert source.name == "two.safetensors"
    assert asyncio.run(source.read(tensor.offset, tensor.nbytes)) == bytes(range(5))
    with pytest.raises(FormatError, match=r"one.safetensors: the index says that tensor 'u8'"):
        sharded({"u8": "one.safetensors"}, files)


@pytest.mark.parametrize(
    "name", ["../x.safetensors", "/x", "a/b", "a\\b", "", ".hidden", "http://x", "a?b", "a\0b"]
)
def test_file_names_that_leave_the_folder_are_refused(name):
    with pytest.raises(FormatError, match="no plain file name"):
        read_index(json.dumps({"weight_map": {"w": name}}))


@pytest.mark.parametrize(
    "index", ["", "[]", "{}", '{"weight_map": {}}', '{"weight_map": {"a": 1}}']
)
def test_damaged_index(index):
    with pytest.raises(FormatError, match="safetensors index"):
        read_index(index)
