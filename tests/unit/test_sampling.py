"""The chain from logits to a token: each link by hand, the whole against the operator."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webgpu_py.errors import IndexOutOfRange, WrongNumbers
from webgpu_py.generation import GenerationOptions
from webgpu_py.ops.sampling import Sample
from webgpu_py.sampling import (
    add_bias,
    draw,
    greedy,
    keep_min_p,
    keep_top_k,
    keep_top_p,
    log_softmax,
    penalize,
    sample,
    scale,
    top_logprobs,
)

INF = np.inf
LOGITS = np.log(np.array([0.05, 0.4, 0.1, 0.25, 0.2], np.float32))
NONE = np.zeros(5, np.int32)


def kept(logits):
    return np.flatnonzero(logits > -INF).tolist()


def test_penalties():
    logits = np.array([2.0, -2.0, 3.0, 1.0], np.float32)
    counts = np.array([1, 2, 0, 3], np.int32)
    assert penalize(logits, counts, repetition=2).tolist() == [1.0, -4.0, 3.0, 0.5]
    assert penalize(logits, counts, presence=0.5).tolist() == [1.5, -2.5, 3.0, 0.5]
    assert penalize(logits, counts, frequency=0.25).tolist() == [1.75, -2.5, 3.0, 0.25]
    assert penalize(logits, counts, 2, 0.5, 0.25).tolist() == [0.25, -5.0, 3.0, -0.75]
    assert logits.tolist() == [2.0, -2.0, 3.0, 1.0]


def test_bias():
    assert add_bias(np.arange(3.0), {2: -5.0, 0: 1.5}).tolist() == [1.5, 1.0, -3.0]
    for token in (-1, 3):
        with pytest.raises(IndexOutOfRange, match=f"token {token}: ids are 0 to 2"):
            add_bias(np.arange(3.0), {token: 1.0})


@pytest.mark.parametrize("k, tokens", [(0, range(5)), (1, [1]), (3, [1, 3, 4]), (9, range(5))])
def test_top_k(k, tokens):
    assert kept(keep_top_k(LOGITS, k)) == list(tokens)


def test_equal_logits_stay_together():
    assert kept(keep_top_k(np.array([1.0, 3.0, 2.0, 2.0]), 2)) == [1, 2, 3]
    assert kept(keep_top_p(np.zeros(4), 0.3)) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "p, tokens",
    [
        (0.0, [1]),
        (0.39, [1]),
        (0.5, [1, 3]),
        (0.7, [1, 3, 4]),
        (0.94, [1, 2, 3, 4]),
        (1.0, range(5)),
    ],
)
def test_top_p(p, tokens):
    assert kept(keep_top_p(LOGITS, p)) == list(tokens)


@pytest.mark.parametrize("p, tokens", [(0, range(5)), (0.3, [1, 3, 4]), (0.6, [1, 3]), (1, [1])])
def test_min_p(p, tokens):
    assert kept(keep_min_p(LOGITS, p)) == list(tokens)


def test_filters_only_see_what_is_left():
    assert kept(keep_top_p(keep_top_k(LOGITS, 2), 0.6)) == [1]
    assert kept(keep_top_k(keep_top_p(LOGITS, 0.7), 4)) == [1, 3, 4]


def test_log_probabilities():
    assert np.allclose(np.exp(log_softmax(LOGITS)), [0.05, 0.4, 0.1, 0.25, 0.2])
    assert np.allclose(log_softmax(LOGITS + 1e4), log_softmax(LOGITS), atol=1e-3)
    best = top_logprobs(LOGITS, 3)
    assert [one.token for one in best] == [1, 3, 4]
    assert np.allclose([one.logprob for one in best], np.log([0.4, 0.25, 0.2]))


def test_greedy_takes_the_lowest_of_equal_ids():
    assert greedy(np.array([1.0, 2.0, 2.0])) == 1
    assert sample(LOGITS, NONE).token == 1
    assert sample(LOGITS, NONE, logit_bias={0: 50.0}).token == 0
    assert sample(LOGITS, np.array([0, 1, 0, 0, 0]), presence_penalty=9).token == 3


def test_nan_is_no_token():
    assert greedy(np.array([np.nan, 1.0, np.nan, 0.0])) == 1
    for nothing in (np.nan, -np.inf):
        with pytest.raises(WrongNumbers, match="no logit is a number"):
            greedy(np.full(3, nothing))


def test_draws_follow_the_probabilities():
    many = np.array([draw(LOGITS, 7, position) for position in range(20_000)])
    shares = np.bincount(many, minlength=5) / len(many)
    assert np.abs(shares - np.exp(LOGITS)).max() < 0.012
    cold = np.array([draw(scale(LOGITS, 0.25), 8, position) for position in range(5_000)])
    shares = np.bincount(cold, minlength=5) / len(cold)
    assert np.abs(shares - np.exp(4 * LOGITS) / np.exp(4 * LOGITS).sum()).max() < 0.02


def test_equal_seeds_give_equal_tokens():
    flat = np.zeros(1000)
    tokens = [draw(flat, 3, position) for position in range(50)]
    assert tokens == [draw(flat, 3, position) for position in range(50)]
    assert tokens != [draw(flat, 4, position) for position in range(50)]
    assert len(set(tokens)) > 40


def test_the_log_probability_is_the_models_own():
    picked = sample(LOGITS, NONE, temperature=5.0, top_k=1, logit_bias={2: 100.0})
    assert picked.token == 2 and picked.logprob == pytest.approx(np.log(0.1))


class At:
    """As much of a call as the operator's reference looks at."""

    def __init__(self, position):
        self.position = position

    def int(self, name):
        assert name == "position"
        return self.position


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.0, 0.25, 1.0, 3.0]),
    st.sampled_from([0, 1, 7, 60]),
    st.sampled_from([0.0, 0.375, 0.875, 1.0]),
    st.sampled_from([0.0, 0.0625, 0.5]),
    st.sampled_from([1.0, 1.25]),
    st.sampled_from([0.0, -0.5, 0.75]),
)
@settings(max_examples=200, deadline=None)
def test_the_operator_does_the_same(seed, temperature, k, p, least, repetition, penalty):
    random = np.random.default_rng(seed)
    logits = random.normal(0, 4, 50).astype(np.float32)
    counts = random.integers(0, 3, 50).astype(np.int32)
    bias = {int(random.integers(50)): 2.5}
    chosen = dict(
        temperature=temperature,
        top_k=k,
        top_p=p,
        min_p=least,
        repetition_penalty=repetition,
        presence_penalty=penalty,
        frequency_penalty=penalty / 2,
        seed=seed,
    )
    dense = np.zeros(50, np.float32)
    dense[list(bias)] = list(bias.values())
    words = GenerationOptions(**chosen).settings()
    token, logprob = Sample.reference(None, At(seed % 1000), logits, counts.copy(), dense, words)
    mine = sample(logits, counts, **chosen, logit_bias=bias, position=seed % 1000)
    assert mine.token == int(token[0])
    assert mine.logprob == pytest.approx(float(logprob[0]))
