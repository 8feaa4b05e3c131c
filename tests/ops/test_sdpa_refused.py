"""What attention refuses, before any buffer or at a run: shapes, dtypes, caches, positions."""

import numpy as np
import pytest

from ops.opcase import Const, In, OpCase, Sym, check
from ops.test_sdpa import CACHED, DENSE, OURS, replay
from webgpu_py import DtypeError, IndexOutOfRange, ShapeError, UnsupportedOperator


def f32(*dims):
    return In(f"x{len(dims)}_{'_'.join(map(str, dims))}", np.zeros(dims, np.float32))


def zeros(*dims, dtype=np.float32):
    return Const(np.zeros(dims, dtype))


Q, K, C = f32(1, 2, 4, 8), f32(1, 2, 2, 8), zeros(1, 6, 2, 8)
HALF = zeros(1, 6, 2, 4, dtype=np.uint32)


@pytest.mark.parametrize(
    ("op", "args", "kind", "text"),
    [
        (CACHED, [f32(4, 8), K, K, C, C, 0], ShapeError, "at least 3"),
        (CACHED, [f32(2, 2, 4, 8), K, K, C, C, 0], ShapeError, "k and v must be"),
        (CACHED, [Q, f32(1, 3, 2, 8), K, C, C, 0], ShapeError, "k and v must be"),
        (CACHED, [Q, K, f32(1, 2, 1, 8), C, C, 0], ShapeError, "k and v must be"),
        (CACHED, [Q, f32(1, 2, 2, 4), K, C, C, 0], ShapeError, "k and v must be"),
        (CACHED, [f32(1, 2, 3, 8), K, K, C, C, 0], ShapeError, "3 query heads"),
        (CACHED, [Q, K, K, C, zeros(1, 5, 2, 8), 0], ShapeError, "both caches"),
        (CACHED, [Q, K, K, zeros(1, 6, 2, 4), zeros(1, 6, 2, 4), 0], ShapeError, "both caches"),
        (CACHED, [Q, K, K, zeros(2, 6, 2, 8), zeros(2, 6, 2, 8), 0], ShapeError, "both caches"),
        (CACHED, [Q, K, K, HALF, HALF, 0], DtypeError, "k_cache is uint32"),
        (CACHED, [In("q", np.zeros((1, 2, 4, 8), np.int32)), K, K, C, C, 0], DtypeError, "q is"),
        (CACHED, [Q, K, K, C, zeros(1, 6, 2, 8), -1], IndexOutOfRange, "input_pos=-1"),
        (CACHED, [Q, K, K, C, zeros(1, 6, 2, 8), 5], IndexOutOfRange, "allowed are 0 to 4"),
        (CACHED, [Q, K, K, C, zeros(1, 6, 2, 8), None], UnsupportedOperator, "is missing"),
        (CACHED, [Q, K, K, C, zeros(1, 6, 2, 8), 0, 1, C], UnsupportedOperator, "attn_mask"),
        (CACHED, [Q, K, K, C, C, 0, 1, None, 0.1], UnsupportedOperator, "dropout_p=0.1"),
        (CACHED, [Q, K, K, C, C, 0, 1, None, 0, False], UnsupportedOperator, "is_causal"),
        (CACHED, [Q, K, K, C, C, 0, 1, None, 0, None, "1"], UnsupportedOperator, "a number"),
        (OURS, [Q, K, K, C, HALF, 0], ShapeError, "both caches"),
        (
            OURS,
            [
                f32(1, 2, 4, 1),
                f32(1, 2, 2, 1),
                f32(1, 2, 2, 1),
                zeros(1, 6, 2, 1),
                zeros(1, 6, 2, 1, dtype=np.uint32),
                0,
            ],
            DtypeError,
            "must agree",
        ),
        (OURS, [Q, K, K, C, zeros(1, 6, 2, 8), 0, None, -1], ShapeError, "window=-1"),
        (OURS, [Q, K, K, C, zeros(1, 6, 2, 8), 0, None, 0, -2.0], ShapeError, "softcap=-2"),
        (
            OURS,
            [Q, K, K, C, zeros(1, 6, 2, 8), 0, None, Sym("w", 3)],
            UnsupportedOperator,
            "SymInt",
        ),
        (DENSE, [f32(4), f32(4), f32(4)], ShapeError, "rank"),
        (DENSE, [Q, f32(2, 4, 8), f32(2, 4, 8)], ShapeError, "one rank"),
        (DENSE, [Q, f32(1, 3, 4, 8), f32(1, 3, 4, 8)], ShapeError, "differ in the length"),
        (DENSE, [Q, f32(1, 2, 4, 6), f32(1, 2, 4, 6)], ShapeError, "differ in the length"),
        (DENSE, [Q, f32(1, 2, 3, 8), f32(1, 2, 5, 8)], ShapeError, "the same shape"),
        (DENSE, [Q, Q, Q, zeros(1, 2, 4, 5)], ShapeError, "does not broadcast"),
        (DENSE, [Q, Q, Q, zeros(1, 1, 2, 4, 4)], ShapeError, "does not broadcast"),
        (DENSE, [Q, Q, Q, zeros(4, 4, dtype=np.int32)], DtypeError, "attn_mask is int32"),
        (DENSE, [Q, Q, Q, None, True], UnsupportedOperator, "scale must be"),
    ],
)
def test_refused_before_any_buffer(op, args, kind, text):
    with pytest.raises(kind, match=text) as caught:
        check(OpCase(op, args, []))
    assert "[buffers created: 0]" in str(caught.value)


def test_one_tensor_can_not_be_both_caches():
    cache = In("cache", np.zeros((1, 6, 2, 8), np.float32))
    with pytest.raises(UnsupportedOperator, match="must be two"):
        check(OpCase(CACHED, [Q, K, K, cache, cache, 0], []))


@pytest.mark.parametrize(
    ("inputs", "kind", "text"),
    [
        ({"position": -1}, IndexOutOfRange, "input_pos=-1"),
        ({"position": 16}, IndexOutOfRange, "the cache has 16 rows"),
        ({"k": np.zeros((1, 2, 4, 4), np.float32)}, ShapeError, "k and v must be"),
    ],
)
def test_refused_at_a_run(inputs, kind, text):
    c = replay(8, 4, 4, 16, (3, 1), 5)
    c.runs = [({**c.runs[0][0], **inputs}, [])]
    with pytest.raises(kind, match=text):
        check(c)
