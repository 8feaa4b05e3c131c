"""The `.pte` container: header rules, values, instructions, where tensors get their bytes."""

import asyncio
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import pte_writer as w
from webgpu_py.errors import DtypeError, FormatError
from webgpu_py.formats.pte import read_pte
from webgpu_py.formats.pte_records import (
    DelegateCall,
    FreeCall,
    IntIds,
    JumpFalseCall,
    KernelCall,
    MoveCall,
    TensorIds,
)
from webgpu_py.graph.values import Bool, BoolList, Double, DoubleList, Int, Null, String
from webgpu_py.sources import BytesSource, FileSource

CASES = Path(__file__).parents[1] / "conformance" / "cases"
GIVEN = sorted(p for p in CASES.glob("*/*/model.pte") if p.parents[1].name != "own")


def load(data, external=()):
    files = [BytesSource(d, f"data{i}.ptd") for i, d in enumerate(external)]
    return asyncio.run(read_pte(BytesSource(data, "x.pte"), files))


def one_plan(values, calls=(), **kwargs):
    return w.plan(list(values), list(calls), [], [], **kwargs)


def test_every_value_kind_is_kept():
    values = [
        w.null(),
        w.int_value(-(2**63)),
        w.bool_value(True),
        w.double_value(-1e300),
        w.tensor("int64", [2, 3], dynamic=1, planned=True, offset=5 << 32 | 48),
        w.string_value("häé"),
        w.int_list([1, 1]),
        w.double_list([0.5, 2.5]),
        w.bool_list([True, False]),
        w.tensor_list([4]),
        w.tensor_list([4, -1], optional=True),
    ]
    plan = load(w.pte([one_plan(values)])).plan("forward")
    assert plan.values[:4] == (Null(), Int(-(2**63)), Bool(True), Double(-1e300))
    assert plan.values[5:9] == (
        String("häé"),
        IntIds((1, 1)),
        DoubleList((0.5, 2.5)),
        BoolList((True, False)),
    )
    assert plan.values[9:] == (TensorIds((4,)), TensorIds((4, -1), optional=True))
    tensor = plan.values[4]
    assert (tensor.dtype, tensor.sizes, tensor.dim_order) == ("int64", (2, 3), (0, 1))
    assert tensor.dynamic and not tensor.unbounded and tensor.data is None
    assert tensor.storage == (1, 5 << 32 | 48)
    assert (tensor.numel, tensor.nbytes) == (6, 48)


def test_instructions_operators_and_delegates():
    values = [w.bool_value(True), w.tensor("float32", [1]), w.tensor("float32", [1])]
    calls = [
        w.jump_false(0, 5),
        w.kernel_call(1, [1, 2, 2]),
        w.delegate_call(0, [1, 2]),
        w.move_call(1, 2),
        w.free_call(1),
    ]
    plan = one_plan(
        values,
        calls,
        operators=["aten::add.out", "aten::copy_"],
        delegates=[w.delegate(0), w.delegate(0, inline=True)],
    )
    program = load(w.pte([plan], segments=[b"segment"], inline=[b"inline!!"]))
    read = program.plan("forward")
    assert read.operators == ("aten::add.out", "aten::copy_")
    assert read.chains == (
        (
            JumpFalseCall(0, 5),
            KernelCall(1, (1, 2, 2)),
            DelegateCall(0, (1, 2)),
            MoveCall(1, 2),
            FreeCall(1),
        ),
    )
    first, second = read.delegates
    assert (first.id, first.compile_specs) == ("VulkanBackend", (("option", b"\1\2"),))
    assert asyncio.run(first.blob.read()) == b"segment"
    assert asyncio.run(second.blob.read()) == b"inline!!"


def test_constants_states_and_names_are_located_not_read():
    segment = bytes(range(200))
    values = [
        w.tensor("int16", [3, 2], constant=2, dim_order=[1, 0]),
        w.tensor("uint8", [5], constant=1, planned=True),
        w.tensor("uint8", [4], constant=1, planned=True, state=1),
        w.tensor("float32", [2], external="model.w"),
    ]
    data = w.pte(
        [one_plan(values)],
        segments=[segment, b"state one", b"state two"],
        constants=(0, [0, 16, 64]),
        states=[(1, [0, 2]), (2, [0, 3])],
        named=[("a", 1), ("b", 1)],
    )
    program = load(data, [w.ptd({"other": b"x", "model.w": b"abcdefgh"})])
    constant, first, second, outside = program.plan("forward").values
    assert (constant.dim_order, constant.mutable) == ((1, 0), False)
    assert asyncio.run(constant.data.read()) == segment[64:76]
    assert first.mutable and asyncio.run(first.data.read()) == b"ate o"
    assert second.mutable and asyncio.run(second.data.read()) == b"te t"
    assert asyncio.run(outside.data.read()) == b"abcdefgh"
    assert outside.data.source.name == "data0.ptd"
    assert sorted(program.named_data) == ["a", "b", "model.w", "other"]
    assert program.named_data["a"] == program.named_data["b"]
    assert asyncio.run(program.named_data["a"].read()) == b"state one"


def test_constants_of_old_files_lie_in_the_program():
    values = [w.tensor("float32", [2], constant=1)]
    floats = np.array([1.5, -2.5], "<f4").tobytes()
    program = load(w.pte([one_plan(values)], old_constants=[b"", floats]))
    assert asyncio.run(program.plan("forward").values[0].data.read()) == floats


def test_a_file_without_extended_header_is_all_flatbuffer():
    table = w.Tab({1: [one_plan([w.int_value(7)], name="get_vocab_size")]})
    program = load(w.flat(table, b"ET12"))
    assert program.plan("get_vocab_size").values == (Int(7),)
    with pytest.raises(FormatError, match=r"no method 'forward'; it has get_vocab_size"):
        program.plan("forward")


def test_header_without_segment_size():
    plan = one_plan([w.tensor("uint8", [4], constant=1)])
    data = bytearray(w.pte([plan], segments=[b"abcdefgh"], constants=(0, [0, 2])))
    data[12:16] = (24).to_bytes(4, "little")
    data[32:40] = (2**40).to_bytes(8, "little")  # ignored: not part of a 24-byte header
    program = load(bytes(data))
    assert asyncio.run(program.plan("forward").values[0].data.read()) == b"cdef"


def test_only_the_program_is_read(tmp_path):
    class Counting(BytesSource):
        seen = 0

        async def read(self, offset, nbytes):
            self.seen += nbytes
            return await super().read(offset, nbytes)

    plan = one_plan([w.tensor("uint8", [4], constant=1)], delegates=[w.delegate(1)])
    data = w.pte([plan], segments=[bytes(100_000), bytes(50_000)], constants=(0, [0, 2]))
    source = Counting(data, "x.pte")
    asyncio.run(read_pte(source))
    assert source.seen < len(data) - 150_000 + 64


def spoil(edit):
    """The message of the error that reading the edited program ends in."""
    with pytest.raises(FormatError) as caught:
        load(edit)
    return str(caught.value)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([w.tensor("float32", [2, -1])], "dimensions of 0 or more"),
        ([w.tensor("float32", [1] * 17)], "up to 16 dimensions"),
        ([w.tensor("float32", [2**31 - 1, 2**31 - 1])], "over 4294967296 bytes"),
        ([w.tensor("float32", [0, 2**31 - 1, 2**31 - 1])], "over 4294967296 bytes"),
        ([w.tensor("float32", [2, 3], dim_order=[0, 0])], "no permutation"),
        ([w.tensor("float32", [2, 3], dim_order=[0])], "no permutation"),
        ([w.tensor("float32", [2], constant=1)], "has no constants"),
        ([w.tensor("float32", [2], constant=1, planned=True)], "group 0 of 0"),
        ([w.tensor("float32", [2], dynamic=3)], "shape_dynamism 3"),
        ([w.tensor("float32", [2], external="w")], "external tensor 'w' is in none"),
        ([w.int_list([1])], "entry 1 is outside 0 to 0"),
        ([w.int_list([0])], "entry 0 is IntIds"),
        ([w.null(), w.tensor_list([0])], "entry 0 is Null"),
        ([w.tensor_list([-1])], "entry -1 is outside"),
        ([w.Tab({0: w.Num("u8", 12), 1: w.Tab({})})], "union kind 12"),
        ([w.Tab({0: w.Num("u8", 2)})], "announced but missing"),
    ],
)
def test_bad_values(values, message):
    assert message in spoil(w.pte([one_plan(values)]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (w.kernel_call(1, [0]), "operator 1 is outside 0 to 0"),
        (w.kernel_call(0, [2]), "argument 2 is outside 0 to 1"),
        (w.kernel_call(0, [-1]), "argument -1 is outside"),
        (w.delegate_call(0, [0]), "delegate 0 is outside"),
        (w.move_call(0, 9), "value 9 is outside"),
        (w.jump_false(0, 2), "instruction 2 is outside 0 to 1"),
        (w.jump_false(1, 0), "condition 1 is Int"),
        (w.free_call(1), "to free is Int"),
        (w.Tab({0: w.Num("u8", 0)}), "empty instruction"),
    ],
)
def test_bad_instructions(call, message):
    values = [w.bool_value(True), w.int_value(3)]
    plan = one_plan(values, [call], operators=["aten::add.out"])
    assert message in spoil(w.pte([plan]))


def test_unknown_scalar_type_names_what_is_known():
    table = w.tensor("float32", [2])
    table.fields[1].fields[0] = w.Num("i8", 12)
    with pytest.raises(DtypeError, match="scalar type 12"):
        load(w.pte([one_plan([table])]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"spans": [(0, 9)]}, "ends at byte 9"),
        ({"spans": [(0, 2**63)]}, "ends at byte 9223372036854775808"),
        ({"spans": [(0, 5), (4, 2)]}, "overlaps"),
        ({"named": [("k", 0), ("k", 0)]}, "key 'k' is there twice"),
        ({"named": [("k", 1)]}, "in segment 1 of 1"),
        ({"constants": (1, [0, 4])}, "segment 1 of 1"),
        ({"constants": (0, [0, 4]), "old_constants": [b"", b"abcd"]}, "both in"),
    ],
)
def test_bad_segments(arguments, message):
    plan = one_plan([w.null()])
    assert message in spoil(w.pte([plan], segments=[b"8 bytes."], **arguments))


@pytest.mark.parametrize(("offset", "index"), [(6, 1), (2**64 - 1, 1), (0, 2)])
def test_constants_that_stick_out(offset, index):
    plan = one_plan([w.tensor("uint8", [4], constant=index)])
    message = spoil(w.pte([plan], segments=[b"8 bytes."], constants=(0, [0, offset])))
    assert f"constant {index}" in message


def test_methods_of_one_name_and_no_method():
    assert "'forward' is there twice" in spoil(w.pte([one_plan([]), one_plan([])]))
    assert "no method" in spoil(w.pte([]))


def test_keys_of_several_files_must_differ():
    plan = one_plan([w.null()])
    data = w.pte([plan], segments=[b"x"], named=[("k", 0)])
    with pytest.raises(FormatError, match=r"'k' is in x\.pte as well"):
        load(data, [w.ptd({"k": b"x"})])


def test_damaged_ptd():
    data = w.pte([one_plan([w.null()])])
    good = w.ptd({"k": b"payload"})
    for bad in (good[:47], good[:-1], good[:4] + b"FT02" + good[8:], good[:12] + bytes(4)):
        with pytest.raises(FormatError, match=r"data0\.ptd"):
            load(data, [bad])


@pytest.mark.parametrize("path", GIVEN, ids=lambda p: p.parent.name)
def test_exported_files_hold_what_their_manifest_says(path):
    manifest = json.loads((path.parent / "manifest.json").read_text())
    external = [FileSource(p) for p in sorted(path.parent.glob("*.ptd"))]
    source = FileSource(path)
    try:
        plan = asyncio.run(read_pte(source, external)).plan("forward")
    finally:
        for file in (source, *external):
            file.close()
    calls = Counter(
        plan.operators[call.op] for call in plan.chains[0] if isinstance(call, KernelCall)
    )
    assert calls == manifest["cpu_ops"]
    assert len(plan.delegates) == manifest["n_delegates"]
    names = {"float32": "FLOAT", "int64": "LONG", "int32": "INT", "float16": "HALF",
             "bool": "BOOL", "int8": "CHAR", "uint8": "BYTE"}  # fmt: skip
    for ids, expected in ((plan.inputs, "method_inputs"), (plan.outputs, "method_outputs")):
        for index, text in zip(ids, manifest[expected], strict=True):
            value = plan.values[index]
            if text.startswith("T"):
                assert text.startswith(f"T{list(value.sizes)}:{names[value.dtype]}")
