"""webgpu_py.join_rows: weights one below the other; how they lie is tests/unit/test_memory.py's."""

import numpy as np

from ops.opcase import Const, OpCase, check, check_all, distinct

PARTS = [distinct((rows, 64), rows) for rows in (4, 2, 3)]
CASES = [
    OpCase("webgpu_py.join_rows", [[Const(p) for p in PARTS]], [np.concatenate(PARTS)]),
    OpCase("webgpu_py.join_rows", [[Const(PARTS[0][0])]], [PARTS[0][0]]),
]


def test_cpu():
    for c in CASES:
        check(c)


def test_browser(gpu):
    check_all(CASES, gpu)
