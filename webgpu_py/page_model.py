"""A language model in the page: what its header says, tokens, the first layer, an answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from .device import Device
from .formats.gguf import GGUFFile, read_gguf
from .graph.values import Source
from .tokenizer import Tokenizer, tokenizer_from_gguf

Emit = Callable[[dict[str, Any]], None]


class OpenModel:
    """The open file when it is a language model."""

    kind = "model"

    def __init__(self, file: GGUFFile, tokenizer: Tokenizer, device: Device) -> None:
        self._file = file
        self._tokenizer = tokenizer
        self._device = device

    def description(self) -> dict[str, Any]:
        """The header in a few numbers."""
        found: Mapping[str, Any] = self._file.metadata
        arch = str(found.get("general.architecture", "?"))
        tensors = self._file.tensors.values()
        return {
            "title": str(found.get("general.name", self._file.name)),
            "architecture": arch,
            "license": str(found.get("general.license", "")),
            "layers": int(found.get(f"{arch}.block_count", 0)),
            "hidden": int(found.get(f"{arch}.embedding_length", 0)),
            "context": int(found.get(f"{arch}.context_length", 0)),
            "vocabulary": self._tokenizer.vocab_size,
            "types": dict(Counter(t.type for t in tensors)),
        }

    async def tokenize(self, args: dict[str, Any], emit: Emit) -> dict[str, Any]:
        """Ids of a text, and what each of them stands for."""
        return self._tokens(self._tokenizer.encode(str(args["text"])))

    def _tokens(self, ids: list[int]) -> dict[str, Any]:
        return {"ids": ids, "texts": [self._tokenizer.token_text(i) for i in ids]}

    def close(self) -> None:
        """Free what is on the device."""


async def open_model(
    source: Source, device: Device, options: dict[str, Any], emit: Emit
) -> OpenModel:
    """Read the header and build the tokenizer."""
    emit({"progress": {"stage": "header", "loaded": 0, "total": 0}})
    file = await read_gguf(source)
    file.require_supported()
    emit({"progress": {"stage": "tokenizer", "loaded": 0, "total": 0}})
    return OpenModel(file, tokenizer_from_gguf(file.metadata), device)
