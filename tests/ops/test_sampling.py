"""webgpu_py.sample: greedy, filters, penalties, bias, logprob; draws against a distribution."""

import numpy as np
import pytest

from ops.opcase import In, OpCase, Sym, check, check_all, distinct, run
from webgpu_py import ShapeError

NEUTRAL = {
    "temperature": 0.0,
    "top_k": 0,
    "top_p": 1.0,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}


def settings(seed=0, **changes):
    words = np.zeros(8, np.int32)
    words[:7] = np.array(list({**NEUTRAL, **changes}.values()), np.float32).view(np.int32)
    words[7] = seed
    return words


def sample_case(logits, counts=None, bias=None, position=0, seed=0, expected=(), **changes):
    v = len(logits)
    return OpCase(
        "webgpu_py.sample.default",
        [
            In("logits", logits),
            In("counts", np.zeros(v, np.int32) if counts is None else counts),
            In("bias", np.zeros(v, np.float32) if bias is None else bias),
            In("settings", settings(seed, **changes)),
            Sym("position", position),
        ],
        list(expected),
        atol=1e-4,
        rtol=1e-4,
    )


def log_softmax(x):
    x = x.astype(np.float64)
    return x - x.max() - np.log(np.exp(x - x.max()).sum())


def greedy(v, seed, limits=None):
    logits = distinct((v,), seed, -8, 8)
    token = int(np.argmax(logits))
    case = sample_case(logits, expected=[np.array([token], np.int32), log_softmax(logits)[[token]]])
    case.limits = limits
    return case


CASES = [
    *(greedy(v, v) for v in (1, 2, 255, 256, 257, 4095, 4096, 4097, 9000)),
    *(greedy(700, w, {"max_compute_invocations_per_workgroup": w}) for w in (1, 32, 64, 128)),
    greedy(9000, 3, {"max_compute_workgroups_per_dimension": 4}),
    sample_case(
        np.full(300, np.finfo(np.float32).min),
        expected=[np.array([0], np.int32), np.array([-np.log(300)])],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_greedy_cpu(case):
    check(case)


def test_greedy_browser(gpu):
    check_all(CASES, gpu)


def picks(case, seeds, gpu=None):
    """The token of each seed."""
    base = dict(zip(("logits", "counts", "bias"), (a.array for a in case.args[:3]), strict=True))
    words = case.args[3].array
    runs = []
    for seed in seeds:
        other = words.copy()
        other[7] = seed
        runs.append(({**base, "settings": other}, []))
    case.runs = runs
    return np.array([int(r[0][0]) for r in run(case, gpu)][1:])


LOGITS = np.array([2.0, 1.0, 0.5, 0.0, -1.0, -3.0, 1.5, 0.25], np.float32)


@pytest.mark.parametrize(
    ("changes", "allowed"),
    [
        ({"top_k": 1}, {0}),
        ({"top_k": 3}, {0, 1, 6}),
        ({"top_p": 0.01}, {0}),
        ({"top_p": 0.7}, {0, 1, 6}),
        ({"min_p": 0.5}, {0, 6}),
        ({"top_k": 4, "top_p": 0.9, "min_p": 0.3}, {0, 1, 6}),
    ],
)
def test_filters_leave_what_they_should(changes, allowed, gpu):
    seeds = range(200)
    case = sample_case(LOGITS, temperature=1.0, **changes)
    on_cpu, on_gpu = picks(case, seeds), picks(case, seeds[:40], gpu)
    assert set(on_cpu) == allowed
    np.testing.assert_array_equal(on_gpu, on_cpu[:40])


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_the_draw_follows_the_distribution(temperature):
    n = 4000
    tokens = picks(sample_case(LOGITS, temperature=temperature), range(n))
    p = np.exp(log_softmax(LOGITS / temperature))
    seen = np.bincount(tokens, minlength=8) / n
    np.testing.assert_allclose(seen, p, atol=4 * np.sqrt(0.25 / n))


def test_penalties_and_bias_cpu_and_browser(gpu):
    counts = np.array([3, 0, 0, 0, 0, 0, 1, 0], np.int32)
    bias = np.zeros(8, np.float32)
    bias[5] = 5.5
    for changes, extra, token in [
        ({"repetition_penalty": 4.0}, {}, 1),
        ({"frequency_penalty": 0.2}, {}, 0),
        ({"frequency_penalty": 0.5}, {}, 1),
        ({"presence_penalty": 1.5}, {}, 1),
        ({}, {"bias": bias}, 5),
    ]:
        expected = [np.array([token], np.int32), log_softmax(LOGITS)[[token]]]
        case = sample_case(LOGITS, counts, expected=expected, **extra, **changes)
        check(case)
        check(case, gpu)


def test_ties_take_the_lowest_id(gpu):
    logits = np.zeros(5000, np.float32)
    logits[[77, 4999]] = 1
    expected = [np.array([77], np.int32), log_softmax(logits)[[77]]]
    check(sample_case(logits, expected=expected))
    check(sample_case(logits, expected=expected), gpu)


def test_refused():
    with pytest.raises(ShapeError, match=r"counts has shape \[3\], must be \[8\]"):
        check(sample_case(LOGITS, counts=np.zeros(3, np.int32)))
