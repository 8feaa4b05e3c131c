"""A language model's answer as it comes."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator

from .errors import WebGPUPyError
from .events import tell
from .generation import Piece, Request


class Stream:
    """An answer: iterate for its text; the rest is known while and after it comes.

    `tokens` and `logprobs` grow with the text; `finish_reason` is "stop", "length" or
    "cancelled" at the end, when `timings` are there too.
    """

    def __init__(self, request: Request, prompt_tokens: list[int]) -> None:
        self._request = request
        self.prompt_tokens = prompt_tokens
        self.tokens: list[int] = []
        self.logprobs: list[float] = []
        self.top_logprobs: list[list[tuple[int, float]]] = []

    @property
    def finish_reason(self) -> str | None:
        """Why the answer ended; None while it comes."""
        return self._request.finish_reason

    @property
    def timings(self) -> dict[str, float]:
        """first_token_ms, prefill_tps, decode_tps."""
        return self._request.timings

    def cancel(self) -> None:
        """Stop: at most two more tokens come."""
        self._request.cancel()

    async def pieces(self) -> AsyncIterator[Piece]:
        """The answer step by step, tokens that show no text included."""
        try:
            while (piece := await self._request.next()) is not None:
                self.tokens += piece.tokens
                self.logprobs += piece.logprobs
                if piece.top_logprobs:
                    self.top_logprobs.append(piece.top_logprobs)
                yield piece
            told = {"why": self.finish_reason, "tokens": len(self.tokens)}
            tell("answer.ended", {**told, **self.timings})
        except WebGPUPyError as error:
            tell("answer.failed", {"code": error.code}, logging.WARNING)
            raise
        finally:
            self._request.cancel()

    async def __aiter__(self) -> AsyncIterator[str]:
        async for piece in self.pieces():
            if piece.text:
                yield piece.text

    async def text(self) -> str:
        """The whole answer."""
        return "".join([part async for part in self])
