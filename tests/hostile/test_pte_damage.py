"""Damaged `.pte` files end in an error of ours, quickly and in bounded memory.

Whatever is done to a good file, reading all of it (program, delegate graphs, constants) works or
raises a `WebGPUPyError`; it never hangs, never eats memory, never raises anything else.
"""

import asyncio
import struct
from pathlib import Path

import pytest

import pte_writer as w
from hostile.bounds import bounds
from webgpu_py.errors import FormatError, WebGPUPyError
from webgpu_py.formats.pte import read_pte
from webgpu_py.formats.pte_records import PteTensor
from webgpu_py.formats.vk_graph import read_vk_graph
from webgpu_py.sources import BytesSource

CASES = Path(__file__).parents[1] / "conformance" / "cases"
SMALL = (CASES / "prepack/tied/model.pte").read_bytes()
MIXED = (CASES / "conv_with_clamp/dil2/model.pte").read_bytes()
CACHE = (CASES / "sdpa_with_kv_cache/incache_small_d/model.pte").read_bytes()
PTD = [p.read_bytes() for p in sorted((CASES / "external_constants/sharded_ptd").glob("*.ptd"))]
SHARDED = (CASES / "external_constants/sharded_ptd/model.pte").read_bytes()


async def read_all(data, external=()):
    """Everything in the file that has bytes."""
    files = [BytesSource(part, "x.ptd") for part in external]
    program = await read_pte(BytesSource(data, "x.pte"), files)
    for plan in program.plans.values():
        for delegate in plan.delegates:
            graph = await read_vk_graph(delegate.blob, program.named_data)
            for constant in graph.constants:
                await constant.source.read(constant.offset, constant.nbytes)
        for value in plan.values:
            if isinstance(value, PteTensor) and value.data is not None:
                await value.data.read()


def refused(data, external=()):
    with pytest.raises(WebGPUPyError) as caught:
        asyncio.run(read_all(data, external))
    return str(caught.value)


def survives(data, external=()):
    """Whether it was read; an error of ours is the only other way out."""
    try:
        asyncio.run(read_all(data, external))
    except WebGPUPyError:
        return False
    return True


def test_the_good_files_are_good():
    for data in (SMALL, MIXED, CACHE):
        assert survives(data)
    assert survives(SHARDED, PTD)


@pytest.mark.parametrize("data", [SMALL, CACHE[:]], ids=["tied", "cache"])
def test_truncated_anywhere(data):
    step = max(1, len(data) // 600)
    with bounds(60):
        for length in range(0, len(data), step):
            refused(data[:length])
        refused(data[:-1])


def test_truncated_ptd():
    with bounds(60):
        for length in range(0, len(PTD[0]), 7):
            refused(SHARDED, [PTD[0][:length], PTD[1]])


@pytest.mark.parametrize(
    "word",
    [
        pytest.param(0, id="to itself", marks=pytest.mark.slow),
        pytest.param(0x80000000, id="2^31"),
        pytest.param(0xFFFFFFF0, id="backwards"),
        pytest.param(1, id="one", marks=pytest.mark.slow),
        pytest.param(0x7FFFFFFF, id="largest", marks=pytest.mark.slow),
        pytest.param(0xFFFFFFFF, id="minus one", marks=pytest.mark.slow),
    ],
)
def test_every_word_replaced(word):
    """Offsets past the end, back to themselves or around the address space; counts of 2^31."""
    with bounds(60):
        for at in range(0, len(SMALL) - 3, 4):
            survives(SMALL[:at] + struct.pack("<I", word) + SMALL[at + 4 :])


def test_wrong_magic():
    assert "ET12" in refused(SMALL[:4] + b"ET99" + SMALL[8:])
    assert "ET12" in refused(b"GGUF" + bytes(100))
    # Without its extended header the program has segments nobody can find.
    assert "does not say where" in refused(SMALL[:8] + b"eh99" + SMALL[12:])


def test_segments_past_the_end_and_overlapping():
    plan = w.plan([w.null()], [], [], [])
    segments = [b"first segment", b"second segment"]
    for spans in ([(0, 13), (2**64 - 1, 14)], [(0, 2**64 - 1), (0, 1)], [(0, 17), (16, 14)]):
        refused(w.pte([plan], segments=segments, spans=spans))


def test_header_sizes_that_overflow():
    for at in (16, 24, 32):
        for value in (2**64 - 1, 2**63, 2**32, 1):
            refused(SMALL[:at] + value.to_bytes(8, "little") + SMALL[at + 8 :])


def test_missing_and_duplicate_named_keys():
    blob = w.vk_blob([w.vk_tensor("int8", [4], 0)], [], [], [], constants=[(w.NAMED, 4, "k")])
    plan = w.plan([w.null()], [], [], [], delegates=[w.delegate(0)])
    assert "named constant 'k' not found" in refused(w.pte([plan], segments=[blob]))
    twice = w.pte([plan], segments=[blob, b"data"], named=[("k", 1), ("k", 1)])
    assert "twice" in refused(twice)
    good = w.pte([plan], segments=[blob, b"data"], named=[("k", 1)])
    assert survives(good)
    assert "as well" in refused(good, [w.ptd({"k": b"data"})])


def test_lists_of_lists():
    """Nesting has no depth to speak of: lists hold plain values only."""
    lists = [w.int_list([i + 1]) for i in range(2000)] + [w.int_list([0])]
    assert "IntIds" in refused(w.pte([w.plan(lists, [], [], [])]))
    nested = [w.vk_list("value", [i + 1]) for i in range(2000)] + [w.vk_list("value", [0])]
    blob = w.vk_blob(nested, [], [], [])
    plan = w.plan([], [], [], [], delegates=[w.delegate(0)])
    with bounds():
        assert "list itself" in refused(w.pte([plan], segments=[blob]))


def fan_out(width):
    """A program whose `width` plans are one plan whose `width` values are one list of `width`."""
    vtables = struct.pack("<4H", 8, 8, 0, 4) + struct.pack("<5H", 10, 8, 0, 0, 4)
    vtables += struct.pack("<4H", 8, 9, 8, 4) + struct.pack("<3H", 6, 8, 4)
    out = bytearray(struct.pack("<I", 8 + len(vtables)) + b"ET12" + vtables)

    def table(vtable, tail):
        position = len(out)
        out.extend(struct.pack("<i", position - vtable) + tail)
        return position

    def same(count):
        """A vector of offsets, all to what is written next."""
        position = len(out)
        out.extend(struct.pack("<I", count))
        out.extend(b"".join(struct.pack("<I", 4 * (count - i)) for i in range(count)))
        return position

    table(8, struct.pack("<I", 4))
    same(width)
    table(16, struct.pack("<I", 4))
    same(width)
    table(26, struct.pack("<IB", 5, 7))
    table(34, struct.pack("<I", 4))
    out.extend(struct.pack("<I", width) + bytes(8 * width))
    return bytes(out)


@pytest.mark.parametrize("width", [1000, 30_000])
def test_offsets_that_overlap_run_out_of_budget(width):
    """A file of n bytes that refers to n^3 of them is refused in time proportional to n."""
    with bounds():
        assert "offsets overlap" in refused(fan_out(width))


def test_fan_out_of_one_is_sound():
    """The attack above is refused for its overlaps, not for how it is written."""
    with pytest.raises(FormatError, match="entry 0 is IntIds"):
        asyncio.run(read_all(fan_out(1).ljust(64, b"\0")))


def test_a_huge_file_is_not_read_whole():
    class Endless(BytesSource):
        """Claims 2^40 bytes and has the head of a program that fills them."""

        def __init__(self, head):
            super().__init__(head, "endless.pte")
            self.nbytes = 1 << 40

        async def read(self, offset, nbytes):
            assert nbytes < 1 << 20
            return await super().read(offset, nbytes)

    head = SMALL[:16] + (1 << 39).to_bytes(8, "little") + SMALL[24:64]
    for data in (head, head[:8] + b"none" + head[12:]):
        with bounds(), pytest.raises(FormatError, match="at most"):
            asyncio.run(read_pte(Endless(data)))
