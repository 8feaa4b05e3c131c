"""Damaged programs are refused, or load and run: never another exception, hang or flood of memory.

Unlike `test_pte_damage.py` this goes all the way: planning, lowering and a run on NumPy.
"""

import asyncio
import json
import signal
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import pte_writer as w
import webgpu_py as wg
from webgpu_py.errors import WebGPUPyError
from webgpu_py.program import load

CASES = Path(__file__).parents[1] / "conformance" / "cases"
SECONDS = 5
LIMITS = {"max_buffer_size": 1 << 20, "max_storage_buffer_binding_size": 1 << 20}


def case(name):
    folder = CASES / name
    [run, *_] = json.loads((folder / "manifest.json").read_text())["runs"]
    inputs = [
        np.fromfile(folder / i["path"], i["dtype"]).reshape(i["shape"]) for i in run["inputs"]
    ]
    return (folder / "model.pte").read_bytes(), inputs


def loop():
    """Portable operators, symbolic sizes, a loop and a buffer."""
    row = w.tensor("float32", [2], planned=True)
    values = [w.tensor("float32", [3, 2], dynamic=1), w.tensor("float32", [3, 2], planned=True),
              w.int_value(0), w.int_value(0), w.int_value(0), w.int_value(1), row,
              w.bool_value(False), w.int_list([3, 5])]  # fmt: skip
    operators = ["aten::sym_size.int", "aten::select_copy.int_out", "aten::full.out",
                 "executorch_prim::et_copy_index.tensor", "executorch_prim::add.Scalar",
                 "executorch_prim::eq.Scalar"]  # fmt: skip
    calls = [
        w.kernel_call(0, [0, 4, 3]),
        w.kernel_call(1, [0, 4, 2, 6, 6]),
        w.kernel_call(3, [1, 6, 2]),
        w.kernel_call(4, [2, 5, 2]),
        w.kernel_call(5, [2, 3, 7]),
        w.jump_false(7, 1),
    ]
    data = w.pte([w.plan(values, calls, [0], [1], operators=operators)])
    return data, [np.arange(6, dtype=np.float32).reshape(3, 2)]


PROGRAMS = {
    "tied": case("prepack/tied"),
    "rms_norm": case("rms_norm/width_lt_wg"),
    "convolution": case("conv_with_clamp/dil2"),
    "loop": loop(),
}


@contextmanager
def deadline():
    """Fail past the deadline, of processor time: the machine may be busy with other tests."""

    def late(_signal, _frame):
        raise TimeoutError(f"still busy after {SECONDS} s")

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def survives(data, inputs):
    """Whether the first method loads and runs; an error of ours is the only other way out."""

    async def go():
        program = await load(data, device=await wg.request_device("cpu"), limits=LIMITS)
        try:
            [method, *_] = program.methods.values()
            await method.run(inputs)
        finally:
            program.close()

    with deadline():
        try:
            asyncio.run(go())
        except WebGPUPyError:
            return False
    return True


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_good_programs_are_good(name):
    assert survives(*PROGRAMS[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_byte_replaced(name):
    data, inputs = PROGRAMS[name]
    for at in range(len(data)):
        for value in (0, 1, 0x7F, 0x80, 0xFF):
            survives(data[:at] + bytes([value]) + data[at + 1 :], inputs)
