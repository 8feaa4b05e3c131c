"""A Hugging Face model folder: `config.json`, a tokenizer, and weights in safetensors files.

What decides (architecture, tokenizer, names, types and shapes of all weights) is read before any
weight is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Protocol

from ..errors import FormatError, UnsupportedModel
from ..formats.bounded_json import parse_json
from ..formats.safetensors import read_safetensors, read_sharded
from ..graph.values import Source
from ..tokenizer import Tokenizer, tokenizer_from_json
from .safetensors_weights import Tensors

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
CONFIG, TOKENIZER = "config.json", "tokenizer.json"
OPTIONAL = ("generation_config.json", "tokenizer_config.json", "chat_template.jinja")


class ModelFiles(Protocol):
    """The files of a model, by their names in its folder."""

    name: str

    async def open(self, name: str) -> Source | None:
        """The file of that name; None when there is none."""
        ...


@dataclass(frozen=True, slots=True)
class Texts:
    """The small files of a model: their bytes by name, and what they say."""

    raw: Mapping[str, bytes]
    config: Mapping[str, Any]
    tokenizer: Tokenizer
    template: str | None

    @property
    def tied(self) -> bool | None:
        """Whether the output layer is the embedding; None where the weights have to tell."""
        tied = self.config.get("tie_word_embeddings")
        return None if tied is None else bool(tied)


async def read_config(files: ModelFiles) -> tuple[bytes, dict[str, Any]]:
    """`config.json`; UnsupportedModel names a quantization that another runtime made."""
    raw = await _required(files, CONFIG)
    config = _object(CONFIG, raw)
    quantized = config.get("quantization_config")
    if quantized:
        method = quantized.get("quant_method") if isinstance(quantized, dict) else quantized
        raise UnsupportedModel(
            f"{files.name}: the weights are quantized by {method!r}, which does not run here — "
            "use the model in F32, F16 or BF16, or its GGUF"
        )
    return raw, config


async def read_texts(files: ModelFiles, config_raw: bytes, config: Mapping[str, Any]) -> Texts:
    """The tokenizer with its end tokens, and the chat template."""
    raw = {CONFIG: config_raw, TOKENIZER: await _required(files, TOKENIZER)}
    for name in OPTIONAL:
        if (found := await _read(files, name)) is not None:
            raw[name] = found
    settings = _object_in(raw, "tokenizer_config.json")
    tokenizer = tokenizer_from_json(_object(TOKENIZER, raw[TOKENIZER]), settings)
    generation = _object_in(raw, "generation_config.json")
    tokenizer.ends = tokenizer.ends | _ends(tokenizer, config) | _ends(tokenizer, generation)
    return Texts(raw, config, tokenizer, _template(raw, settings))


async def read_tensors(files: ModelFiles, name: str | None = None) -> tuple[Tensors, str]:
    """Sources and records of all tensors, and the SHA-256 of everything that lists them.

    `name` is the file of weights or the index of several; by default `model.safetensors` or its
    index. FormatError names what is missing.
    """
    for one in (name,) if name else (SINGLE, INDEX):
        source = await files.open(one)
        if source is not None:
            break
    else:
        raise FormatError(f"{files.name}: there is no {name or f'{SINGLE} or {INDEX}'}")
    if not one.endswith(".json"):
        file = await read_safetensors(source)
        digest = sha256(await source.read(0, file.data_offset))
        return {n: (source, tensor) for n, tensor in file.tensors.items()}, digest.hexdigest()
    index = await source.read(0, source.nbytes)
    digest = sha256(index)
    sharded = await read_sharded(index, lambda part: _shard(files, one, part))
    return sharded.tensors, digest.hexdigest()


async def _shard(files: ModelFiles, index: str, name: str) -> Source:
    source = await files.open(name)
    if source is None:
        raise FormatError(f"{files.name}: {index} names {name}, which is not there")
    return source


async def _read(files: ModelFiles, name: str) -> bytes | None:
    source = await files.open(name)
    return None if source is None else await source.read(0, source.nbytes)


async def _required(files: ModelFiles, name: str) -> bytes:
    raw = await _read(files, name)
    if raw is None:
        raise FormatError(
            f"{files.name}: there is no {name} — a model's folder has it beside the weights"
        )
    return raw


def _object(name: str, raw: bytes) -> dict[str, Any]:
    found = parse_json(name, raw)
    if not isinstance(found, dict):
        raise FormatError(f"{name}: a JSON {type(found).__name__}, must be an object")
    return found


def _object_in(raw: Mapping[str, bytes], name: str) -> dict[str, Any]:
    return _object(name, raw[name]) if name in raw else {}


def _ends(tokenizer: Tokenizer, config: Mapping[str, Any]) -> frozenset[int]:
    """The ids of `eos_token_id`, a number or several."""
    found = config.get("eos_token_id")
    ids = [] if found is None else found if isinstance(found, list) else [found]
    for i in ids:
        if type(i) is not int or i < 0:
            raise FormatError(f"eos_token_id {found!r}: {i!r} is no token id")
    return frozenset(ids)


def _template(raw: Mapping[str, bytes], settings: Mapping[str, Any]) -> str | None:
    """The chat template: a file of its own, or a text or list of named texts in the settings."""
    if "chat_template.jinja" in raw:
        return raw["chat_template.jinja"].decode("utf-8", "replace")
    found = settings.get("chat_template")
    if isinstance(found, list):
        named = {t.get("name"): t.get("template") for t in found if isinstance(t, dict)}
        found = named.get("default")
    return found if isinstance(found, str) else None
