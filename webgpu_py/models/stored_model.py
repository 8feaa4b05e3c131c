"""A language model as its files describe it: all that is known before any weight is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..formats.gguf import read_gguf
from ..formats.safetensors import SafetensorsFile
from ..graph.values import Source
from ..tokenizer import Tokenizer, tokenizer_from_gguf
from .checkpoint import ModelFiles, Texts, read_config, read_tensors, read_texts
from .config import ModelConfig
from .gguf_config import gguf_config
from .packed_file import PackedTexts, PackedWeights
from .safetensors_weights import Quantize, SafetensorsWeights
from .weights import GGUFWeights


@dataclass(frozen=True, slots=True)
class StoredModel:
    """What a graph and a conversation are made from; `texts` are a folder's small files."""

    config: ModelConfig
    weights: GGUFWeights | SafetensorsWeights | PackedWeights
    tokenizer: Tokenizer
    template: str | None
    header_nbytes: int
    texts: Mapping[str, bytes] = field(default_factory=dict)


async def gguf_model(source: Source) -> StoredModel:
    """A GGUF file."""
    file = await read_gguf(source)
    template = file.metadata.get("tokenizer.chat_template")
    return StoredModel(
        await gguf_config(file, source),
        GGUFWeights(file, source),
        tokenizer_from_gguf(file.metadata),
        template if isinstance(template, str) else None,
        file.data_offset,
    )


async def checkpoint_model(
    files: ModelFiles, name: str | None, quantize: Quantize | None
) -> StoredModel:
    """A Hugging Face folder; `name` is its file of weights or their index, where it is known."""
    raw, terms = await read_config(files)
    config = ModelConfig.from_hf(terms)
    tensors, digest = await read_tensors(files, name)
    texts = await read_texts(files, raw, terms)
    weights = SafetensorsWeights(tensors, quantize, texts.tied, digest)
    return _model(config, weights, texts)


async def packed_model(file: SafetensorsFile, source: Source) -> StoredModel:
    """A file that `LLM.save` wrote."""
    files = PackedTexts(file, source)
    raw, terms = await read_config(files)
    texts = await read_texts(files, raw, terms)
    return _model(ModelConfig.from_hf(terms), PackedWeights(file, source), texts)


def _model(
    config: ModelConfig, weights: SafetensorsWeights | PackedWeights, texts: Texts
) -> StoredModel:
    nbytes = sum(map(len, texts.raw.values()))
    return StoredModel(config, weights, texts.tokenizer, texts.template, nbytes, texts.raw)
