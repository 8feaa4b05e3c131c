"""Sources: exact ranges, short reads refused by name and numbers."""

import asyncio
import hashlib
from pathlib import Path

import pytest

from webgpu_py.errors import FormatError, LimitExceeded
from webgpu_py.sources import HASH_STEP, BytesSource, FileSource, check_sha256, give_up

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


class Download(BytesSource):
    """A source that a browser keeps, as far as who uses it can tell."""

    def __init__(self, data, sha256=None):
        super().__init__(data)
        self.sha256, self.calls = sha256, []

    async def read(self, offset, nbytes):
        self.calls.append(nbytes)
        return await super().read(offset, nbytes)

    async def verified(self, sha256):
        self.calls.append(sha256)

    async def discard(self):
        self.calls.append("discard")

    def close(self):
        self.calls.append("close")


def test_a_hash_is_made_in_steps_and_noted():
    data = bytes(HASH_STEP) + DATA
    right = hashlib.sha256(data).hexdigest()
    source = Download(data)
    asyncio.run(check_sha256(source, right.upper()))
    assert source.calls == [HASH_STEP, len(DATA), right]


def test_what_was_found_right_is_not_read_again():
    right = hashlib.sha256(DATA).hexdigest()
    source = Download(DATA, sha256=right)
    asyncio.run(check_sha256(source, right))
    assert source.calls == []


def test_another_hash_is_refused_with_both():
    right = hashlib.sha256(DATA).hexdigest()
    source = Download(DATA, sha256=right)
    with pytest.raises(FormatError, match=f"is {right}, {'0' * 64} was expected"):
        asyncio.run(check_sha256(source, "0" * 64))
    assert source.calls == [len(DATA)]


@pytest.mark.parametrize(
    ("error", "calls"),
    [(FormatError("damaged"), ["discard", "close"]), (LimitExceeded("too large"), ["close"])],
)
def test_only_what_is_damaged_is_not_kept(error, calls):
    source = Download(DATA)
    asyncio.run(give_up([source, BytesSource(DATA)], error))
    assert source.calls == calls
