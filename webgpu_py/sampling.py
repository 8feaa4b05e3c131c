"""From logits to a token, as a chain of pure functions on NumPy arrays.

Each takes logits [V] and gives new ones, float64 [V], `-inf` where a token is ruled out; `sample`
is the chain in the order of `webgpu_py.sample`, the operator that does the same on the device.
For loops of your own over a session's logits, and to see what a setting does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .errors import IndexOutOfRange, WrongNumbers
from .ops.sampling import gumbel

Logits: TypeAlias = NDArray[np.floating[Any]]
F64: TypeAlias = NDArray[np.float64]


class Sampled(NamedTuple):
    """A token and its log probability under the model's own, unchanged logits."""

    token: int
    logprob: float


def penalize(
    logits: Logits,
    counts: NDArray[np.integer[Any]],
    repetition: float = 1.0,
    presence: float = 0.0,
    frequency: float = 0.0,
) -> F64:
    """Lower tokens that stand `counts` [V] times in the text so far.

    A seen token's logit is divided by `repetition` (multiplied where negative), then loses
    `presence + frequency * count`.
    """
    x = logits.astype(np.float64)
    lowered = np.where(x > 0, x / repetition, x * repetition) - presence - frequency * counts
    return np.where(counts > 0, lowered, x)


def add_bias(logits: Logits, bias: Mapping[int, float]) -> F64:
    """Add to the logits of single tokens; IndexOutOfRange for an id outside the vocabulary."""
    x = logits.astype(np.float64)
    for token, value in bias.items():
        if not 0 <= token < len(x):
            raise IndexOutOfRange(f"logit bias for token {token}: ids are 0 to {len(x) - 1}")
        x[token] += value
    return x


def scale(logits: Logits, temperature: float) -> F64:
    """Divide by a temperature above 0: below 1 sharper, above 1 flatter."""
    return logits.astype(np.float64) / temperature


def keep_top_k(logits: Logits, k: int) -> F64:
    """Keep the k largest, and what equals the smallest of them; 0 keeps all."""
    x = logits.astype(np.float64)
    if k <= 0 or k >= len(x):
        return x
    return _at_least(x, np.partition(x, len(x) - k)[len(x) - k])


def keep_top_p(logits: Logits, p: float) -> F64:
    """Keep the most probable tokens that reach probability p together, and their equals."""
    x = logits.astype(np.float64)
    if p >= 1:
        return x
    falling = np.sort(x)[::-1]
    mass = np.cumsum(np.exp(falling - falling[0]))
    return _at_least(x, falling[int(np.argmax(mass >= p * mass[-1]))])


def keep_min_p(logits: Logits, p: float) -> F64:
    """Keep tokens at least p times as probable as the most probable one."""
    x = logits.astype(np.float64)
    return _at_least(x, x.max() + np.log(p)) if p > 0 else x


def greedy(logits: Logits) -> int:
    """The largest logit's token, the lowest id of equal ones; NaN counts as -inf.

    Errors: WrongNumbers where no logit is above -inf.
    """
    x = np.where(np.isnan(logits), -np.inf, logits)
    token = int(np.argmax(x))
    if np.isneginf(x[token]):
        raise WrongNumbers(
            "no logit is a number, all are NaN or -inf: a weight of the file may be damaged; "
            "a session's debug names the first node whose result holds NaN"
        )
    return token


def draw(logits: Logits, seed: int, position: int) -> int:
    """A token with probability softmax(logits): the largest after Gumbel noise.

    The noise is a hash of seed, position and id, so equal arguments give the equal token.
    """
    return greedy(logits + gumbel(seed, position, len(logits)))


def log_softmax(logits: Logits) -> F64:
    """Log probabilities."""
    x = logits.astype(np.float64)
    x -= x.max()
    x -= np.log(np.exp(x).sum())
    return x


def top_logprobs(logits: Logits, count: int) -> list[Sampled]:
    """The `count` most probable tokens with their log probabilities, falling."""
    logprobs = log_softmax(logits)
    order = np.argsort(-logprobs, kind="stable")[:count]
    return [Sampled(int(token), float(logprobs[token])) for token in order]


def sample(
    logits: Logits,
    counts: NDArray[np.integer[Any]],
    *,
    temperature: float = 0.0,
    top_k: int = 0,
    top_p: float = 1.0,
    min_p: float = 0.0,
    repetition_penalty: float = 1.0,
    presence_penalty: float = 0.0,
    frequency_penalty: float = 0.0,
    logit_bias: Mapping[int, float] | None = None,
    seed: int = 0,
    position: int = 0,
) -> Sampled:
    """The next token; `counts` [V] is left as it is.

    Penalties, bias, then at temperature 0 the largest; else temperature, top-k, top-p, min-p and
    a draw. Defaults are off.
    """
    x = penalize(logits, counts, repetition_penalty, presence_penalty, frequency_penalty)
    x = add_bias(x, logit_bias or {})
    if temperature > 0:
        x = keep_top_k(scale(x, temperature), top_k)
        token = draw(keep_min_p(keep_top_p(x, top_p), min_p), seed, position)
    else:
        token = greedy(x)
    return Sampled(token, float(log_softmax(logits)[token]))


def _at_least(x: F64, floor: Any) -> F64:
    return np.where(x >= floor, x, -np.inf)
