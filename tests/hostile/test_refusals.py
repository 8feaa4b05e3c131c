"""Every refusal says where: the file's tensor, value, node, instruction, pair or record."""

import asyncio
import re
import struct

import numpy as np
import pytest

import pte_writer as w
from gguf_writer import header, pair, string
from hostile.test_pte_damage import refused
from webgpu_py.backends.cpu import CpuBridge
from webgpu_py.device import Device
from webgpu_py.errors import FormatError, WebGPUPyError
from webgpu_py.formats.gguf import read_gguf
from webgpu_py.program import load
from webgpu_py.sources import BytesSource

GOOD = w.tensor("float32", [2])


def method(values, calls=(), inputs=(), outputs=(), **more):
    return w.pte([w.plan(values, list(calls), list(inputs), list(outputs), **more)])


def delegated(values, nodes=(), inputs=(), outputs=()):
    blob = w.vk_blob(values, list(nodes), list(inputs), list(outputs))
    plan = w.plan([], [], [], [], delegates=[w.delegate(0)])
    return w.pte([plan], segments=[blob])


FILES = {
    "a tensor's rank": (method([GOOD, w.tensor("float32", [1] * 20)]), "method 'forward', value 1"),
    "a list's entry": (method([GOOD, w.int_list([7])]), "method 'forward'.*|list 1"),
    "an instruction": (
        method([GOOD, GOOD], [w.move_call(0, 1), w.move_call(0, 5)]),
        "method 'forward', chain 0, instruction 1",
    ),
    "an output": (method([GOOD], outputs=[0, 3]), "method 'forward', output 1"),
    "a delegate": (method([GOOD], delegates=[w.delegate(3)]), "method 'forward', delegate 0"),
    "a graph's tensor": (
        delegated([w.vk_int(1), w.vk_tensor("float32", [1] * 20)]),
        "value 1",
    ),
    "a graph's node": (
        delegated([w.vk_int(1)], [("aten.neg.default", [0, 0]), ("aten.neg.default", [0, 9])]),
        "aten.neg.default: value 9 .*node 1",
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_program_names_the_place(name):
    data, place = FILES[name]
    assert re.search(place, refused(data))


def test_a_portable_operator_names_its_instruction():
    values = [w.tensor("float32", [2]), w.tensor("float32", [3]), w.int_value(1), GOOD]
    calls = [w.move_call(0, 3), w.kernel_call(0, [0, 1, 2, 3, 3])]
    data = method(values, calls, [0, 1], [3], operators=["aten::add.out"])

    async def run():
        program = await load(data, device=Device(CpuBridge()))
        await program.forward(np.ones(2, np.float32), np.ones(3, np.float32))

    with pytest.raises(WebGPUPyError, match=r"aten::add\.out.*method 'forward', instruction 1"):
        asyncio.run(run())


def gguf_refused(raw):
    with pytest.raises(FormatError) as caught:
        asyncio.run(read_gguf(BytesSource(raw, "m.gguf")))
    return str(caught.value)


def test_a_header_that_is_cut_names_what_it_is_cut_in():
    cut = header([pair("a", 1), string("words") + struct.pack("<IQ", 8, 900)], [])
    assert "m.gguf: the value of 'words' reaches to" in gguf_refused(cut + bytes(20))
    cut = header([pair("a", 1), struct.pack("<Q", 900)], [])
    assert "m.gguf: metadata pair 1 reaches to" in gguf_refused(cut + bytes(99))
    cut = header([], [], counts=(2, 0)) + bytes(99)
    assert "tensor" in gguf_refused(cut)


def test_strings_of_an_array_are_named_by_its_key():
    strings = struct.pack("<IQ", 8, 1) + string(b"\xff")
    raw = header([string("words") + struct.pack("<I", 9) + strings], []) + bytes(64)
    words = asyncio.run(read_gguf(BytesSource(raw, "m.gguf"))).metadata["words"]
    with pytest.raises(FormatError, match=r"m\.gguf: 'words': string 0 is not UTF-8"):
        list(words)
