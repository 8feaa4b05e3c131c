"""The look into a first layer: every architecture against float64 from the file's own blocks."""

import asyncio

import pytest

from models.test_architectures import GOLDENS, NAMES, golden
from webgpu_py import request_device
from webgpu_py.errors import ShapeError, WrongNumbers
from webgpu_py.formats.gguf import read_gguf
from webgpu_py.models.first_layer import build_first_layer, check_first_layer
from webgpu_py.sources import FileSource


async def look(name, spoil=0.0):
    device, ids = await request_device("cpu"), golden(name)["ids"]
    with FileSource(GOLDENS / f"{name}.gguf") as source:
        file = await read_gguf(source)
        layer = await build_first_layer(device, file, source)
        found = await layer.run(ids)
        with pytest.raises(ShapeError, match="takes 1 to 64"):
            await layer.run(ids * 2)
        layer.close()
        found["k"][-1, -1, -1] += spoil
        return await check_first_layer(device, file, source, ids, found)


@pytest.mark.parametrize("name", NAMES)
def test_agrees_with_float64(name):
    check = asyncio.run(look(name))
    assert check.max_abs_error < 1e-6 * check.largest
    assert 15 < check.snr_db < 45


def test_wrong_numbers_are_told():
    with pytest.raises(WrongNumbers, match=r"max abs error 1\.000e-01"):
        asyncio.run(look("llama3", spoil=0.1))
