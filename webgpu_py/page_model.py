"""A language model in the page: answers, tokens, and a look into its first layer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from .device import Device
from .errors import FeatureMissing
from .llm import LLM
from .models.first_layer import FirstLayer, build_first_layer, check_first_layer
from .stream import Stream

if TYPE_CHECKING:
    from .page import Call

MAX_LOOK = 48
"""Tokens of a prompt that are looked into."""


class OpenModel:
    """The open file when it is a language model."""

    kind = "model"

    def __init__(self, llm: LLM) -> None:
        self._llm = llm
        self._saved: AsyncIterator[bytes] | None = None
        self._look: FirstLayer | None = None

    def description(self) -> dict[str, Any]:
        """The model in a few numbers."""
        config = self._llm.config
        return {
            "format": self._llm.stored.weights.form,
            "architecture": config.architecture,
            "layers": config.num_hidden_layers,
            "hidden": config.hidden_size,
            "heads": config.num_attention_heads,
            "kv_heads": config.num_key_value_heads,
            "head_dim": config.head_dim,
            "vocabulary": config.vocab_size,
            "context": self._llm.context,
            "load_ms": self._llm.load_ms,
            "quantization": {n: loss.relative_rms for n, loss in self._llm.quantization.items()},
            "memory": self._llm.memory(),
        }

    # -- answers

    async def chat(self, args: dict[str, Any], call: Call) -> dict[str, Any]:
        """Answer `messages`; pieces of text go ahead as events."""
        return await self._answer(self._llm.chat(args["messages"], **args.get("options", {})), call)

    async def generate(self, args: dict[str, Any], call: Call) -> dict[str, Any]:
        """Continue the raw `prompt`, a text or token ids."""
        stream = self._llm.generate(args["prompt"], **args.get("options", {}))
        return await self._answer(stream, call)

    async def _answer(self, stream: Stream, call: Call) -> dict[str, Any]:
        call.on_cancel = stream.cancel
        call.emit(prompt_tokens=len(stream.prompt_tokens))
        text_of = self._llm.tokenizer.token_text
        async for piece in stream.pieces():
            call.emit(
                text=piece.text,
                tokens=piece.tokens,
                token_texts=[text_of(token) for token in piece.tokens],
                logprobs=piece.logprobs,
                top_logprobs=[[*pair, text_of(pair[0])] for pair in piece.top_logprobs],
            )
        return {
            "finish_reason": stream.finish_reason,
            "timings": stream.timings,
            "prompt_tokens": len(stream.prompt_tokens),
            "completion_tokens": len(stream.tokens),
        }

    async def save(self, args: dict[str, Any], call: Call) -> dict[str, Any]:
        """The next `piece` of what `LLM.save` writes, an empty one after the last.

        With `first` it starts anew.
        """
        if self._saved is None or args.get("first"):
            self._saved = self._llm.packed()
        return {"piece": np.frombuffer(await anext(self._saved, b""), np.uint8)}

    async def autotune(self, args: dict[str, Any], call: Call) -> dict[str, Any]:
        """The kernels that `LLM.autotune` found fastest."""
        return {"tuned": [asdict(tuned) for tuned in await self._llm.autotune()]}

    # -- looking inside

    async def tokenize(self, args: dict[str, Any], call: Call) -> dict[str, Any]:
        """Ids of a text, and what each of them stands for."""
        return self._tokens(self._llm.tokenize(str(args["text"])))

    def _tokens(self, ids: list[int]) -> dict[str, Any]:
        return {"ids": ids, "texts": [self._llm.tokenizer.token_text(i) for i in ids]}

    async def look(self, args: dict[str, Any], call: Call) -> dict[str, Any]:
        """Tokens of a prompt, and embedding, rotated q and k of layer 0 for them."""
        ids = self._llm.tokenize(str(args["prompt"]))
        stored = self._llm.stored
        model = self._llm.device, stored.config, stored.weights
        if self._look is None:
            call.progress("kernels")
            self._look = await build_first_layer(*model, MAX_LOOK)
        session = self._look.session
        shown = ids[:MAX_LOOK]
        outputs = await self._look.run(shown)
        run_ms = session.timings()["run_ms"]
        check = await check_first_layer(*model, shown, outputs)
        try:
            kernels = await self._look.profile(shown)
        except FeatureMissing:
            kernels = None
        return {
            "tokens": self._tokens(ids),
            "looked_at": len(shown),
            **outputs,
            "check": check.lines(),
            "types": dict(stored.weights.types),
            "run_ms": run_ms,
            "dispatches": session.dispatches,
            "kernels": kernels,
            "memory": session.memory(),
        }

    async def memory(self, args: dict[str, Any], call: Call) -> dict[str, Any]:
        """Device bytes by kind, of the model and of the look into it."""
        look = self._look.session.memory()["total"] if self._look else 0
        return {"gpu": self._llm.memory(), "look_nbytes": look}

    def close(self) -> None:
        """Free what is on the device."""
        if self._look is not None:
            self._look.close()
        self._llm.close()


async def open_model(source: Any, device: Device, options: dict[str, Any], call: Call) -> OpenModel:
    """Load a GGUF, a Hugging Face folder by address, its files by name, or what `save` wrote.

    The header decides before any weight is read.
    """

    def progress(stage: str, done: int, total: int) -> None:
        call.progress(stage, done, total)
        if stage == "header":
            call.progress("tokenizer")
        elif done == total:
            call.progress("kernels")

    call.progress("header")
    return OpenModel(await LLM.load(source, device=device, progress=progress, **options))
