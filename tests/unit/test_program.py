"""Methods of a program: instructions, shapes, views, constants, errors at load."""

import asyncio
import json
from pathlib import Path

import numpy as np
import pytest

import pte_writer as w
import webgpu_py as wg
from unit.small_programs import program_of, run_program
from webgpu_py.errors import DtypeError, FormatError, ShapeError
from webgpu_py.method import MAX_JUMPS_BACK
from webgpu_py.program import load

CASES = Path(__file__).parents[1] / "conformance" / "cases"
F32 = np.float32


def test_kernel_calls_and_live_shapes():
    values = [w.tensor("float32", [4, 3], dynamic=1), w.tensor("float32", [3]), w.int_value(2),
              w.tensor("float32", [4, 3], planned=True, dynamic=1)]  # fmt: skip
    data = program_of(values, [w.kernel_call(0, [0, 1, 2, 3, 3])], [0, 1], [3], ["aten::add.out"])
    b = np.array([1, 2, 3], F32)
    for rows in (4, 1, 3):
        a = np.arange(3 * rows, dtype=F32).reshape(rows, 3)
        [result] = run_program(data, [a, b])
        np.testing.assert_array_equal(result.outputs[0], a + 2 * b)


def test_symbolic_sizes_reach_lists():
    """reshape(x, [size * 2, 2]) as exports write it."""
    values = [w.tensor("float32", [8, 4], dynamic=1), w.int_value(0), w.int_value(0),
              w.int_value(2), w.int_value(0), w.int_list([4, 3]),
              w.tensor("float32", [16, 2], planned=True, dynamic=1)]  # fmt: skip
    calls = [w.kernel_call(0, [0, 1, 2]), w.kernel_call(1, [2, 3, 4]), w.kernel_call(2, [0, 5, 6])]
    operators = ["aten::sym_size.int", "executorch_prim::mul.Scalar",
                 "executorch_prim::et_view.default"]  # fmt: skip
    data = program_of(values, calls, [0], [6], operators)
    for rows in (8, 3):
        x = np.arange(4 * rows, dtype=F32).reshape(rows, 4)
        [result] = run_program(data, [x])
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
    data = program_of(values, branch(), [0, 1], [5], operators)
    scalar = condition.fields[0].value == 3
    yes, no = (True, False) if scalar else (np.array([True, True]), np.array([True, False]))
    given = np.array([3, 5], F32)
    first, second = run_program(data, [yes, given], [no, given])
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
    data = program_of(values, calls, [0], [1], operators)
    x = np.arange(6, dtype=F32).reshape(3, 2)
    first, second = run_program(data, [x], [x[:2] - 9])
    assert first.outputs[0].tolist() == (2 * x).tolist()
    assert second.outputs[0].tolist() == (2 * (x[:2] - 9)).tolist()


def test_endless_loops_are_stopped():
    data = program_of([w.bool_value(False)], [w.jump_false(0, 0)], [], [], [])
    with pytest.raises(FormatError, match=f"a loop ran {MAX_JUMPS_BACK} times"):
        run_program(data, [])


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
    data = program_of(values, calls, [0], [3, 5, 7], ["aten::neg.out", "aten::add.out"])
    x = np.arange(6, dtype=F32).reshape(2, 3)
    [result] = run_program(data, [x])
    assert result.outputs[0].tolist() == x.reshape(3, 2).tolist()
    assert result.outputs[1].tolist() == x.ravel().tolist()
    assert result.outputs[2].tolist() == (2 * x).ravel().tolist()
    assert not np.shares_memory(result.outputs[1], x)
    with pytest.raises(ShapeError, match=r"a view float32\[3, 2\], lies on float32\[1, 3\]"):
        run_program(data, [x[:1]])


def test_several_results_and_lists_of_them():
    x = w.tensor("float32", [2, 6])
    parts = [w.tensor("float32", [2, 3], planned=True) for _ in range(2)]
    values = [x, *parts, w.int_value(3), w.int_value(1), w.tensor_list([1, 2]),
              w.tensor("float32", [2], planned=True), w.tensor("int64", [2], planned=True),
              w.bool_value(False), w.tensor_list([6, 7])]  # fmt: skip
    calls = [w.kernel_call(0, [0, 3, 4, 5, 5]), w.kernel_call(1, [2, 4, 8, 6, 7, 9])]
    operators = ["aten::split_copy.Tensor_out", "aten::max.dim_max"]
    data = program_of(values, calls, [0], [1, 6, 7, 5], operators)
    given = np.array([[1, 2, 3, 9, 5, 7], [0, 0, 0, -3, -1, -2]], F32)
    [result] = run_program(data, [given])
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
    data = program_of(
        values, [], [], [0, 1, 2], [], segments=[segment], constants=(0, [0, 0, 48, 52])
    )
    [result] = run_program(data, [])
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


def test_inputs_are_checked_by_name():
    values = [w.tensor("float32", [2, 3], dynamic=1), w.int_value(4), w.double_value(0.5)]
    data = program_of(values, [], [0, 1, 2], [0, 1, 2], [])
    x = np.arange(6, dtype=F32).reshape(2, 3)
    [result] = run_program(data, [x, np.int64(5), 2])
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
            run_program(data, inputs)


def test_empty_tensors_and_overlapping_constants_are_refused():
    empty = w.tensor("float32", [2], planned=True)
    data = program_of([empty, empty], [w.kernel_call(0, [0, 1, 1])], [], [1], ["aten::neg.out"])
    # Read before anything wrote it and never written: there is nothing in it.
    with pytest.raises(FormatError, match="tensor 0 is used before"):
        run_program(data, [])
    many = [w.tensor("uint8", [100_000 - i], constant=1) for i in range(20)]
    data = program_of(many, [], [], [], [], segments=[bytes(100_000)], constants=(0, [0, 0]))
    with pytest.raises(FormatError, match="constants overlap"):
        run_program(data, [])


def test_data_files_beside_a_path_are_found():
    folder = CASES / "external_constants" / "sharded_ptd"
    manifest = json.loads((folder / "manifest.json").read_text())
    [run] = manifest["runs"]

    def array(described):
        flat = np.fromfile(folder / described["path"], described["dtype"])
        return flat.reshape(described["shape"])

    [result] = run_program(folder / "model.pte", [array(i) for i in run["inputs"]])
    golden = array(run["outputs"][0])
    np.testing.assert_allclose(result.outputs[0], golden, rtol=1e-3, atol=1e-3)
    with pytest.raises(FormatError, match=r"give the \.ptd files"):
        run_program(folder / "model.pte", [], external=[])
