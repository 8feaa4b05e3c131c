"""Portable kernels: symbolic numbers, argument counts, dtypes, and errors that name them."""

import math

import numpy as np
import pytest

from webgpu_py.errors import (
    DtypeError,
    FormatError,
    IndexOutOfRange,
    ShapeError,
    WebGPUPyError,
)
from webgpu_py.portable import find_kernel, missing
from webgpu_py.portable.dtypes import compute_dtype, round_to_bfloat16, store
from webgpu_py.portable.kernel import Out


def run(name, *args, out=None):
    kernel = find_kernel(name)
    return kernel(args, [] if out is None else [out] * max(kernel.outs, 1))


def test_missing_names_are_all_listed_once():
    assert missing(["aten::add.out", "aten::copy_"]) == []
    assert missing(["b::x.out", "aten::add.oops", "b::x.out", "no namespace"]) == [
        "aten::add.oops",
        "b::x.out",
        "no namespace",
    ]


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("add.Scalar", (3, 4), 7),
        ("add.Scalar", (3, 0.5), 3.5),
        ("sub.Scalar", (3, 4), -1),
        ("mul.Scalar", (-3, 4), -12),
        ("floordiv.Scalar", (7, -2), -4),
        ("floordiv.Scalar", (7.5, 2), 3.0),
        ("floordiv.int", (7, 2), 3),
        ("truediv.Scalar", (7, 2), 3.5),
        ("mod.Scalar", (7, 4), 3),
        ("mod.int", (9, 5), 4),
        ("eq.Scalar", (2, 2.0), True),
        ("gt.Scalar", (2, 3), False),
        ("lt.Scalar", (2, 3), True),
        ("ge.Scalar", (3, 3), True),
        ("le.Scalar", (4, 3), False),
        ("sym_max.Scalar", (4, 3), 4),
        ("sym_min.Scalar", (4, 3), 3),
        ("neg.Scalar", (4,), -4),
        ("sym_float.Scalar", (4,), 4.0),
        ("sym_int.Scalar", (4.75,), 4),
        ("sym_not.Scalar", (True,), False),
        ("sym_ite.Scalar", (False, 1, 2), 2),
        ("ceil.Scalar", (2.25,), 3),
        ("round.Scalar", (2.5,), 2),
        ("trunc.Scalar", (-2.75,), -2),
    ],
)
def test_symbolic_numbers(name, args, expected):
    result = run(f"executorch_prim::{name}", *args)
    assert result == expected
    assert type(result) is type(expected)


def test_sizes_and_single_elements():
    x = np.arange(24, dtype=np.int64).reshape(2, 3, 4)
    assert run("aten::sym_size.int", x, -2) == 3
    assert run("aten::sym_numel", x) == 24
    assert run("aten::_local_scalar_dense", x[1, 2, 3:]) == 23
    assert run("aten::_local_scalar_dense", np.array(True)) is True


def test_views_and_collected_slices():
    x = np.arange(6, dtype=np.float32)
    assert run("executorch_prim::et_view.default", x, [2, -1]).tolist() == [[0, 1, 2], [3, 4, 5]]
    collected = np.full((3, 2), 9, np.float32)
    for i in range(3):
        collected = run("executorch_prim::et_copy_index.tensor", collected, x[i : i + 2], i)
        assert len(collected) == i + 1
    assert collected.tolist() == [[0, 1], [1, 2], [2, 3]]


@pytest.mark.parametrize(
    ("name", "args", "kind", "message"),
    [
        ("executorch_prim::floordiv.Scalar", (1, 0), ShapeError, "division by zero|modulo by zero"),
        ("executorch_prim::mul.Scalar", (2**62, 4), IndexOutOfRange, "does not fit int64"),
        ("executorch_prim::ceil.Scalar", (math.inf,), ShapeError, "infinity"),
        ("executorch_prim::add.Scalar", (None, 1), DtypeError, "wrong kind"),
        ("aten::sym_size.int", (np.zeros((2, 2)), 2), IndexOutOfRange, "dimension 2 of 2"),
        ("aten::_local_scalar_dense", (np.zeros(2),), ShapeError, "2 elements"),
    ],
)
def test_symbolic_errors(name, args, kind, message):
    with pytest.raises(kind, match=message) as caught:
        run(name, *args)
    assert str(caught.value).startswith(name)


INTS = np.array([5, -7, 3], np.int64)
TABLE = np.zeros((4, 2))


@pytest.mark.parametrize(
    ("name", "args", "kind"),
    [
        ("aten::floor_divide.out", (INTS, np.array([2, 0, 1])), IndexOutOfRange),
        ("aten::remainder.Scalar_out", (INTS, 0), IndexOutOfRange),
        ("aten::fmod.Scalar_out", (INTS, 0), IndexOutOfRange),
        ("aten::div.out_mode", (INTS, INTS * 0, "trunc"), IndexOutOfRange),
        ("aten::div.out_mode", (INTS, INTS, "up"), DtypeError),
        ("aten::add.out", (INTS, np.zeros(4), 1), ShapeError),
        ("aten::add.out", (None, INTS, 1), (DtypeError, ShapeError)),
        ("aten::bitwise_and.Tensor_out", (np.zeros(2), np.zeros(2)), DtypeError),
        ("aten::embedding.out", (TABLE, np.array([4]), -1, False, False), IndexOutOfRange),
        ("aten::embedding.out", (TABLE, np.array([-1]), -1, False, False), IndexOutOfRange),
        ("aten::index.Tensor_out", (np.zeros(4), [np.array([9])]), IndexOutOfRange),
        ("aten::gather.out", (np.zeros(4), 0, np.array([4]), False), IndexOutOfRange),
        ("aten::select_copy.int_out", (np.zeros((2, 3)), 1, 3), IndexOutOfRange),
        ("aten::select_copy.int_out", (np.zeros((2, 3)), 2, 0), IndexOutOfRange),
        ("aten::narrow_copy.out", (np.zeros(5), 0, 3, 3), IndexOutOfRange),
        ("aten::slice_copy.Tensor_out", (np.zeros(5), 0, 0, 5, 0), ShapeError),
        ("aten::as_strided_copy.out", (np.zeros(5), [2], [5], 0), IndexOutOfRange),
        ("aten::mm.out", (np.zeros((2, 3)), np.zeros((4, 2))), ShapeError),
        ("aten::mm.out", (np.zeros(3), np.zeros((3, 2))), ShapeError),
        ("aten::permute_copy.out", (np.zeros((2, 3)), [0, 0]), ShapeError),
        ("aten::view_copy.out", (np.zeros((2, 3)), [4, 2]), ShapeError),
        ("aten::split_with_sizes_copy.out", (np.zeros(5), [2, 2], 0), ShapeError),
        ("aten::topk.values", (np.zeros(3), 4, 0, True, True), ShapeError),
        ("aten::gelu.out", (np.zeros(3), "fast"), DtypeError),
        ("aten::native_layer_norm.out", (np.zeros((2, 3)), [4], None, None, 1e-5), ShapeError),
        ("aten::constant_pad_nd.out", (np.zeros(3), [1, 1, 1, 1], 0), ShapeError),
        ("aten::reflection_pad1d.out", (np.zeros((1, 3)), [3, 0]), ShapeError),
    ],
)  # fmt: skip
def test_errors_are_ours_and_name_the_operator(name, args, kind):
    with pytest.raises(kind) as caught:
        run(name, *args, out=Out("float32", (1,), unbounded=True))
    assert isinstance(caught.value, WebGPUPyError)
    assert str(caught.value).startswith(f"{name}: ")


TALL, WIDE, PIXELS = np.zeros((10**5, 1)), np.zeros((1, 10**5)), np.zeros((1, 1, 4, 4))


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("aten::full.out", ([2**40, 2**40], 1.0)),
        ("aten::zeros.out", ([2**40],)),
        ("aten::ones.out", ([-1],)),
        ("aten::arange.out", (2**60,)),
        ("aten::arange.start_out", (0, 5, -1)),
        ("aten::expand_copy.out", (np.zeros((1, 1)), [2**40, 2**20], False)),
        ("aten::repeat.out", (np.zeros(4), [2**50])),
        ("aten::constant_pad_nd.out", (np.zeros(4), [2**50, 2**50], 0)),
        ("aten::replication_pad1d.out", (np.zeros((1, 4)), [2**50, 0])),
        ("aten::upsample_nearest2d.vec_out", (np.zeros((1, 1, 2, 2)), [2**40, 2**40], None)),
        ("aten::repeat_interleave.Tensor_out", (np.array([2**50]), None)),
        ("aten::add.out", (TALL, WIDE, 1)),
        ("aten::eq.Tensor_out", (TALL, WIDE)),
        ("aten::where.self_out", (TALL > 0, WIDE, WIDE)),
        ("aten::mm.out", (TALL, WIDE)),
        ("aten::linear.out", (TALL, TALL, None)),
        ("aten::cat.out", ([WIDE] * 10**5, 0)),
        ("aten::stack.out", ([WIDE] * 10**5, -1)),
        ("aten::index.Tensor_out", (TALL, [np.zeros((1, 10**6), int), None])),
        ("aten::index_select.out", (TALL.T, 0, np.zeros(10**6, int))),
        ("aten::max_pool2d_with_indices.out", (PIXELS, [1], [1], [1], [10**9], False)),
        (
            "aten::convolution.out",
            (PIXELS, PIXELS, None, [1], [10**9, 0], [1], False, [0], 1),
        ),
        (
            "aten::convolution.out",
            (PIXELS, PIXELS, None, [10**9], [0], [1], True, [10**9], 1),
        ),
        (
            "quantized_decomposed::embedding_4bit.out",
            (TALL.astype(np.uint8), TALL, None, -8, 7, np.zeros((1, 10**6), int)),
        ),
    ],
)
def test_sizes_beyond_the_declared_are_refused_before_memory_is_asked_for(name, args):
    with pytest.raises(ShapeError, match=r"declared is|0 or more|never arrives"):
        run(name, *args, out=Out("float32", (100,)))


def test_declared_shapes():
    assert Out("int8", (2, 3)).check([2, 3]) == (2, 3)
    assert Out("int8", (2, 3)).check([3, 1]) == (3, 1)
    assert Out("int8", (2, 3), unbounded=True).check([9]) == (9,)
    for shape in ([2, 4], [6], [7, 1]):
        with pytest.raises(ShapeError, match=r"declared is at most \[2, 3\]"):
            Out("int8", (2, 3)).check(shape)


def test_argument_counts():
    add, norm = find_kernel("aten::add.out"), find_kernel("aten::native_layer_norm.out")
    assert add.split([0, 1, 2, 7, 7]) == ([0, 1, 2], [7])
    assert norm.split([0, 1, 2, 3, 4, 7, 8, 9, 10]) == ([0, 1, 2, 3, 4], [7, 8, 9])
    assert find_kernel("aten::copy_").split([4, 5, 6, 4]) == ([4, 5, 6], [4])
    assert find_kernel("aten::split_copy.Tensor_out").split([1, 2, 3, 9, 10]) == ([1, 2, 3], [9])
    assert find_kernel("aten::sym_size.int").split([1, 2, 3]) == ([1, 2], [3])
    collect = find_kernel("executorch_prim::et_copy_index.tensor")
    assert collect.split([4, 5, 6]) == ([4, 5, 6], [4])
    for args in ([0, 1, 2, 7], [0, 1, 2, 7, 7, 7]):
        with pytest.raises(FormatError, match=r"aten::add\.out: \d arguments, expected 5"):
            add.split(args)


def test_promotion_is_pytorchs():
    half, single, double = (np.zeros(1, d) for d in (np.float16, np.float32, np.float64))
    byte, word, flag = np.zeros(1, np.int8), np.zeros(1, np.int64), np.zeros(1, bool)
    assert compute_dtype(word, single) == np.float32
    assert compute_dtype(half, word) == np.float32
    assert compute_dtype(half, double) == np.float64
    assert compute_dtype(single, 2.5, 3) == np.float32
    assert compute_dtype(byte, 3) == np.int8
    assert compute_dtype(byte, 3.0) == np.float32
    assert compute_dtype(flag, 3) == np.int64
    assert compute_dtype(flag, True) == np.bool_
    assert compute_dtype(np.zeros(1, np.uint64), word) == np.int64


def test_casts():
    values = np.array([2.9, -2.9, 300.0, math.nan, math.inf, -math.inf, 1e30])
    wrapped = store(values, "int32").tolist()
    assert wrapped[:3] == [2, -2, 300] and wrapped[3] == 0
    assert store(np.array([300, -1]), "uint8").tolist() == [44, 255]
    assert store(np.array([0.5, 0, math.nan]), "bool").tolist() == [True, False, True]


def test_bfloat16_rounds_to_even():
    ulp = 2.0**-7
    values = np.array([1 + ulp / 2, 1 + 3 * ulp / 2, 1 + 0.51 * ulp, -1 - ulp / 2, math.inf, 3e38])
    expected = [1, 1 + 2 * ulp, 1 + ulp, -1, math.inf, 2.9908e38]
    np.testing.assert_allclose(round_to_bfloat16(values.astype(np.float32)), expected, rtol=1e-2)
    assert round_to_bfloat16(values[:4].astype(np.float32)).tolist() == expected[:4]
    assert np.isnan(round_to_bfloat16(np.array(math.nan, np.float32)))


def test_given_arrays_are_never_written_to_nor_shared():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    x.flags.writeable = False
    whole = Out("float32", (3, 4), unbounded=True)
    for name, args in {
        "aten::view_copy.out": (x, [4, 3]),
        "aten::slice_copy.Tensor_out": (x, 0, 1, 3, 1),
        "aten::permute_copy.out": (x, [1, 0]),
        "aten::clone.out": (x, None),
        "aten::index_put.out": (x, [np.array([1])], x[0], True),
        "aten::copy_": (x, x[0], False),
        "aten::cat.out": ([x], 0),
    }.items():
        result = run(name, *args, out=whole)
        assert not np.shares_memory(result, x), name
