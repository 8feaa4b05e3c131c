"""et_vk.fused_ce: masked rows, far logits, many rows, live rows, labels out of range."""

from math import exp, log

import numpy as np
import pytest

from ops.opcase import Const, In, OpCase, check, check_all, distinct
from webgpu_py import DtypeError, IndexOutOfRange, ShapeError, UnsupportedOperator

OP = "et_vk.fused_ce.default"
WIDTHS = [{"max_compute_invocations_per_workgroup": w} for w in (1, 32, 64, 128)]


def expected(logits, labels, n_valid):
    rows = logits.reshape(-1, logits.shape[-1])
    slopes, loss = np.zeros(rows.shape), 0.0
    for i, label in enumerate(labels.reshape(-1)):
        if label < 0:
            continue
        most = float(rows[i].max())
        powers = [exp(float(v) - most) for v in rows[i]]
        total = sum(powers)
        loss += log(total) + most - float(rows[i, label])
        slopes[i] = [p / total for p in powers]
        slopes[i, label] -= 1
    return [np.array(loss / n_valid), slopes.reshape(logits.shape) / n_valid]


def labels_of(dims, classes, masked=0):
    labels = np.random.default_rng(5).integers(0, classes, dims).astype(np.int32)
    labels.reshape(-1)[:masked] = -np.arange(1, masked + 1) * 50
    return labels


def entropy(dims, masked=0, spread=4.0, live=(), limits=None, op=OP):
    logits = distinct(dims, 1, -spread, spread)
    labels = labels_of(dims[:-1], dims[-1], masked)
    n_valid = float(max(labels.size - masked, 1))
    args = [In("x", logits, dims if live else None)]
    args += [In("labels", labels, dims[:-1] if live else None), n_valid]
    runs = []
    for n in live:
        x = distinct((n, dims[-1]), n, -spread, spread)
        y = labels_of((n,), dims[-1])
        runs.append(({"x": x, "labels": y}, expected(x, y, n_valid)))
    return OpCase(op, args, expected(logits, labels, n_valid), runs, limits=limits)


def masked_out():
    """A row of the lowest number there is: equal shares."""
    x = np.full((2, 5), np.finfo(np.float32).min)
    x[1, 2] = 0
    labels = np.array([3, 2], np.int32)
    slopes = np.full((2, 5), 0.2) * [[1], [0]]
    slopes[0, 3] -= 1
    return OpCase(OP, [In("x", x), In("labels", labels), 1.0], [np.array(log(5)), slopes])


CASES = [
    masked_out(),
    entropy((4, 32)),
    entropy((8, 128), 3),
    entropy((2, 3, 37), 1),
    entropy((9,)),
    entropy((1, 1)),
    entropy((3, 257), spread=500.0),
    entropy((3, 5), 3),
    entropy((300, 3), limits={"max_compute_workgroups_per_dimension": 18}),
    *(entropy((3, 70), limits=w) for w in WIDTHS),
    entropy((9, 20), live=(1, 9, 4)),
]


@pytest.mark.parametrize("c", CASES, ids=str)
def test_cpu(c):
    check(c)


def test_browser(gpu):
    check_all(CASES, gpu)


@pytest.mark.slow
def test_browser_large_vocabulary(gpu):
    c = entropy((16, 128256))
    c.rtol = 1e-3
    check(c, gpu)


def test_a_masked_class_weighs_nothing():
    masked_class(None)


def test_a_masked_class_weighs_nothing_in_browser(gpu):
    masked_class(gpu)


def masked_class(gpu):
    c = entropy((2, 8))
    c.args[0].array[:, 3] = -np.inf
    c.args[1].array[:] = 5
    c.expected = expected(c.args[0].array, c.args[1].array, c.args[2])
    check(c, gpu)


def test_the_host_refuses_labels_it_sees():
    c = entropy((4, 32))
    c.args[1].array[2] = 32
    with pytest.raises(IndexOutOfRange, match=r"index 32 at position 2 .* below 32"):
        check(c)


def hidden_labels(gpu):
    """Labels that only the device knows: constants."""
    labels = np.array([0, 5, 99, -1], np.int32)
    args = [In("x", distinct((4, 8))), Const(labels), 3.0]
    with pytest.raises(IndexOutOfRange, match="index 99 at position 2 is out of range"):
        check(OpCase(OP, args, []), gpu)


def test_labels_out_of_range():
    hidden_labels(None)


def test_labels_out_of_range_in_browser(gpu):
    hidden_labels(gpu)


@pytest.mark.parametrize(
    ("args", "kind", "text"),
    [
        ([distinct((2, 3)), np.zeros(3, np.int32), 1.0], ShapeError, r"\[..., V\]"),
        ([distinct(()), np.zeros((), np.int32), 1.0], ShapeError, r"\[..., V\]"),
        ([distinct((2, 3)), distinct((2,)), 1.0], DtypeError, "labels is float32"),
        ([distinct((2, 3)), np.zeros(2, np.int32), 0.0], UnsupportedOperator, "n_valid=0"),
        ([distinct((2, 3)), np.zeros(2, np.int32), float("inf")], UnsupportedOperator, "n_valid"),
    ],
)
def test_refused_before_any_buffer(args, kind, text):
    made = [In(f"t{i}", a) if isinstance(a, np.ndarray) else a for i, a in enumerate(args)]
    with pytest.raises(kind, match=text) as caught:
        check(OpCase(OP, made, []))
    assert "[buffers created: 0]" in str(caught.value)
