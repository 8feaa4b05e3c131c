"""Requests to a decoder, and the token loop for devices whose loop is not JavaScript's.

In a browser `js/generate.js` runs the same loop with several steps in flight and never enters
Python; `SessionGenerator` is its plain twin for the NumPy and native devices.
"""

from __future__ import annotations

import asyncio
import codecs
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .errors import (
    ContextLength,
    DtypeError,
    FeatureMissing,
    IndexOutOfRange,
    ShapeError,
    WrongNumbers,
)

if TYPE_CHECKING:
    from .graph.session import Session


@dataclass(frozen=True, slots=True)
class GenerationOptions:
    """How to sample and when to stop; the names are Hugging Face's and OpenAI's.

    temperature 0 is greedy. top_k 0, top_p 1, min_p 0 and penalties 1, 0, 0 are off. `stop` are
    strings that end the answer and are cut off. `logit_bias` maps token ids to additions.
    """

    max_tokens: int = 512
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    seed: int = 0
    stop: tuple[str, ...] = ()
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    top_logprobs: int = 0

    @classmethod
    def given(cls, options: Mapping[str, Any]) -> GenerationOptions:
        """What a caller wrote: None is the default. FeatureMissing names what is no option."""
        known = [f.name for f in fields(cls)]
        unknown = [name for name in options if name not in known]
        if unknown:
            raise FeatureMissing(
                f"{', '.join(unknown)}: no option of generation; there are {', '.join(known)}"
            )
        return cls(**{name: value for name, value in options.items() if value is not None})

    def __post_init__(self) -> None:
        """Refuse values that have no meaning: DtypeError names the option and its range."""
        endless = float("inf")
        ranges: dict[str, tuple[type, float, float]] = {
            "max_tokens": (Integral, 1, endless),
            "temperature": (Real, 0, endless),
            "top_k": (Integral, 0, endless),
            "top_p": (Real, 0, 1),
            "min_p": (Real, 0, 1),
            "repetition_penalty": (Real, 1e-3, endless),
            "presence_penalty": (Real, -endless, endless),
            "frequency_penalty": (Real, -endless, endless),
            "seed": (Integral, -endless, endless),
            "top_logprobs": (Integral, 0, 100),
        }
        for name, (kind, low, high) in ranges.items():
            value: Any = getattr(self, name)
            fits: Any = isinstance(value, kind)
            if not fits or not low <= value <= high:
                what = "whole numbers from " if kind is Integral else ""
                raise DtypeError(f"{name}={value!r}, allowed are {what}{low} to {high}")
        stops = (self.stop,) if isinstance(self.stop, str) else tuple(self.stop)
        if not all(isinstance(stop, str) for stop in stops):
            raise DtypeError(f"stop={self.stop!r}, must be a string or several")
        object.__setattr__(self, "stop", stops)
        try:
            bias = {int(token): float(value) for token, value in self.logit_bias.items()}
        except (TypeError, ValueError, AttributeError):
            raise DtypeError(
                f"logit_bias={self.logit_bias!r}, must map token ids to numbers"
            ) from None
        object.__setattr__(self, "logit_bias", bias)

    def settings(self) -> np.ndarray:
        """The words of `webgpu_py.sample`: seven floats' bits and the seed, int32 [8]."""
        words = np.zeros(8, np.int32)
        words[:7] = np.array(
            [
                self.temperature,
                self.top_k,
                self.top_p,
                self.min_p,
                self.repetition_penalty,
                self.presence_penalty,
                self.frequency_penalty,
            ],
            np.float32,
        ).view(np.int32)
        words[7] = np.uint32(self.seed & 0xFFFFFFFF).astype(np.int32)
        return words

    def plain(self) -> dict[str, Any]:
        """The options as JavaScript's loop reads them."""
        found = asdict(self)
        return found | {
            "stop": list(self.stop),
            "logit_bias": [list(pair) for pair in self.logit_bias.items()],
            "seed": int(self.settings()[7]),
        }


@dataclass(frozen=True, slots=True)
class Piece:
    """A step of an answer: tokens, the text that became certain, and log probabilities.

    `top_logprobs` are empty unless they were asked for.
    """

    tokens: list[int]
    text: str
    logprobs: list[float]
    top_logprobs: list[tuple[int, float]] = field(default_factory=list)


class Request(Protocol):
    """One answer under way."""

    finish_reason: str | None
    timings: dict[str, float]

    async def next(self) -> Piece | None:
        """The next piece; None at the end, when finish_reason and timings are set."""
        ...

    def cancel(self) -> None:
        """End soon: at most two more tokens come."""
        ...


class Generator(Protocol):
    """A decoder that answers prompts, one at a time, and keeps its cache between them."""

    def start(self, prompt: Sequence[int], options: GenerationOptions) -> Request:
        """Begin an answer."""
        ...

    def close(self) -> None:
        """Free what the loop itself holds."""
        ...


def check_prompt(prompt: Sequence[int], context: int, vocab_size: int) -> None:
    """Refuse a prompt that can't be answered: ShapeError, ContextLength, IndexOutOfRange."""
    if not prompt:
        raise ShapeError("the prompt has no tokens; give it some text")
    if len(prompt) >= context:
        raise ContextLength(
            f"the prompt has {len(prompt)} tokens; this model was loaded with a context of "
            f"{context}, which prompt and answer share; shorten it or load with a larger context"
        )
    for at, token in enumerate(prompt):
        if not 0 <= token < vocab_size:
            raise IndexOutOfRange(
                f"token id {token} at position {at}: the vocabulary has ids 0 to {vocab_size - 1}"
            )


def check_bias(bias: Mapping[int, float], vocab_size: int) -> None:
    """Refuse a bias for what is no token: IndexOutOfRange."""
    for token in bias:
        if not 0 <= token < vocab_size:
            raise IndexOutOfRange(
                f"logit_bias for token id {token}: the vocabulary has ids 0 to {vocab_size - 1}"
            )


class TextAssembler:
    """Bytes to text: UTF-8 that may be cut anywhere, and stop strings that may span tokens."""

    def __init__(self, stops: Sequence[str] = ()) -> None:
        self._stops = [s for s in stops if s]
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""
        self.stopped = False

    def push(self, data: bytes) -> str:
        """Text that is certain after these bytes; a stop string and all behind it is cut off."""
        return self._settle(self._decoder.decode(data), False)

    def flush(self) -> str:
        """What is still held back when the answer ends for another reason."""
        return self._settle(self._decoder.decode(b"", True), True)

    def _settle(self, more: str, last: bool) -> str:
        if self.stopped:
            return ""
        self._held += more
        found = [at for s in self._stops if (at := self._held.find(s)) >= 0]
        if found:
            self.stopped = True
            return self._held[: min(found)]
        keep = 0 if last else max((_overlap(self._held, s) for s in self._stops), default=0)
        text, self._held = self._held[: len(self._held) - keep], self._held[-keep:] * (keep > 0)
        return text


def _overlap(text: str, stop: str) -> int:
    """Length of the longest end of `text` that begins `stop`."""
    for n in range(min(len(text), len(stop) - 1), 0, -1):
        if text.endswith(stop[:n]):
            return n
    return 0


class SessionGenerator:
    """The loop in Python: a run a step."""

    def __init__(
        self,
        session: Session,
        context: int,
        chunk: int,
        ends: frozenset[int],
        table: tuple[bytes, np.ndarray],
    ) -> None:
        self.session = session
        self.context = context
        self.chunk = chunk
        self.ends = ends
        self.blob, self.offsets = table
        self.vocab_size = len(self.offsets) - 1
        self.cached: list[int] = []
        self.turn = asyncio.Lock()
        """Held for a step, so that answers may be read side by side, or be left half read."""

    def start(self, prompt: Sequence[int], options: GenerationOptions) -> SessionRequest:
        """See Generator."""
        return SessionRequest(self, list(prompt), options)

    def close(self) -> None:
        """See Generator."""

    def bytes_of(self, token: int) -> bytes:
        """What a token shows."""
        return self.blob[self.offsets[token] : self.offsets[token + 1]]

    def fresh(self, tokens: list[int]) -> list[int]:
        """The tokens that no row of the cache serves; rows that serve none count as unwritten."""
        same = 0
        for a, b in zip(self.cached, tokens[:-1], strict=False):
            if a != b:
                break
            same += 1
        del self.cached[same:]
        return tokens[same:]


class SessionRequest:
    """One answer of a SessionGenerator."""

    def __init__(
        self, generator: SessionGenerator, prompt: list[int], options: GenerationOptions
    ) -> None:
        self.finish_reason: str | None = None
        self.timings = {"first_token_ms": 0.0, "prefill_tps": 0.0, "decode_tps": 0.0}
        self._generator = generator
        self._prompt = prompt
        self._options = options
        self._cancelled = False
        self._steps = self._run()

    async def next(self) -> Piece | None:
        """See Request."""
        return await anext(self._steps, None)

    def cancel(self) -> None:
        """See Request."""
        self._cancelled = True

    async def _run(self) -> AsyncIterator[Piece]:
        g, prompt, options = self._generator, self._prompt, self._options
        check_prompt(prompt, g.context, g.vocab_size)
        room = min(options.max_tokens, g.context - len(prompt))
        text = TextAssembler(options.stop)
        counts = np.bincount(prompt, minlength=g.vocab_size).astype(np.int32)
        bias = np.zeros(g.vocab_size, np.float32)
        for token, value in options.logit_bias.items():
            bias[token] = value
        started = time.perf_counter()
        first, computed = 0.0, 0
        delivered: list[int] = []
        while not self._cancelled:
            async with g.turn:
                fresh = g.fresh([*prompt, *delivered])
                out = await self._step(fresh, counts, bias)
            computed = computed or len(fresh)
            token = int(out["token"][0])
            if not 0 <= token < g.vocab_size:
                raise WrongNumbers(
                    "no logit is a number, all are NaN or -inf: a weight of the file may be "
                    "damaged; a session's debug names the first node whose result holds NaN"
                )
            counts[token] += 1
            first = first or time.perf_counter()
            if token in g.ends:
                self.finish_reason = "stop"
                break
            delivered.append(token)
            piece = text.push(g.bytes_of(token))
            if text.stopped:
                self.finish_reason = "stop"
            elif len(delivered) == room:
                self.finish_reason = "length"
                piece += text.flush()
            yield Piece([token], piece, [float(out["logprob"][0])], self._top(out["logits"]))
            if self.finish_reason:
                break
        if self._cancelled:
            self.finish_reason = "cancelled"
        if self.finish_reason == "stop" and (rest := text.flush()):
            yield Piece([], rest, [])
        if not first:
            return
        spent = max(time.perf_counter() - first, 1e-6)
        self.timings = {
            "first_token_ms": 1e3 * (first - started),
            "prefill_tps": computed / max(first - started, 1e-6),
            "decode_tps": (len(delivered) - 1) / spent if len(delivered) > 1 else 0.0,
        }

    async def _step(
        self, ids: list[int], counts: np.ndarray, bias: np.ndarray
    ) -> dict[str, np.ndarray]:
        g = self._generator
        out: dict[str, np.ndarray] = {}
        for start in range(0, len(ids), g.chunk):
            part = ids[start : start + g.chunk]
            out = await g.session.run(
                ids=np.array(part, np.int32),
                position=len(g.cached),
                last=len(part) - 1,
                counts=counts,
                bias=bias,
                settings=self._options.settings(),
            )
            g.cached += part
        return out

    def _top(self, logits: np.ndarray) -> list[tuple[int, float]]:
        count = self._options.top_logprobs
        if not count:
            return []
        wide = logits.astype(np.float64)
        total = wide.max() + np.log(np.exp(wide - wide.max()).sum())
        order = np.argsort(-wide, kind="stable")[:count]
        return [(int(i), float(wide[i] - total)) for i in order]
