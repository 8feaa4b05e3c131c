"""et_vk.adamw_step: in place, several steps on one session, errors."""

import numpy as np
import pytest

from ops.opcase import In, OpCase, check, check_all, distinct
from webgpu_py import DtypeError, ShapeError, UnsupportedOperator

OP = "et_vk.adamw_step.default"
WIDTHS = [{"max_compute_invocations_per_workgroup": w} for w in (1, 32, 64, 128)]


def step_of(p, m, v, g, lr, beta1, beta2, eps, decay, c1, c2):
    """The published form: decay first, then the corrected moments."""
    p, m, v, g = (a.astype(np.float64) for a in (p, m, v, g))
    p = p - lr * decay * p
    m = m + (1 - beta1) * (g - m)
    v = v + (1 - beta2) * (g * g - v)
    return [p - lr * (m / c1) / ((v / c2) ** 0.5 + eps), m, v]


def step(dims, at=1, decay=0.01, live=(), limits=None):
    scalars = (1e-3, 0.9, 0.999, 1e-8, decay, 1 - 0.9**at, 1 - 0.999**at)

    def arrays(dims, seed):
        return {
            "p": distinct(dims, seed),
            "m": distinct(dims, seed + 1, -0.1, 0.1),
            "v": distinct(dims, seed + 2, 0.001, 0.02),
            "g": distinct(dims, seed + 3, -0.3, 0.3),
        }

    first = arrays(dims, 1)
    runs = [arrays(d, 9) for d in live]
    return OpCase(
        OP,
        [*(In(k, a, dims if live else None) for k, a in first.items()), *scalars],
        step_of(*first.values(), *scalars),
        [(r, step_of(*r.values(), *scalars)) for r in runs],
        limits=limits,
        mutated=(0, 1, 2),
    )


CASES = [
    step((64,)),
    step((256,), decay=0.0),
    step((10, 100), 10),
    step(()),
    *(step((n,), 3) for n in (255, 257)),
    step((900,), 2, limits={"max_compute_workgroups_per_dimension": 4, **WIDTHS[2]}),
    *(step((70,), 2, limits=w) for w in WIDTHS),
    step((8, 5), 4, live=((1, 5), (8, 5), (3, 2))),
]


@pytest.mark.parametrize("c", CASES, ids=str)
def test_cpu(c):
    check(c)


def test_browser(gpu):
    check_all(CASES, gpu)


@pytest.mark.parametrize(
    ("change", "kind", "text"),
    [
        ({3: In("g", distinct((3,)))}, ShapeError, r"grad \[3\] and param \[4\], must be equal"),
        ({1: In("m", np.ones(4, np.int32))}, DtypeError, "m is int32"),
        ({9: 0.0}, UnsupportedOperator, "bias_correction1=0"),
        ({10: 0}, UnsupportedOperator, "bias_correction2=0"),
        ({4: float("nan")}, UnsupportedOperator, "lr=nan, must be finite"),
    ],
)
def test_refused_before_any_buffer(change, kind, text):
    c = step((4,))
    for i, value in change.items():
        c.args[i] = value
    with pytest.raises(kind, match=text) as caught:
        check(c)
    assert "[buffers created: 0]" in str(caught.value)
