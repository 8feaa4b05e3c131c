"""Values, arrays and exceptions cross between two Pythons unchanged, and only named calls do."""

import asyncio
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webgpu_py import entry, transfer
from webgpu_py.errors import FeatureMissing, ShapeError

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
keys = st.text() | st.integers()
trees = st.recursive(
    scalars | st.binary(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(keys, inner, max_size=4)
    ),
    max_leaves=20,
)


@given(trees)
def test_trees_come_back_equal(value):
    assert transfer.unpack(transfer.pack(value)) == value


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((0, 3), np.int64),
        np.array(5, np.uint8),
        np.arange(24, dtype=np.float16).reshape(2, 3, 4)[:, ::2, ::-1],
        np.asfortranarray(np.arange(6, dtype=np.int32).reshape(2, 3)),
        np.array([True, False]),
        np.array([math.nan, math.inf], np.float32),
    ],
)
def test_arrays_keep_dtype_shape_and_values(array):
    (back,) = transfer.unpack(transfer.pack([array]))
    assert (back.dtype, back.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(back, array)


def test_numpy_scalars_keep_their_type():
    back = transfer.unpack(transfer.pack({"s": np.float16(1.5)}))["s"]
    assert isinstance(back, np.float16) and back == 1.5


@pytest.mark.parametrize("value", [{1, 2}, object(), np.array([object()])])
def test_anything_else_is_refused(value):
    with pytest.raises(TypeError, match="cannot cross"):
        transfer.pack(value)


def raised(error):
    try:
        raise error
    except Exception as caught:
        return transfer.pack_error(caught)


def test_results_and_errors():
    assert transfer.unpack_result(transfer.pack_result((1, [2]))) == (1, [2])
    with pytest.raises(ShapeError, match="3 rows") as caught:
        transfer.unpack_result(raised(ShapeError("3 rows")))
    assert "test_transfer.py" in caught.value.__notes__[0]
    with pytest.raises(KeyError, match="name"):
        transfer.unpack_result(raised(KeyError("name")))


def test_errors_without_a_class_here_are_remote_errors():
    class Strange(Exception):
        pass

    for error in (Strange("odd"), UnicodeDecodeError("utf8", b"x", 0, 1, "bad")):
        with pytest.raises(transfer.RemoteError) as caught:
            transfer.unpack_result(raised(error))
        assert caught.value.type_name == type(error).__name__


def call(name, args):
    sent = []
    answer = asyncio.run(entry.call(name, transfer.pack(args), sent.append))
    return transfer.unpack_result(answer), sent


def test_entry_calls_a_public_function():
    result, sent = call("webgpu_py.entry:echo", {"a": 1})
    assert result == {"a": 1}
    assert sent == ['{"keys": ["a"]}']


@pytest.mark.parametrize(
    "name",
    [
        "os:system",
        "webgpu_py:load",
        "webgpu_pyx.a:b",
        "webgpu_py.host:x",
        "webgpu_py.host.setup:main",
        "webgpu_py.entry:_function",
        "webgpu_py.entry:json.dumps",
        "webgpu_py.entry:nothing",
        "webgpu_py.entry",
        "",
    ],
)
def test_entry_refuses_everything_else(name):
    with pytest.raises(FeatureMissing, match="entry"):
        call(name, {})
