"""JSON of strangers: values, depth, what is no JSON."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webgpu_py.errors import FormatError
from webgpu_py.formats.bounded_json import _depth, parse_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def depth_of(value):
    if isinstance(value, list | dict):
        parts = value.values() if isinstance(value, dict) else value
        return 1 + max(map(depth_of, parts), default=0)
    return 0


@given(VALUES, st.booleans())
def test_values_and_their_depth(value, ascii_only):
    raw = json.dumps(value, ensure_ascii=ascii_only).encode()
    assert parse_json("x", raw) == value
    assert _depth(raw) == depth_of(value)


@pytest.mark.parametrize("depth", [64, 65, 100_000])
@pytest.mark.parametrize("brackets", ["[]", "{}"])
def test_depth(depth, brackets):
    opening = "[" if brackets == "[]" else '{"a":'
    raw = (opening * depth + "1" + brackets[1] * depth).encode()
    if depth > 64:
        with pytest.raises(FormatError, match=f"x: JSON nested {depth} deep, at most 64"):
            parse_json("x", raw)
    else:
        assert depth_of(parse_json("x", raw)) == depth


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"{'a': 1}", b"\xff", b'{"a": 1, "a": 2}', b"9" * 10_000, b'"\\', b"[1,]"]
)
def test_no_json(raw):
    with pytest.raises(FormatError, match="x: no JSON"):
        parse_json("x", raw)
