"""A language model on a device: load, chat, stream.

```python
llm = await LLM.load("model.gguf")  # or a folder with config.json and model.safetensors
async for text in llm.chat([{"role": "user", "content": "Hello!"}]):
    print(text, end="")
```
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from .device import Device, request_device
from .errors import ContextLength, FormatError
from .events import tell
from .generation import GenerationOptions, Generator, SessionGenerator, check_bias
from .graph.autotune import Tuned
from .graph.session import Session
from .graph.values import Source
from .models.config import ModelConfig
from .models.decoder import Decoder, build_decoder
from .models.layers import CacheDtype
from .models.packed_file import packed_file
from .models.safetensors_weights import Quantize
from .models.stored_model import StoredModel
from .models.weights import GGUFWeights
from .quant.snr import Snr
from .sources import check_sha256, close_sources, fetch_whole, give_up
from .stream import Stream
from .tokenizer import Tokenizer

CHUNKS = (1, 8, 32, 128, 512, 1024)
"""Prompt tokens a prefill step can take; a plan of each is made at load."""

LARGE_CHUNK, LARGE_MODEL = 512, 1 << 30
"""The most for a model of more weights in its layers: a step is what can't be interrupted."""

SOFTWARE_CHUNK = 128
"""The most on an adapter that runs on the CPU, where a step of more takes a minute."""

DEFAULT_CONTEXT = 4096

Progress = Callable[[str, int, int], None]


class LLM:
    """A loaded model; made by `LLM.load`."""

    def __init__(
        self,
        device: Device,
        session: Session,
        decoder: Decoder,
        stored: StoredModel,
        generator: Generator,
        sources: Sequence[Source],
    ) -> None:
        self.device = device
        self.session = session
        self.config = decoder.config
        self.context = decoder.context
        self.tokenizer = stored.tokenizer
        self._generator = generator
        self._decoder = decoder
        self._load: Callable[..., Awaitable[LLM]]
        self.stored = stored
        """What the files say: configuration, weights, tokenizer, chat template."""
        self._sources = sources
        self._template = stored.template
        self._current: Stream | None = None
        self.load_ms = 0.0
        self.quantization: dict[str, Snr] = {}
        """What quantizing each matrix lost: `.db`, `.relative_rms`. A GGUF is kept as it is."""

    @classmethod
    async def load(
        cls,
        source: str | os.PathLike[str] | bytes | Source | Mapping[str, Source | bytes],
        *,
        device: Device | None = None,
        context: int | None = None,
        quantize: Quantize | None = "q4",
        kv_cache_dtype: CacheDtype = "float32",
        sha256: str | None = None,
        progress: Progress | None = None,
    ) -> LLM:
        """Load a GGUF, a Hugging Face folder or what `save` wrote.

        The device is by default the browser's GPU or else NumPy. `source` is a path, an address (a
        folder's ends with a slash), bytes, or a folder's files by name. `quantize` is what happens
        to F32, F16 and BF16 matrices of safetensors files on the device: "q4" is 4 bits for layers
        and 8 for embedding and output, "q8" 8 bits for all, None keeps them. `context` is the
        number of tokens prompt and answer share, by default what the model was trained for, at
        most 4096; with `kv_cache_dtype="float16"` their keys and values take half the memory, and
        are rounded to 11 bits. `progress(stage, done, total)` hears "header" and "weights" in
        bytes. With `sha256` a model of one file has that hash or is refused, and a browser keeps
        nothing of it.

        The header decides first: UnsupportedModel names an architecture or weight type that is
        not run, FormatError a file or tensor that is missing, LimitExceeded a tensor that does not
        fit, before any weight is read. A browser keeps what it downloads: a cut download goes on
        at the next load, and a whole one needs no network.
        """
        from .model_files import open_model

        started = time.perf_counter()
        if device is None:
            device = await request_device("browser" if sys.platform == "emscripten" else "cpu")
        opened: list[Source] = []
        try:
            stored = await open_model(source, quantize, opened)
            hashed = None if sha256 is None else _only(source, opened)
            if progress:
                progress("header", stored.header_nbytes, stored.header_nbytes)
            rows = _context(stored.config, context)
            chunk = largest_chunk(stored.config, rows, bool(device.info.get("software")))
            decoder = build_decoder(stored.config, stored.weights, rows, chunk, kv_cache_dtype)
            session = await Session.build(
                device,
                decoder.graph.ir,
                progress=(lambda d, t: progress("weights", d, t)) if progress else None,
                prepare=[{"ids": (tokens,)} for tokens in step_sizes(device, decoder)],
            )
            try:
                if hashed is not None and sha256 is not None:
                    await check_sha256(hashed, sha256)
                quantization: dict[str, Snr] = {}
                if not isinstance(stored.weights, GGUFWeights):
                    quantization = await stored.weights.losses(session)
                generator = await make_generator(device, session, decoder, stored.tokenizer)
            except BaseException:
                session.close()
                raise
        except BaseException as error:
            await give_up(opened, error)
            raise
        fetch_whole(opened)
        llm = cls(device, session, decoder, stored, generator, opened)
        llm.quantization = quantization
        llm._load = partial(
            cls.load,
            source,
            context=context,
            quantize=quantize,
            kv_cache_dtype=kv_cache_dtype,
            sha256=sha256,
            progress=progress,
        )
        llm.load_ms = 1e3 * (time.perf_counter() - started)
        facts = {"load_ms": round(llm.load_ms, 1), "gpu_nbytes": llm.memory()["total"]}
        architecture = stored.config.architecture
        tell("model.loaded", {"architecture": architecture, "device": device.kind, **facts})
        return llm

    async def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model as one file that `load` takes without quantizing; see `packed`."""
        part = f"{os.fspath(path)}.part"
        try:
            with open(part, "wb") as file:
                async for piece in self.packed():
                    file.write(piece)
            os.replace(part, path)
        finally:
            if os.path.exists(part):
                os.remove(part)

    def packed(self) -> AsyncIterator[bytes]:
        """The bytes of what `save` writes, in pieces of a few MiB; FormatError for a GGUF."""
        weights = self.stored.weights
        if isinstance(weights, GGUFWeights):
            raise FormatError("a GGUF is ready to load as it is; save is for safetensors models")
        return packed_file(self.session, weights, self.stored.texts, self.quantization)

    # -- text

    def tokenize(self, text: str, *, special: bool = True) -> list[int]:
        """Token ids of a text, a begin token first where the model's metadata says so."""
        return self.tokenizer.encode(text, special=special)

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        **variables: Any,
    ) -> str:
        """The prompt that the model's own template makes of a conversation.

        `variables` are more names for the template, such as `enable_thinking`. FormatError,
        FeatureMissing for a content that is not text.
        """
        from .tokenizer.template import ChatTemplate, text_messages

        if self._template is None:
            raise FormatError("this model has no chat template; use generate() with a raw prompt")
        t = self.tokenizer
        template = ChatTemplate(
            self._template,
            "" if t.bos is None else t.token_text(t.bos),
            "" if t.eos is None else t.token_text(t.eos),
        )
        return template.render(text_messages(messages), tools=tools, **variables)

    def chat(self, messages: Sequence[Mapping[str, Any]], **options: Any) -> Stream:
        """Answer a conversation of {"role", "content"}; options as in GenerationOptions.

        `tools` are JSON schemas that the template shows to the model, whose calls come as text;
        `chat_template_kwargs` are the template's variables. Only what differs from the previous
        conversation is computed again.
        """
        tools, variables = options.pop("tools", None), options.pop("chat_template_kwargs", None)
        prompt = self.render(messages, tools, **(variables or {}))
        return self._start(self.tokenize(prompt), options)

    def generate(self, prompt: str | Sequence[int], **options: Any) -> Stream:
        """Continue a raw prompt: special tokens are parsed, no template is applied."""
        ids = self.tokenize(prompt) if isinstance(prompt, str) else list(prompt)
        return self._start(ids, options)

    def _start(self, ids: list[int], options: dict[str, Any]) -> Stream:
        given = GenerationOptions.given(options)
        check_bias(given.logit_bias, self.config.vocab_size)
        request = self._generator.start(ids, given)
        self._current = Stream(request, ids)
        return self._current

    def cancel(self) -> None:
        """Stop the answer that was started last."""
        if self._current is not None:
            self._current.cancel()

    # -- facts

    def memory(self) -> dict[str, int]:
        """Device bytes by kind."""
        return self.session.memory()

    async def autotune(self) -> list[Tuned]:
        """Find the fastest kernels for one token and for the longest step of a prompt here.

        See `Session.autotune`: it takes up to a minute, and a browser remembers. Any answer under
        way is cancelled, and the conversation so far is computed anew with the next one.
        """
        self.cancel()
        self._generator.close()
        tuned: list[Tuned] = []
        try:
            for tokens in dict.fromkeys((1, self._decoder.chunk)):
                tuned += await self.session.autotune(ids=(tokens,))
        finally:
            await self.session.reset()
            self._generator = await make_generator(
                self.device, self.session, self._decoder, self.tokenizer
            )
        return tuned

    # -- end, and another beginning

    async def restart(self) -> None:
        """Load the same model again, in place: what to do after DeviceLost.

        A lost device is replaced. The source is read again, in a browser from what it kept; the
        same prompt gives the same greedy tokens as before. Errors as of `load`, after which the
        model is closed and may be restarted once more.
        """
        self.close()
        await self.device.restart()
        vars(self).update(vars(await self._load(device=self.device)))

    def close(self) -> None:
        """Free everything on the device that this model holds."""
        self.cancel()
        self._generator.close()
        self.session.close()
        close_sources(self._sources)


def _only(given: Any, opened: Sequence[Source]) -> Source:
    """The one file that a model is, for a hash of it; FormatError for a folder."""
    if isinstance(given, Mapping) or len(opened) > 1:
        raise FormatError("sha256 is the hash of one file, this model has several")
    found: Source = opened[0] if opened else given
    return found


def _context(config: ModelConfig, wanted: int | None) -> int:
    most = config.max_position_embeddings
    if wanted is None:
        return min(most, DEFAULT_CONTEXT)
    if not 2 <= wanted <= most:
        raise ContextLength(f"context={wanted}, this model allows 2 to {most}")
    return wanted


def largest_chunk(config: ModelConfig, context: int, software: bool = False) -> int:
    """The most prompt tokens that a step takes, on a GPU or an adapter that runs on the CPU."""
    most = LARGE_CHUNK if config.layer_weights > LARGE_MODEL else CHUNKS[-1]
    if software:
        most = SOFTWARE_CHUNK
    return max(c for c in CHUNKS if c <= min(most, context))


def step_sizes(device: Device, decoder: Decoder) -> list[int]:
    """Numbers of tokens for which `make_generator` wants a plan."""
    return [c for c in CHUNKS if c <= decoder.chunk] if device.kind == "browser" else []


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
    for tokens in step_sizes(device, decoder):
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
