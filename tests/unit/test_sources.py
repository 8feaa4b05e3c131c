"""Sources: exact ranges, short reads refused by name and numbers."""

import asyncio
from pathlib import Path

import pytest

from webgpu_py.errors import FormatError
from webgpu_py.sources import BytesSource, FileSource

DATA = bytes(range(251)) * 3


@pytest.fixture(params=["bytes", "file"])
def source(request, tmp_path: Path):
    if request.param == "bytes":
        yield BytesSource(DATA, "data.bin")
    else:
        path = tmp_path / "data.bin"
        path.write_bytes(DATA)
        with FileSource(path) as opened:
            yield opened


@pytest.mark.parametrize(
    "offset, nbytes", [(0, 0), (0, 753), (250, 3), (752, 1), (753, 0), (7, 100)]
)
def test_read_gives_the_range(source, offset, nbytes):
    assert source.nbytes == 753
    assert asyncio.run(source.read(offset, nbytes)) == DATA[offset : offset + nbytes]


@pytest.mark.parametrize("offset, nbytes", [(0, 754), (753, 1), (-1, 2), (3, -1), (2**63, 2**63)])
def test_read_past_the_end_is_refused(source, offset, nbytes):
    with pytest.raises(FormatError, match=r"data.bin: bytes .* it holds 753"):
        asyncio.run(source.read(offset, nbytes))


def test_memory_of_wider_items_counts_bytes():
    import array

    source = BytesSource(memoryview(array.array("I", [1, 2, 3])))
    assert source.nbytes == 12
    assert asyncio.run(source.read(4, 4)) == (2).to_bytes(4, "little")


def test_a_file_that_shrinks_while_open_is_refused(tmp_path: Path):
    path = tmp_path / "model.gguf"
    path.write_bytes(DATA)
    with FileSource(path) as opened:
        path.write_bytes(DATA[:10])
        with pytest.raises(FormatError, match="ended 90 bytes early"):
            asyncio.run(opened.read(0, 100))
