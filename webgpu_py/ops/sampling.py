"""The next token out of logits, on the device."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..graph.call import Call
from ..graph.dims import ceil_div
from ..graph.lowering import Lowering
from ..graph.operator import Operator, operator
from ..graph.values import TensorSpec

SETTINGS = (
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
)
"""Meaning of the first words of `settings`, float32 bits each; the eighth is the seed.

They are int32 on the device because a GPU may rewrite a seed whose bits look like a NaN.
"""

NO_TOKEN = 10**9
"""What is picked where no logit is a number above -inf."""


@operator("webgpu_py.sample.default(logits, counts!, bias, settings, position) -> [token, logprob]")
class Sample(Operator):
    """token ~ softmax(adjusted / temperature) among what top-k, top-p and min-p leave.

    adjusted = penalized(logits) + bias. A token that `counts` has seen is divided by the repetition
    penalty (multiplied where negative), then loses presence + frequency * count. Temperature 0
    takes the largest, the lowest id of equal ones. Filters apply in the order top-k (0 = off),
    top-p (1 = off), min-p (0 = off). The draw is the Gumbel maximum with noise hashed from seed,
    position and id, so equal inputs give equal tokens. counts[token] grows by one. A NaN is no
    token; where none is left the token is NO_TOKEN.

    Shapes: logits, bias float32 [V]; counts int32 [V]; settings int32 [8] (see SETTINGS);
    token int32 [1]; logprob float32 [1] = log softmax(logits)[token].
    Errors: ShapeError, DtypeError.
    """

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        logits = call.tensor("logits", "float32")
        call.check(
            logits.rank == 1 and logits.numel > 0, f"logits has shape {list(logits.dims)}, not [V]"
        )
        for name, dtype, dims in (
            ("counts", "int32", logits.dims),
            ("bias", "float32", logits.dims),
            ("settings", "int32", (8,)),
        ):
            ref = call.tensor(name, dtype)
            call.check(ref.dims == dims, f"{name} has shape {list(ref.dims)}, must be {list(dims)}")
        call.int("position")
        return [TensorSpec("int32", (1,)), TensorSpec("float32", (1,))]

    def lower(self, call: Call, out: Lowering) -> None:
        logits, counts = call.tensor("logits"), call.tensor("counts")
        vocab, width = logits.numel, out.width(256)
        per_group = 16 * width
        groups = ceil_div(vocab, per_group)
        adjusted, partials = out.scratch(4 * vocab), out.scratch(16 * groups)
        settings = call.tensor("settings")
        out.dispatch(
            "sample_adjust",
            {
                "logits": logits,
                "counts": counts,
                "bias": call.tensor("bias"),
                "settings": settings,
                "adjusted": adjusted,
                "partials": partials,
            },
            {"vocab": vocab, "per_group": per_group},
            groups,
            {"wg_size": width},
        )
        out.dispatch(
            "sample_pick",
            {
                "adjusted": adjusted,
                "partials": partials,
                "settings": settings,
                "logits": logits,
                "counts": counts,
                "token_out": call.out(0),
                "logprob": call.out(1),
            },
            {"vocab": vocab, "groups": groups, "position": out.live("position")},
            1,
            {"wg_size": width},
        )

    def reference(  # type: ignore[override]
        self,
        call: Call,
        logits: np.ndarray,
        counts: np.ndarray,
        bias: np.ndarray,
        settings: np.ndarray,
    ) -> Sequence[np.ndarray]:
        raw = logits.astype(np.float64)
        floats = settings[:7].view(np.float32).astype(np.float64)
        temperature, top_k, top_p, min_p, repetition, presence, frequency = floats
        x = np.where(raw > 0, raw / repetition, raw * repetition) - presence - frequency * counts
        x = np.where(counts > 0, x, raw) + bias
        x[np.isnan(x)] = -np.inf
        if np.isneginf(x).all():
            return [np.array([NO_TOKEN]), np.array([np.nan])]
        token = int(np.argmax(x))
        if temperature > 0:
            order = np.argsort(-x, kind="stable")
            kept = np.ones(len(x), bool)
            if top_k > 0:
                kept = x >= x[order[min(int(top_k), len(x)) - 1]]
            if top_p < 1:
                weight = np.where(kept, np.exp((x - x.max()) / temperature), 0)[order]
                reached = np.cumsum(weight) >= top_p * weight.sum()
                kept &= x >= x[order[int(np.argmax(reached))]]
            if min_p > 0:
                kept &= x >= x.max() + temperature * np.log(min_p)
            noise = gumbel(int(settings[7]), call.int("position"), len(x))
            token = int(np.argmax(np.where(kept, x / temperature + noise, -np.inf)))
        counts[token] += 1
        most = raw.max()
        logprob = raw[token] - most - np.log(np.exp(raw - most).sum())
        return [np.array([token]), np.array([logprob])]


def _pcg(x: np.ndarray) -> np.ndarray:
    state = x * np.uint32(747796405) + np.uint32(2891336453)
    word = ((state >> ((state >> np.uint32(28)) + np.uint32(4))) ^ state) * np.uint32(277803737)
    mixed: np.ndarray = (word >> np.uint32(22)) ^ word
    return mixed


def gumbel(seed: int, position: int, count: int) -> np.ndarray:
    """The Gumbel noise of ids 0..count-1 at one position: float64 [count]."""
    words = [np.array([v & 0xFFFFFFFF], np.uint32) for v in (seed, position)]
    key = _pcg(words[1] ^ _pcg(words[0]))
    bits = _pcg(np.arange(count, dtype=np.uint32) ^ key)
    u = ((bits >> np.uint32(8)).astype(np.float64) + 0.5) / 16777216.0
    noise: np.ndarray = -np.log(-np.log(u))
    return noise
