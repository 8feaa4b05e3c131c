"""aten.add/sub/mul.Tensor: broadcasting, edge sizes, live shapes, errors."""

import numpy as np
import pytest

from ops.opcase import Const, In, OpCase, check, distinct
from webgpu_py import DtypeError, ShapeError

FORMULAS = {
    "aten.add.Tensor": lambda a, b, k: a + k * b,
    "aten.sub.Tensor": lambda a, b, k: a - k * b,
    "aten.mul.Tensor": lambda a, b, k: a * b,
}


def case(op, a_dims, b_dims, alpha=1, limits=None):
    a, b = distinct(a_dims, 1), distinct(b_dims, 2)
    wide = FORMULAS[op](a.astype(np.float64), b.astype(np.float64), alpha)
    scalars = [] if op == "aten.mul.Tensor" else [alpha]
    return OpCase(op, [In("a", a), In("b", b), *scalars], [wide], limits=limits)


CASES = [
    *(case(op, (37, 41), (37, 41), 3) for op in FORMULAS),
    *(case(op, (3, 5, 7, 11), (1, 5, 1, 11), 0.5) for op in FORMULAS),
    case("aten.add.Tensor", (), ()),
    case("aten.mul.Tensor", (4,), (3, 4)),
    case("aten.add.Tensor", (2, 1, 2, 1, 2, 1, 2, 3), (1, 2, 1, 2, 1, 2, 2, 1)),
    *(case("aten.add.Tensor", (n,), (n,)) for n in (1, 255, 256, 257)),
    case("aten.add.Tensor", (1000,), (1000,), limits={"max_compute_workgroups_per_dimension": 4}),
    *(
        case("aten.mul.Tensor", (300,), (300,), limits={"max_compute_invocations_per_workgroup": w})
        for w in (1, 32, 64, 128)
    ),
]


def live_case():
    a, b = distinct((5, 4), 1), distinct((4,), 2)
    runs = []
    for n in (1, 8, 3):
        x = distinct((n, 4), n)
        runs.append(({"a": x}, [x.astype(np.float64) + b]))
    return OpCase(
        "aten.add.Tensor",
        [In("a", a, (8, 4)), Const(b, prepack=True)],
        [a.astype(np.float64) + b],
        runs,
    )


@pytest.mark.parametrize("c", [*CASES, live_case()], ids=str)
def test_cpu(c):
    check(c)


def test_browser(gpu):
    for c in [*CASES, live_case()]:
        check(c, gpu)


@pytest.mark.parametrize(
    ("a", "b", "kind", "text"),
    [
        (distinct((3, 4)), distinct((3,)), ShapeError, "do not broadcast"),
        (distinct((1,) * 9), distinct((1,)), ShapeError, "rank 9"),
        (np.arange(4, dtype=np.int32), distinct((4,)), DtypeError, "a is int32"),
    ],
)
def test_refused_before_any_buffer(a, b, kind, text):
    with pytest.raises(kind, match=text) as caught:
        check(OpCase("aten.add.Tensor", [In("a", a), In("b", b)], []))
    assert "[buffers created: 0]" in str(caught.value)
