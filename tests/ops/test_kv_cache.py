"""update_cache: rows at baked and live positions, caches that persist, errors."""

import numpy as np
import pytest

from ops.opcase import Const, In, OpCase, Sym, check, check_all, distinct
from webgpu_py import DtypeError, IndexOutOfRange, ShapeError, UnsupportedOperator

NAME = "update_cache.default"
PLACEHOLDER = np.zeros(1, np.float32)


def written(cache, value, position):
    after = cache.copy()
    for s in range(value.shape[1]):
        after[0, position + s] = value[0, s]
    return after


def case(s, h, d, capacity, position, limits=None, as_input=False):
    cache, value = distinct((1, capacity, h, d), 1), distinct((1, s, h, d), 2, 5, 6)
    held = In("cache", cache) if as_input else Const(cache)
    expected = [PLACEHOLDER, written(cache, value, position)]
    return OpCase(NAME, [In("value", value), held, position], expected, limits=limits, mutated=(1,))


def replay(h, d, steps, live):
    """Steps one after the other into one cache, zero at first."""
    cache = np.zeros((1, sum(steps), h, d), np.float32)
    runs, position = [], 0
    for n, s in enumerate(steps):
        value = distinct((1, s, h, d), n, 1, 2)
        cache = written(cache, value, position)
        inputs = {"value": value, "position": position}
        runs.append((inputs, [PLACEHOLDER, cache]))
        position += s
    first, expected = runs.pop(0)
    args = [
        In("value", first["value"], (1, live, h, d)),
        Const(np.zeros_like(cache)),
        Sym("position", 0),
    ]
    return OpCase(NAME, args, expected, runs, mutated=(1,))


CASES = [
    case(2, 2, 4, 8, 0),
    case(2, 2, 4, 8, 5),
    case(3, 4, 8, 16, 10, as_input=True),
    case(8, 1, 1, 8, 0),
    *(case(1, 1, n, 3, 2) for n in (255, 256, 257)),
    case(5, 7, 37, 9, 4, {"max_compute_workgroups_per_dimension": 4}),
    *(case(3, 2, 5, 7, 4, {"max_compute_invocations_per_workgroup": w}) for w in (1, 32, 64, 128)),
    replay(4, 4, (3, 1, 1, 5, 1, 1, 2), 5),
    replay(2, 8, (3, 1, 1, 5, 1, 1), 8),
]


@pytest.mark.parametrize("c", CASES, ids=str)
def test_cpu(c):
    check(c)


def test_browser(gpu):
    check_all(CASES, gpu)


@pytest.mark.slow
def test_browser_llama3(gpu):
    check(replay(8, 128, (111, 1, 1, 1, 57, 1, 1), 111), gpu)


def f32(*dims):
    return np.zeros(dims, np.float32)


@pytest.mark.parametrize(
    ("value", "cache", "position", "kind", "text"),
    [
        (f32(2, 2, 4), f32(8, 2, 4), 0, ShapeError, "at least 4"),
        (f32(1, 2, 2, 4), f32(1, 1, 8, 2, 4), 0, ShapeError, "one rank"),
        (f32(2, 2, 2, 4), f32(2, 8, 2, 4), 0, ShapeError, "leading dims must be 1"),
        (f32(1, 2, 2, 4), f32(2, 8, 2, 4), 0, ShapeError, "differ in the rows"),
        (f32(1, 2, 2, 4), f32(1, 8, 3, 4), 0, ShapeError, "differ in the rows"),
        (f32(1, 2, 2, 4), f32(1, 8, 2, 5), 0, ShapeError, "differ in the rows"),
        (f32(1, 9, 2, 4), f32(1, 8, 2, 4), 0, ShapeError, "9 tokens, the cache has 8 rows"),
        (f32(1, 2, 2, 4), f32(1, 8, 2, 4), -1, IndexOutOfRange, "input_pos=-1"),
        (f32(1, 2, 2, 4), f32(1, 8, 2, 4), 7, IndexOutOfRange, "allowed are 0 to 6"),
        (f32(1, 2, 2, 4), f32(1, 8, 2, 4), None, UnsupportedOperator, "'input_pos' is missing"),
        (f32(1, 2, 2, 4), f32(1, 8, 2, 4), "0", UnsupportedOperator, "must be a number"),
        (f32(1, 2, 2, 4), f32(1, 8, 2, 4).astype(np.int32), 0, DtypeError, "cache is int32"),
        (f32(1, 2, 2, 4).astype(np.int32), f32(1, 8, 2, 4), 0, DtypeError, "value is int32"),
    ],
)
def test_refused_before_any_buffer(value, cache, position, kind, text):
    with pytest.raises(kind, match=text) as caught:
        check(OpCase(NAME, [In("value", value), Const(cache), position], []))
    assert "[buffers created: 0]" in str(caught.value)


@pytest.mark.parametrize("position", [-1, 14])
def test_a_live_position_outside_the_cache_is_refused(position):
    c = replay(4, 4, (3, 1, 1, 5, 1, 1, 2), 5)
    c.runs = [({"position": position, "value": f32(1, 1, 4, 4)}, [])]
    with pytest.raises(IndexOutOfRange, match=f"input_pos={position}"):
        check(c)


def test_half_values_are_refused_at_the_run():
    c = case(2, 2, 4, 8, 0)
    c.runs = [({"value": np.zeros((1, 2, 2, 4), np.float16)}, [])]
    with pytest.raises(DtypeError, match="value is float16"):
        check(c)
