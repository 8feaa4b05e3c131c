"""aten._softmax, aten._log_softmax: any dim, big logits, edge sizes, live shapes."""

import numpy as np
import pytest

from ops.opcase import In, OpCase, check, distinct
from webgpu_py import DtypeError, ShapeError

SOFTMAX, LOG = "aten._softmax.default", "aten._log_softmax.default"


def expected(op, x, dim):
    p = np.exp(x.astype(np.float64) - x.max())
    p /= p.sum(axis=dim, keepdims=True)
    return np.log(p) if op == LOG else p


def case(op, x, dim, limits=None):
    want = expected(op, x, dim)
    return OpCase(op, [In("x", x), dim, False], [want], limits=limits, atol=1e-6, rtol=1e-5)


def masked_cases():
    """Rows that a mask left little of, made of the lowest number there is or of -infinity."""
    lowest, inf, nan = np.finfo(np.float32).min, np.inf, np.nan
    x = np.array(
        [
            *([lowest] * 3, [-inf] * 3, [0, -inf, lowest], [lowest, -inf, lowest]),
            *([nan, 0, 1], [0, nan, 1], [2, 0, nan], [-inf, nan, -inf], [inf, 0, 1]),
        ],
        np.float32,
    )
    p = np.array([[1 / 3] * 3, [nan] * 3, [1, 0, 0], [0.5, 0, 0.5], *[[nan] * 3] * 5])
    with np.errstate(divide="ignore"):
        logs = np.log(p)
    logs[2, 2] = lowest
    return [
        OpCase(SOFTMAX, [In("x", x), -1, False], [p]),
        OpCase(LOG, [In("x", x), -1, False], [logs]),
    ]


def live_case(op):
    def step(a, b):
        x = distinct((a, b, 3), a + b, -4, 4)
        return {"x": x}, [expected(op, x, 1)]

    first, want = step(4, 70)
    args = [In("x", first["x"], (4, 70, 3)), 1, False]
    return OpCase(op, args, want, [step(1, 2), step(4, 70), step(2, 65)], rtol=1e-5)


CASES = [
    *(case(op, distinct((4, 8, 16), 1, -5, 5), d) for op in (SOFTMAX, LOG) for d in (-1, 1, 0)),
    *(case(SOFTMAX, distinct((3, n), n, -9, 9), -1) for n in (1, 2, 63, 64, 65, 300)),
    case(SOFTMAX, distinct((1, 70_000), 6), 1),
    case(SOFTMAX, distinct((), 1), 0),
    case(SOFTMAX, distinct((2, 9), 2, -177, 177), 1),
    case(LOG, distinct((2, 9), 2, -177, -100), 1),
    case(SOFTMAX, distinct((50, 3), 4), 1, {"max_compute_workgroups_per_dimension": 8}),
    *(
        case(LOG, distinct((5, 70), 3), 1, {"max_compute_invocations_per_workgroup": w})
        for w in (1, 32, 128)
    ),
    *masked_cases(),
    live_case(SOFTMAX),
    live_case(LOG),
]


@pytest.mark.parametrize("c", CASES, ids=str)
def test_cpu(c):
    check(c)


def test_browser(gpu):
    for c in CASES:
        check(c, gpu)


@pytest.mark.parametrize(
    ("x", "dim", "kind", "text"),
    [
        (distinct((2, 3)), 2, ShapeError, "dim=2, allowed are -2 to 1"),
        (np.zeros((2, 3), np.int32), 0, DtypeError, "x is int32"),
    ],
)
def test_refused_before_any_buffer(x, dim, kind, text):
    with pytest.raises(kind, match=text) as caught:
        check(OpCase(SOFTMAX, [In("x", x), dim, False], []))
    assert "[buffers created: 0]" in str(caught.value)
