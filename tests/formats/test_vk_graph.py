"""Delegate blobs become graph IR one to one; their constants are located, not read."""

import asyncio
import json
from collections import Counter
from pathlib import Path

import pytest

import pte_writer as w
from webgpu_py.errors import FormatError, UnsupportedOperator
from webgpu_py.formats.pte import read_pte
from webgpu_py.formats.segments import Span
from webgpu_py.formats.vk_graph import read_vk_graph
from webgpu_py.graph.values import (
    Bool,
    BoolList,
    Double,
    DoubleList,
    Int,
    IntList,
    Node,
    Null,
    Port,
    String,
    SymInt,
    Tensor,
    TensorSpec,
    ValueList,
)
from webgpu_py.sources import BytesSource, FileSource

CASES = Path(__file__).parents[1] / "conformance" / "cases"
GIVEN = sorted(p for p in CASES.glob("*/*/model.pte") if p.parents[1].name != "own")


def read(blob, named=None):
    return asyncio.run(read_vk_graph(blob, named))


def span(data, name="named"):
    return Span(BytesSource(data, name), 0, len(data))


def test_every_value_kind_is_kept():
    values = [
        w.vk_null(),
        w.vk_int(-(2**62)),
        w.vk_double(0.25),
        w.vk_bool(True),
        w.vk_tensor("int8", [4, 2]),
        w.vk_list("int", [3, -1]),
        w.vk_list("double", [1.5, -2.0]),
        w.vk_list("bool", [True, False]),
        w.vk_list("value", [4, 0, 10]),
        w.vk_string("none"),
        w.vk_symint(-7),
    ]
    graph = read(w.vk_blob(values, [("aten.add.Tensor", [4, 4, 1, 4])], [4], [4]))
    assert graph.values == [
        Null(),
        Int(-(2**62)),
        Double(0.25),
        Bool(True),
        Tensor(TensorSpec("int8", (4, 2))),
        IntList((3, -1)),
        DoubleList((1.5, -2.0)),
        BoolList((True, False)),
        ValueList((4, 0, 10)),
        String("none"),
        SymInt(-7),
    ]
    assert graph.nodes == [Node("aten.add.Tensor", (4, 4, 1, 4))]
    assert graph.inputs == [Port("arg0", 4)]
    assert graph.outputs == [Port("out0", 4)]
    assert graph.constants == []


@pytest.mark.parametrize(
    ("stored", "device", "itemsize"),
    [
        ("bool", "bool", 1),
        ("uint8", "uint8", 1),
        ("int8", "int8", 1),
        ("int32", "int32", 4),
        ("float16", "float32", 2),
        ("float32", "float32", 4),
        ("float64", "float32", 8),
        ("int64", "int32", 8),
    ],
)
def test_dtypes_on_device_and_in_the_file(stored, device, itemsize):
    region = bytes(range(100))
    blob = w.vk_blob(
        [w.vk_tensor(stored, [3, 2], 1)], [], [], [0],
        constants=[(0, 0, None), (16, 0, None)], region=region,
    )  # fmt: skip
    graph = read(blob)
    assert graph.values[0].spec == TensorSpec(device, (3, 2))
    [constant] = graph.constants
    assert (constant.dtype, constant.nbytes, constant.key) == (stored, 6 * itemsize, None)
    assert asyncio.run(constant.source.read(constant.offset, 4)) == bytes([16, 17, 18, 19])


def test_absent_fields_mean_constant_zero_and_bool():
    table = w.Tab({0: w.Num("u8", 5), 1: w.Tab({1: w.Vec("u32", [3])})})
    graph = read(w.vk_blob([table], [], [], [], constants=[(0, 3, None)], region=b"\1\0\1"))
    assert graph.values[0] == Tensor(TensorSpec("bool", (3,)), 0)
    assert graph.constants[0].dtype == "bool"


def test_scalars_have_no_dimensions():
    table = w.Tab({0: w.Num("u8", 5), 1: w.Tab({0: w.Num("i8", 5), 2: w.Num("i32", -1)})})
    assert read(w.vk_blob([table], [], [], [])).values[0].spec.numel == 1


def test_named_constants_share_a_key_and_may_be_longer():
    values = [w.vk_tensor("uint8", [6], 0), w.vk_tensor("uint8", [2, 3], 1)]
    blob = w.vk_blob(
        values, [], [], [], constants=[(w.NAMED, 6, "k"), (w.NAMED, 6, "k"), (w.NAMED, 1, "gone")]
    )
    graph = read(blob, {"k": span(b"six bytes and more")})
    assert [(c.key, c.nbytes, c.spec.dims) for c in graph.constants] == [
        ("k", 6, (6,)),
        ("k", 6, (2, 3)),
    ]
    assert [v.constant for v in graph.values] == [0, 1]


def test_one_stored_constant_seen_by_two_tensors():
    values = [w.vk_tensor("int8", [4], 0), w.vk_tensor("int8", [4], 0), w.vk_tensor("int8", [2], 0)]
    graph = read(w.vk_blob(values, [], [], [], constants=[(0, 4, None)], region=b"abcd"))
    assert [v.constant for v in graph.values] == [0, 0, 1]
    assert [c.nbytes for c in graph.constants] == [4, 2]


def test_region_size_left_out_means_the_rest():
    blob = bytearray(
        w.vk_blob([w.vk_tensor("uint8", [4], 0)], [], [], [], constants=[(2, 4, None)],
                  region=b"0123456789")
    )  # fmt: skip
    blob[22:30] = bytes(8)
    [constant] = read(bytes(blob)).constants
    assert asyncio.run(constant.source.read(constant.offset, constant.nbytes)) == b"2345"


def test_a_blob_inside_a_file():
    blob = w.vk_blob([w.vk_tensor("uint8", [4], 0)], [], [], [], constants=[(0, 4, None)],
                     region=b"data")  # fmt: skip
    whole = BytesSource(b"before" + blob + b"after", "f.pte")
    graph = asyncio.run(read_vk_graph(Span(whole, 6, len(blob))))
    constant = graph.constants[0]
    assert constant.source is whole
    assert asyncio.run(whole.read(constant.offset, constant.nbytes)) == b"data"


@pytest.mark.parametrize(
    ("constants", "named", "message"),
    [
        ([], {}, "constant_id 0 is outside"),
        ([(w.NAMED, 4, None)], {}, "no inline offset and no named-data key"),
        ([(w.NAMED, 4, "")], {}, "no inline offset and no named-data key"),
        ([(w.NAMED, 4, "k")], {"other": b"abcd"}, "named constant 'k' not found"),
        ([(w.NAMED, 4, "k")], {"k": b"abc"}, "undersized: 3 bytes, its tensor needs 4"),
        ([(5, 4, None)], {}, "inline constant 0"),
        ([(2**63, 4, None)], {}, "inline constant 0"),
    ],
)
def test_bad_constants(constants, named, message):
    blob = w.vk_blob(
        [w.vk_tensor("uint8", [4], 0)], [], [], [], constants=constants, region=b"8 bytes."
    )
    with pytest.raises(FormatError, match=message):
        read(blob, {key: span(data) for key, data in named.items()})


def test_an_empty_constant_must_still_start_inside():
    values = [w.vk_tensor("uint8", [0], 0)]
    good = w.vk_blob(values, [], [], [], constants=[(8, 0, None)], region=b"8 bytes.")
    assert read(good).constants[0].nbytes == 0
    with pytest.raises(FormatError, match="inline constant 0"):
        read(w.vk_blob(values, [], [], [], constants=[(9, 0, None)], region=b"8 bytes."))


@pytest.mark.parametrize(
    ("values", "nodes", "inputs", "outputs", "message"),
    [
        ([w.vk_null()], [("op", [1])], [], [], "op: value 1 is outside 0 to 0"),
        ([w.vk_null()], [("op", [-1])], [], [], "value -1 is outside"),
        ([w.vk_null()], [], [3], [], "arg0: value 3 is outside"),
        ([w.vk_null()], [], [], [2**32 - 1], "out0: value 4294967295 is outside"),
        ([w.vk_int(1)], [], [0], [], r"arg0 \(value 0\) is Int, not a tensor"),
        ([w.vk_list("value", [0])], [], [], [], "entry 0 is a list itself"),
        ([w.vk_list("value", [5])], [], [], [], "list 0: value 5 is outside"),
        ([w.vk_tensor("int8", [2])], [], [0, 0], [], "an input twice"),
        ([w.vk_tensor("int8", [2**31, 2**31])], [], [], [], "tensor byte size overflows"),
        ([w.vk_tensor("int8", [1] * 17)], [], [], [], "17 dimensions, at most 16"),
    ],
)
def test_bad_graphs(values, nodes, inputs, outputs, message):
    with pytest.raises(FormatError, match=message):
        read(w.vk_blob(values, nodes, inputs, outputs))


def test_symbolic_inputs_are_refused_by_name():
    blob = w.vk_blob([w.vk_tensor("int8", [2]), w.vk_symint(3)], [], [0, 1], [])
    with pytest.raises(UnsupportedOperator, match=r"arg1 \(value 1\) is a symbolic integer"):
        read(blob)


@pytest.mark.parametrize(
    ("at", "value", "message"),
    [
        (4, b"XX", "identifier"),
        (8, (29).to_bytes(2, "little"), "header of 29 bytes"),
        (10, (8).to_bytes(4, "little"), "must follow each other"),
        (14, bytes(4), "flatbuffer of 0"),
        (14, b"\xff\xff\xff\x7f", "must follow each other"),
        (18, bytes(4), "must follow each other"),
        (18, b"\xff\xff\xff\xff", "constant region"),
        (22, b"\xff" * 8, "constant region"),
        (36, b"ZZ00", "is not VK00"),
    ],
)
def test_bad_headers(at, value, message):
    blob = bytearray(w.vk_blob([w.vk_null()], [], [], [], region=b"constants"))
    blob[at : at + len(value)] = value
    with pytest.raises(FormatError, match=message):
        read(bytes(blob))
    with pytest.raises(FormatError, match="29 bytes"):
        read(bytes(blob[:29]))


@pytest.mark.parametrize("path", GIVEN, ids=lambda p: p.parent.name)
def test_exported_graphs_hold_what_their_manifest_says(path):
    manifest = json.loads((path.parent / "manifest.json").read_text())

    async def graphs():
        files = [FileSource(p) for p in [path, *sorted(path.parent.glob("*.ptd"))]]
        try:
            program = await read_pte(files[0], files[1:])
            delegates = program.plan("forward").delegates
            return [await read_vk_graph(d.blob, program.named_data) for d in delegates]
        finally:
            for file in files:
                file.close()

    for i, graph in enumerate(asyncio.run(graphs())):
        assert Counter(node.op for node in graph.nodes) == manifest["vk_ops"][i]
        kinds = Counter(type(value).__name__ for value in graph.values)
        expected = manifest["value_types"][i]
        assert kinds == {k.replace("VkTensor", "Tensor"): n for k, n in expected.items()}
        assert len(graph.inputs) == len(manifest["vk_inputs"][i])
        assert len(graph.outputs) == len(manifest["vk_outputs"][i])
        assert sum(c.nbytes for c in graph.constants) == manifest["constants"][i]["bytes"]
