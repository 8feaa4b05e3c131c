"""A language model on a device: load, chat, stream.

```python
llm = await LLM.load("model.gguf")
async for text in llm.chat([{"role": "user", "content": "Hello!"}]):
    print(text, end="")
```
"""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .device import Device, request_device
from .errors import ContextLength, FormatError
from .formats.gguf import read_gguf
from .generation import GenerationOptions, Generator, Piece, Request, SessionGenerator
from .graph.session import Session
from .graph.values import Source
from .models.config import ModelConfig
from .models.decoder import Decoder, build_decoder
from .models.gguf_config import gguf_config
from .models.weights import GGUFWeights
from .tokenizer import Tokenizer, tokenizer_from_gguf

CHUNKS = (1, 8, 32, 128)
"""Prompt tokens a prefill step can take; a plan of each is made at load."""

DEFAULT_CONTEXT = 4096

Progress = Callable[[str, int, int], None]


class Stream:
    """An answer: iterate for its text; the rest is known while and after it comes.

    `tokens` and `logprobs` grow with the text; `finish_reason` is "stop", "length" or
    "cancelled" at the end, when `timings` are there too.
    """

    def __init__(self, request: Request) -> None:
        self._request = request
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
        finally:
            self._request.cancel()

    async def __aiter__(self) -> AsyncIterator[str]:
        async for piece in self.pieces():
            if piece.text:
                yield piece.text

    async def text(self) -> str:
        """The whole answer."""
        return "".join([part async for part in self])


class LLM:
    """A loaded model; made by `LLM.load`."""

    def __init__(
        self,
        device: Device,
        session: Session,
        decoder: Decoder,
        tokenizer: Tokenizer,
        generator: Generator,
        template: str | None,
    ) -> None:
        self.device = device
        self.session = session
        self.config = decoder.config
        self.context = decoder.context
        self.tokenizer = tokenizer
        self._generator = generator
        self._template = template
        self._current: Stream | None = None
        self.load_ms = 0.0

    @classmethod
    async def load(
        cls,
        source: str | bytes | Source,
        *,
        device: Device | None = None,
        context: int | None = None,
        progress: Progress | None = None,
    ) -> LLM:
        """Load a GGUF from a path, URL or bytes, by default on the browser's GPU or else NumPy.

        The header decides first: UnsupportedModel names an architecture or weight type that is
        not run, LimitExceeded a tensor that does not fit, before any weight is read. `context`
        is the number of tokens prompt and answer share, by default what the model was trained
        for, at most 4096. `progress(stage, done, total)` hears "header" and "weights" in bytes.
        """
        from .program import open_any

        started = time.perf_counter()
        if device is None:
            device = await request_device("browser" if sys.platform == "emscripten" else "cpu")
        opened = await open_any(source)
        file = await read_gguf(opened)
        if progress:
            progress("header", file.data_offset, file.data_offset)
        config = await gguf_config(file, opened)
        weights = GGUFWeights(file, opened)
        tokenizer = tokenizer_from_gguf(file.metadata)
        rows = _context(config, context)
        chunk = max(c for c in CHUNKS if c <= rows)
        decoder = build_decoder(config, weights, rows, chunk)
        session = await Session.build(
            device,
            decoder.graph.ir,
            progress=(lambda d, t: progress("weights", d, t)) if progress else None,
        )
        generator = await make_generator(device, session, decoder, tokenizer)
        stored = file.metadata.get("tokenizer.chat_template")
        template = stored if isinstance(stored, str) else None
        llm = cls(device, session, decoder, tokenizer, generator, template)
        llm.load_ms = 1e3 * (time.perf_counter() - started)
        return llm

    # -- text

    def tokenize(self, text: str, *, special: bool = True) -> list[int]:
        """Token ids of a text, a begin token first where the model's metadata says so."""
        return self.tokenizer.encode(text, special=special)

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
    ) -> str:
        """The prompt that the model's own template makes of a conversation; FormatError."""
        from .tokenizer.template import ChatTemplate

        if self._template is None:
            raise FormatError("this model has no chat template; use generate() with a raw prompt")
        t = self.tokenizer
        template = ChatTemplate(
            self._template,
            "" if t.bos is None else t.token_text(t.bos),
            "" if t.eos is None else t.token_text(t.eos),
        )
        return template.render(messages, tools=tools)

    def chat(self, messages: Sequence[Mapping[str, Any]], **options: Any) -> Stream:
        """Answer a conversation of {"role", "content"}; options as in GenerationOptions.

        Only what differs from the previous conversation is computed again.
        """
        tools = options.pop("tools", None)
        return self._start(self.tokenize(self.render(messages, tools)), options)

    def generate(self, prompt: str | Sequence[int], **options: Any) -> Stream:
        """Continue a raw prompt: special tokens are parsed, no template is applied."""
        ids = self.tokenize(prompt) if isinstance(prompt, str) else list(prompt)
        return self._start(ids, options)

    def _start(self, ids: list[int], options: dict[str, Any]) -> Stream:
        request = self._generator.start(ids, GenerationOptions(**options))
        self._current = Stream(request)
        return self._current

    def cancel(self) -> None:
        """Stop the answer that was started last."""
        if self._current is not None:
            self._current.cancel()

    # -- facts

    def memory(self) -> dict[str, int]:
        """Device bytes by kind."""
        return self.session.memory()

    def close(self) -> None:
        """Free everything on the device that this model holds."""
        self.cancel()
        self._generator.close()
        self.session.close()


def _context(config: ModelConfig, wanted: int | None) -> int:
    most = config.max_position_embeddings
    if wanted is None:
        return min(most, DEFAULT_CONTEXT)
    if not 2 <= wanted <= most:
        raise ContextLength(f"context={wanted}, this model allows 2 to {most}")
    return wanted


async def make_generator(
    device: Device, session: Session, decoder: Decoder, tokenizer: Tokenizer
) -> Generator:
    """The token loop: JavaScript's in a browser, else Python's."""
    blob, offsets = tokenizer.table()
    rows = decoder.config.vocab_size
    if len(offsets) - 1 > rows:
        raise FormatError(f"{len(offsets) - 1} tokens, but the embedding has {rows} rows")
    offsets = np.pad(offsets, (0, rows + 1 - len(offsets)), mode="edge")
    ends = frozenset(tokenizer.ends)
    if device.kind != "browser":
        return SessionGenerator(session, decoder.context, decoder.chunk, ends, (blob, offsets))
    from .bridge import BrowserBridge

    variants = []
    for tokens in (c for c in CHUNKS if c <= decoder.chunk):
        replay = await session.replay(ids=(tokens,))
        head = sum(node < decoder.head_node for node in replay.nodes)
        variants.append(
            {
                "tokens": tokens,
                "plan": replay.plan,
                "head": head,
                "base": replay.base,
                "position": replay.factors["position"],
                "last": replay.factors["last"],
            }
        )
    spec = {
        "variants": variants,
        "buffers": replay.buffers,
        "vocabSize": decoder.config.vocab_size,
        "context": decoder.context,
        "ends": sorted(ends),
    }
    assert isinstance(device.bridge, BrowserBridge)
    return device.bridge.create_generator(spec, blob, offsets)
