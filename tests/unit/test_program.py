"""Methods of a program: instructions, state, delegates, dtypes at the boundary, errors at load."""

import asyncio
import json
from pathlib import Path

import numpy as np
import pytest

import pte_writer as w
import webgpu_py as wg
from webgpu_py.errors import (
    DtypeError,
    FormatError,
    IndexOutOfRange,
    ShapeError,
    UnsupportedOperator,
)
from webgpu_py.method import MAX_JUMPS_BACK
from webgpu_py.program import load

CASES = Path(__file__).parents[1] / "conformance" / "cases"
F32 = np.float32


def call(data, *runs, method="forward", external=None, between=None):
    """Outputs of several runs on one loaded program (a result each)."""

    async def go():
        device = await wg.request_device("cpu")
        program = await load(data, device=device, external=external)
        try:
            results = []
            for inputs in runs:
                results.append(await program.method(method).run(inputs))
                if between:
                    await between(program)
            return results
        finally:
            program.close()

    return asyncio.run(go())


def kernels(values, calls, inputs, outputs, operators, **kwargs):
    return w.pte([w.plan(values, calls, inputs, outputs, operators=operators)], **kwargs)


def test_kernel_calls_and_live_shapes():
    values = [w.tensor("float32", [4, 3], dynamic=1), w.tensor("float32", [3]), w.int_value(2),
              w.tensor("float32", [4, 3], planned=True, dynamic=1)]  # fmt: skip
    data = kernels(values, [w.kernel_call(0, [0, 1, 2, 3, 3])], [0, 1], [3], ["aten::add.out"])
    b = np.array([1, 2, 3], F32)
    for rows in (4, 1, 3):
        a = np.arange(3 * rows, dtype=F32).reshape(rows, 3)
        [result] = call(data, [a, b])
        np.testing.assert_array_equal(result.outputs[0], a + 2 * b)


def test_symbolic_sizes_reach_lists():
    """reshape(x, [size * 2, 2]) as exports write it."""
    values = [w.tensor("float32", [8, 4], dynamic=1), w.int_value(0), w.int_value(0),
              w.int_value(2), w.int_value(0), w.int_list([4, 3]),
              w.tensor("float32", [16, 2], planned=True, dynamic=1)]  # fmt: skip
    calls = [w.kernel_call(0, [0, 1, 2]), w.kernel_call(1, [2, 3, 4]), w.kernel_call(2, [0, 5, 6])]
    operators = ["aten::sym_size.int", "executorch_prim::mul.Scalar",
                 "executorch_prim::et_view.default"]  # fmt: skip
    data = kernels(values, calls, [0], [6], operators)
    for rows in (8, 3):
        x = np.arange(4 * rows, dtype=F32).reshape(rows, 4)
        [result] = call(data, [x])
        assert result.outputs[0].tolist() == x.reshape(2 * rows, 2).tolist()
        assert not np.shares_memory(result.outputs[0], x)


def branch():
    """y = x + x if p else x * x; and the condition may be a tensor or a truth value."""
    return [
        w.jump_false(0, 4),
        w.kernel_call(0, [1, 1, 2, 3, 3]),
        w.move_call(3, 5),
        w.jump_false(6, 6),
        w.kernel_call(1, [1, 1, 4, 4]),
        w.move_call(4, 5),
        w.free_call(3),
    ]


@pytest.mark.parametrize("condition", [w.bool_value(True), w.tensor("bool", [2])])
def test_jumps_and_moves(condition):
    x = w.tensor("float32", [2])
    values = [condition, x, w.int_value(1), x, x, x, w.bool_value(False)]
    operators = ["aten::add.out", "aten::mul.out"]
    data = kernels(values, branch(), [0, 1], [5], operators)
    scalar = condition.fields[0].value == 3
    yes, no = (True, False) if scalar else (np.array([True, True]), np.array([True, False]))
    given = np.array([3, 5], F32)
    first, second = call(data, [yes, given], [no, given])
    assert first.outputs[0].tolist() == [6, 10]
    assert second.outputs[0].tolist() == [9, 25]


def test_loops_collect_slices_and_start_afresh():
    """map(lambda row: row + row, x), as exports write it; `values[2]` counts."""
    row = w.tensor("float32", [2], planned=True)
    values = [w.tensor("float32", [3, 2], dynamic=1),
              w.tensor("float32", [3, 2], planned=True, dynamic=1), w.int_value(0), w.int_value(0),
              w.int_value(0), w.int_value(1), row, row, w.bool_value(False)]  # fmt: skip
    operators = ["aten::sym_size.int", "aten::select_copy.int_out", "aten::add.out",
                 "executorch_prim::et_copy_index.tensor", "executorch_prim::add.Scalar",
                 "executorch_prim::eq.Scalar", "executorch_prim::sub.Scalar"]  # fmt: skip
    calls = [
        w.kernel_call(0, [0, 4, 3]),
        w.kernel_call(1, [0, 4, 2, 6, 6]),
        w.kernel_call(2, [6, 6, 5, 7, 7]),
        w.kernel_call(3, [1, 7, 2]),
        w.kernel_call(4, [2, 5, 2]),
        w.kernel_call(5, [2, 3, 8]),
        w.jump_false(8, 1),
        w.kernel_call(6, [2, 3, 2]),
    ]
    data = kernels(values, calls, [0], [1], operators)
    x = np.arange(6, dtype=F32).reshape(3, 2)
    first, second = call(data, [x], [x[:2] - 9])
    assert first.outputs[0].tolist() == (2 * x).tolist()
    assert second.outputs[0].tolist() == (2 * (x[:2] - 9)).tolist()


def test_endless_loops_are_stopped():
    data = kernels([w.bool_value(False)], [w.jump_false(0, 0)], [], [], [])
    with pytest.raises(FormatError, match=f"a loop ran {MAX_JUMPS_BACK} times"):
        call(data, [])


def test_views_are_what_lies_in_their_storage():
    """Exports drop the instruction of a fixed view and plan it onto its base."""
    values = [w.tensor("float32", [2, 3], planned=True, offset=64),
              w.tensor("float32", [2, 3], planned=True), w.tensor("float32", [3, 2], planned=True),
              w.tensor("float32", [3, 2], planned=True, offset=128), w.int_value(1),
              w.tensor("float32", [6], planned=True, offset=64),
              w.tensor("float32", [2, 3], planned=True),
              w.tensor("float32", [6], planned=True)]  # fmt: skip
    calls = [
        w.kernel_call(0, [0, 1, 1]),  # 1 = -0
        w.kernel_call(0, [2, 3, 3]),  # 2 is 1 as [3, 2]
        w.kernel_call(1, [0, 0, 4, 6, 6]),  # 6 takes the storage of 1
    ]
    data = kernels(values, calls, [0], [3, 5, 7], ["aten::neg.out", "aten::add.out"])
    x = np.arange(6, dtype=F32).reshape(2, 3)
    [result] = call(data, [x])
    assert result.outputs[0].tolist() == x.reshape(3, 2).tolist()
    assert result.outputs[1].tolist() == x.ravel().tolist()
    assert result.outputs[2].tolist() == (2 * x).ravel().tolist()
    assert not np.shares_memory(result.outputs[1], x)
    with pytest.raises(ShapeError, match=r"a view float32\[3, 2\], lies on float32\[1, 3\]"):
        call(data, [x[:1]])


def counter(state):
    """state += x; y = state + state: the buffer is read before it is written."""
    x = w.tensor("float32", [2], planned=True)
    calls = [w.kernel_call(0, [0, 1, 2, 3, 3]), w.kernel_call(0, [3, 3, 2, 4, 4]),
             w.kernel_call(1, [0, 3, 5, 0])]  # fmt: skip
    values = [state, x, w.int_value(1), x, x, w.bool_value(False)]
    return values, calls, [1], [4, 0], ["aten::add.out", "aten::copy_"]


def test_buffers_start_as_zeros_and_live_between_runs():
    data = kernels(*counter(w.tensor("float32", [2], planned=True)))
    x = np.array([1, 10], F32)
    first, second = call(data, [x], [x])
    assert first.outputs[0].tolist() == [2, 20]
    assert second.outputs[0].tolist() == [4, 40]
    assert second.outputs[1].tolist() == [2, 20]


def test_initial_state_and_reset():
    values = counter(w.tensor("float32", [2], planned=True, constant=1))
    stored = np.array([100, -100], "<f4").tobytes()
    data = kernels(*values, segments=[stored], states=[(0, [0, 0])])
    x = np.array([1, 2], F32)
    assert [r.outputs[1].tolist() for r in call(data, [x], [x])] == [[101, -98], [102, -96]]
    again = call(data, [x], [x], between=lambda program: program.reset())
    assert [r.outputs[1].tolist() for r in again] == [[101, -98], [101, -98]]


def test_what_is_remembered_belongs_to_the_program_alone():
    data = kernels(*counter(w.tensor("float32", [2], planned=True)))
    x = np.array([1, 10], F32)

    async def go():
        program = await load(data, device=await wg.request_device("cpu"))
        state = (await program.forward(x))[1]
        state[:] = 777
        return await program.forward(x)

    assert asyncio.run(go())[1].tolist() == [2, 20]


def test_a_failed_run_leaves_the_state():
    values, calls, inputs, outputs, operators = counter(w.tensor("float32", [2], planned=True))
    values += [w.tensor("int64", [1]), w.tensor("float32", [1], planned=True), w.int_value(0)]
    calls.append(w.kernel_call(2, [0, 8, 6, 7, 7]))
    operators.append("aten::index_select.out")
    data = kernels(values, calls, [*inputs, 6], outputs, operators)
    x, good, bad = np.array([1, 10], F32), np.array([1]), np.array([2])

    async def go():
        program = await load(data, device=await wg.request_device("cpu"))
        await program.forward(x, good)
        with pytest.raises(IndexOutOfRange, match="index 2 at position 0 of 0 to 1"):
            await program.forward(x, bad)
        return await program.forward(x, good)

    assert asyncio.run(go())[1].tolist() == [2, 20]


def test_mutated_inputs_are_given_back_and_the_callers_stay():
    values = [w.tensor("float32", [2, 2]), w.tensor("int64", [2]), w.bool_value(False)]
    data = kernels(values, [w.kernel_call(0, [0, 1, 2, 0])], [0, 1], [0], ["aten::copy_"])
    x, y = np.zeros((2, 2), F32), np.array([4, 5])
    x.flags.writeable = False
    [result] = call(data, [x, y])
    assert result.inputs[0].tolist() == [[4, 5], [4, 5]]
    assert result.inputs[0].dtype == F32
    assert result.outputs[0].tolist() == [[4, 5], [4, 5]]
    assert not x.any()


def test_several_results_and_lists_of_them():
    x = w.tensor("float32", [2, 6])
    parts = [w.tensor("float32", [2, 3], planned=True) for _ in range(2)]
    values = [x, *parts, w.int_value(3), w.int_value(1), w.tensor_list([1, 2]),
              w.tensor("float32", [2], planned=True), w.tensor("int64", [2], planned=True),
              w.bool_value(False), w.tensor_list([6, 7])]  # fmt: skip
    calls = [w.kernel_call(0, [0, 3, 4, 5, 5]), w.kernel_call(1, [2, 4, 8, 6, 7, 9])]
    operators = ["aten::split_copy.Tensor_out", "aten::max.dim_max"]
    data = kernels(values, calls, [0], [1, 6, 7, 5], operators)
    given = np.array([[1, 2, 3, 9, 5, 7], [0, 0, 0, -3, -1, -2]], F32)
    [result] = call(data, [given])
    assert result.outputs[0].tolist() == given[:, :3].tolist()
    assert result.outputs[1].tolist() == [9, -1]
    assert result.outputs[2].tolist() == [0, 1]
    assert [part.tolist() for part in result.outputs[3]] == [
        given[:, :3].tolist(),
        given[:, 3:].tolist(),
    ]


def test_constants_in_any_order_of_dimensions_and_in_halves():
    channels_last = np.arange(12, dtype="<f4").reshape(2, 3, 2)
    halves = np.array([1.5, -2.5], "<f2")
    rounded = np.array([0x3F80, 0xC020], "<u2")  # 1.0 and -2.5 in bfloat16
    segment = channels_last.transpose(0, 2, 1).tobytes() + halves.tobytes() + rounded.tobytes()
    values = [
        w.tensor("float32", [2, 3, 2], constant=1, dim_order=[0, 2, 1]),
        w.tensor("float16", [2], constant=2),
        w.tensor("bfloat16", [2], constant=3),
    ]
    data = kernels(values, [], [], [0, 1, 2], [], segments=[segment], constants=(0, [0, 0, 48, 52]))
    [result] = call(data, [])
    assert result.outputs[0].tolist() == channels_last.tolist()
    assert result.outputs[1].dtype == np.float16 and result.outputs[1].tolist() == [1.5, -2.5]
    assert result.outputs[2].dtype == F32 and result.outputs[2].tolist() == [1.0, -2.5]


def test_metadata_methods():
    size = w.plan([w.int_value(512)], [], [], [0], name="get_vocab_size")
    ends = w.plan([w.int_value(2), w.int_value(7)], [], [], [0, 1], name="get_eos_ids")
    move = w.plan([w.int_value(2), w.int_value(3)], [w.move_call(0, 1)], [], [1], name="moved")
    data = w.pte([size, ends, move])

    async def go():
        program = await load(data, device=await wg.request_device("cpu"))
        found = await program.get_vocab_size(), await program.get_eos_ids(), await program.moved()
        with pytest.raises(FormatError, match="no method 'forward'; the program has get_vocab"):
            program.method("forward")
        with pytest.raises(AttributeError):
            program.forward  # noqa: B018
        return found, program.metadata

    found, metadata = asyncio.run(go())
    assert found == (512, (2, 7), 2)
    assert metadata == {"get_vocab_size": 512, "get_eos_ids": [2, 7]}


def add_blob(constant, dtype="float32"):
    """A delegate: out = in + constant."""
    values = [w.vk_tensor(dtype, [2, 2], 0), w.vk_tensor(dtype, [2, 2]), w.vk_int(1),
              w.vk_tensor(dtype, [2, 2])]  # fmt: skip
    raw = np.array(constant, dtype).tobytes()
    return w.vk_blob(values, [("aten.add.Tensor", [1, 0, 2, 3])], [1], [3],
                     constants=[(0, len(raw), None)], region=raw)  # fmt: skip


def test_several_delegates_with_a_kernel_between():
    x = w.tensor("float32", [2, 2], planned=True)
    values = [w.tensor("float32", [2, 2]), x, x, x]
    calls = [w.delegate_call(0, [0, 1]), w.kernel_call(0, [1, 2, 2]), w.delegate_call(1, [2, 3])]
    blobs = [add_blob([[1, 2], [3, 4]]), add_blob([[10, 20], [30, 40]])]
    plan = w.plan(values, calls, [0], [3], operators=["aten::neg.out"],
                  delegates=[w.delegate(0), w.delegate(0, inline=True)])  # fmt: skip
    data = w.pte([plan], segments=blobs[:1], inline=blobs[1:])
    given = np.array([[5, 6], [7, 8]], F32)
    [result] = call(data, [given])
    expected = np.array([[10, 20], [30, 40]]) - (given + np.array([[1, 2], [3, 4]]))
    assert result.outputs[0].tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("host", "device"),
    [
        ("float32", "float32"),
        ("float16", "float16"),
        ("float64", "float32"),
        ("bfloat16", "float32"),
        ("int64", "int32"),
        ("int64", "int64"),
        ("int32", "int32"),
    ],
)
def test_dtypes_at_the_boundary(host, device):
    values = [w.tensor(host, [2, 2]), w.tensor(host, [2, 2], planned=True)]
    plan = w.plan(values, [w.delegate_call(0, [0, 1])], [0], [1], delegates=[w.delegate(0)])
    data = w.pte([plan], segments=[add_blob([[1, 2], [3, 4]], device)])
    wanted = F32 if host == "bfloat16" else host
    given = np.array([[5, -6], [7, 100]], wanted)
    [result] = call(data, [given])
    assert result.outputs[0].dtype == wanted
    assert result.outputs[0].tolist() == [[6, -4], [10, 104]]


def test_wide_indices_are_refused_with_their_position():
    values = [w.tensor("int64", [2, 2]), w.tensor("int64", [2, 2], planned=True)]
    plan = w.plan(values, [w.delegate_call(0, [0, 1])], [0], [1], delegates=[w.delegate(0)])
    data = w.pte([plan], segments=[add_blob([[1, 2], [3, 4]], "int32")])
    with pytest.raises(IndexOutOfRange, match="4294967296 at position 3"):
        call(data, [np.array([[0, 1], [2, 2**32]])])


def test_inputs_are_checked_by_name():
    values = [w.tensor("float32", [2, 3], dynamic=1), w.int_value(4), w.double_value(0.5)]
    data = kernels(values, [], [0, 1, 2], [0, 1, 2], [])
    x = np.arange(6, dtype=F32).reshape(2, 3)
    [result] = call(data, [x, np.int64(5), 2])
    assert result.outputs[1:] == [5, 2.0]
    for inputs, kind, message in (
        ([x, 5], ShapeError, "2 inputs, this method takes 3"),
        ([x.astype(np.float64), 5, 0.5], DtypeError, "forward input 0 is float64"),
        ([x.reshape(3, 2), 5, 0.5], ShapeError, r"input 0 has shape \[3, 2\]"),
        ([x[0], 5, 0.5], ShapeError, r"input 0 has shape \[3\]"),
        ([x, 5.5, 0.5], DtypeError, "forward input 1 is float, the method takes Int"),
        ([x, 5, "half"], DtypeError, "forward input 2 is str, the method takes Double"),
    ):
        with pytest.raises(kind, match=message):
            call(data, inputs)


def test_everything_missing_is_reported_together():
    values = [w.tensor("float32", [2, 2])] * 2
    calls = [w.kernel_call(0, [0, 1, 1]), w.kernel_call(1, [0, 1]), w.delegate_call(0, [0, 1])]
    blob = w.vk_blob([w.vk_tensor("float32", [2])], [("aten.nothing.default", [0, 0])], [0], [0])
    plan = w.plan(values, calls, [0], [1], operators=["aten::wish.out", "my::op"],
                  delegates=[w.delegate(0)])  # fmt: skip
    with pytest.raises(
        UnsupportedOperator, match=r"aten\.nothing\.default, aten::wish\.out, my::op"
    ):
        call(w.pte([plan], segments=[blob]), [])


def test_other_backends_are_named():
    plan = w.plan([], [], [], [], delegates=[w.delegate(0, "XnnpackBackend")])
    with pytest.raises(UnsupportedOperator, match="XnnpackBackend"):
        call(w.pte([plan], segments=[b"blob"]), [])


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (w.kernel_call(0, [0, 0]), "aten::neg.out: 2 arguments"),
        (w.kernel_call(0, [0, 1, 1]), "aten::neg.out writes to value 1, which is no tensor"),
        (w.kernel_call(1, [0, 1, 1, 0, 0]), "writes to value 0, no list"),
        (w.delegate_call(0, [0]), "called with 1 values, it has 1 inputs and 1 outputs"),
        (w.delegate_call(0, [0, 1]), "delegate 0 writes to value 1"),
    ],
)
def test_calls_that_do_not_fit_are_refused_at_load(step, message):
    values = [w.tensor("float32", [2, 2]), w.int_value(1)]
    operators = ["aten::neg.out", "aten::split_copy.Tensor_out"]
    plan = w.plan(values, [step], [0], [], operators=operators, delegates=[w.delegate(0)])
    with pytest.raises(FormatError, match=message.replace(".", r"\.")):
        call(w.pte([plan], segments=[add_blob([[1, 2], [3, 4]])]), [])


def test_empty_tensors_and_overlapping_constants_are_refused():
    empty = w.tensor("float32", [2], planned=True)
    data = kernels([empty, empty], [w.kernel_call(0, [0, 1, 1])], [], [1], ["aten::neg.out"])
    # Read before anything wrote it and never written: there is nothing in it.
    with pytest.raises(FormatError, match="tensor 0 is used before"):
        call(data, [])
    many = [w.tensor("uint8", [100_000 - i], constant=1) for i in range(20)]
    data = kernels(many, [], [], [], [], segments=[bytes(100_000)], constants=(0, [0, 0]))
    with pytest.raises(FormatError, match="constants overlap"):
        call(data, [])


def test_data_files_beside_a_path_are_found():
    folder = CASES / "external_constants" / "sharded_ptd"
    manifest = json.loads((folder / "manifest.json").read_text())
    [run] = manifest["runs"]

    def array(described):
        flat = np.fromfile(folder / described["path"], described["dtype"])
        return flat.reshape(described["shape"])

    [result] = call(folder / "model.pte", [array(i) for i in run["inputs"]])
    golden = array(run["outputs"][0])
    np.testing.assert_allclose(result.outputs[0], golden, rtol=1e-3, atol=1e-3)
    with pytest.raises(FormatError, match=r"give the \.ptd files"):
        call(folder / "model.pte", [], external=[])
