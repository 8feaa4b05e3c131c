"""Delegates of a program: several beside kernels, dtypes at their boundary, what does not fit."""

import numpy as np
import pytest

import pte_writer as w
from unit.small_programs import run_program
from webgpu_py.errors import FormatError, IndexOutOfRange, UnsupportedOperator

F32 = np.float32


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
    [result] = run_program(data, [given])
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
    [result] = run_program(data, [given])
    assert result.outputs[0].dtype == wanted
    assert result.outputs[0].tolist() == [[6, -4], [10, 104]]


def test_wide_indices_are_refused_with_their_position():
    values = [w.tensor("int64", [2, 2]), w.tensor("int64", [2, 2], planned=True)]
    plan = w.plan(values, [w.delegate_call(0, [0, 1])], [0], [1], delegates=[w.delegate(0)])
    data = w.pte([plan], segments=[add_blob([[1, 2], [3, 4]], "int32")])
    with pytest.raises(IndexOutOfRange, match="4294967296 at position 3"):
        run_program(data, [np.array([[0, 1], [2, 2**32]])])


def test_everything_missing_is_reported_together():
    values = [w.tensor("float32", [2, 2])] * 2
    calls = [w.kernel_call(0, [0, 1, 1]), w.kernel_call(1, [0, 1]), w.delegate_call(0, [0, 1])]
    blob = w.vk_blob([w.vk_tensor("float32", [2])], [("aten.nothing.default", [0, 0])], [0], [0])
    plan = w.plan(values, calls, [0], [1], operators=["aten::wish.out", "my::op"],
                  delegates=[w.delegate(0)])  # fmt: skip
    with pytest.raises(
        UnsupportedOperator, match=r"aten\.nothing\.default, aten::wish\.out, my::op"
    ):
        run_program(w.pte([plan], segments=[blob]), [])


def test_other_backends_are_named():
    plan = w.plan([], [], [], [], delegates=[w.delegate(0, "XnnpackBackend")])
    with pytest.raises(UnsupportedOperator, match="XnnpackBackend"):
        run_program(w.pte([plan], segments=[b"blob"]), [])


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
        run_program(w.pte([plan], segments=[add_blob([[1, 2], [3, 4]])]), [])
