"""What a program keeps between runs: buffers, initial state, inputs that it changes."""

import asyncio

import numpy as np
import pytest

import pte_writer as w
import webgpu_py as wg
from unit.small_programs import program_of, run_program
from webgpu_py.errors import IndexOutOfRange
from webgpu_py.program import load

F32 = np.float32


def counter(state):
    """state += x; y = state + state: the buffer is read before it is written."""
    x = w.tensor("float32", [2], planned=True)
    calls = [w.kernel_call(0, [0, 1, 2, 3, 3]), w.kernel_call(0, [3, 3, 2, 4, 4]),
             w.kernel_call(1, [0, 3, 5, 0])]  # fmt: skip
    values = [state, x, w.int_value(1), x, x, w.bool_value(False)]
    return values, calls, [1], [4, 0], ["aten::add.out", "aten::copy_"]


def test_buffers_start_as_zeros_and_live_between_runs():
    data = program_of(*counter(w.tensor("float32", [2], planned=True)))
    x = np.array([1, 10], F32)
    first, second = run_program(data, [x], [x])
    assert first.outputs[0].tolist() == [2, 20]
    assert second.outputs[0].tolist() == [4, 40]
    assert second.outputs[1].tolist() == [2, 20]


def test_initial_state_and_reset():
    values = counter(w.tensor("float32", [2], planned=True, constant=1))
    stored = np.array([100, -100], "<f4").tobytes()
    data = program_of(*values, segments=[stored], states=[(0, [0, 0])])
    x = np.array([1, 2], F32)
    assert [r.outputs[1].tolist() for r in run_program(data, [x], [x])] == [[101, -98], [102, -96]]
    again = run_program(data, [x], [x], between=lambda program: program.reset())
    assert [r.outputs[1].tolist() for r in again] == [[101, -98], [101, -98]]


def test_what_is_remembered_belongs_to_the_program_alone():
    data = program_of(*counter(w.tensor("float32", [2], planned=True)))
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
    data = program_of(values, calls, [*inputs, 6], outputs, operators)
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
    data = program_of(values, [w.kernel_call(0, [0, 1, 2, 0])], [0, 1], [0], ["aten::copy_"])
    x, y = np.zeros((2, 2), F32), np.array([4, 5])
    x.flags.writeable = False
    [result] = run_program(data, [x, y])
    assert result.inputs[0].tolist() == [[4, 5], [4, 5]]
    assert result.inputs[0].dtype == F32
    assert result.outputs[0].tolist() == [[4, 5], [4, 5]]
    assert not x.any()
