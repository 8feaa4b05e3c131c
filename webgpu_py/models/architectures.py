"""The architectures that run, by the names that files have for them."""

from __future__ import annotations

from ..errors import UnsupportedModel
from .gemma import Gemma2, Gemma3
from .layers import Block
from .llama import Llama
from .phi3 import Phi3
from .qwen import Qwen2, Qwen3

BY_MODEL_TYPE: dict[str, type[Block]] = {
    "llama": Llama,
    "mistral": Llama,
    "qwen2": Qwen2,
    "qwen3": Qwen3,
    "gemma2": Gemma2,
    "gemma3_text": Gemma3,
    "phi3": Phi3,
}
"""Hugging Face's `model_type`."""

GGUF_MODEL_TYPES = {
    "llama": "llama",
    "qwen2": "qwen2",
    "qwen3": "qwen3",
    "gemma2": "gemma2",
    "gemma3": "gemma3_text",
    "phi3": "phi3",
}
"""A GGUF's `general.architecture` -> model type; Mistral's is `llama`."""


def find_architecture(model_type: str) -> type[Block]:
    """The architecture of a model type; UnsupportedModel says which there are."""
    found = BY_MODEL_TYPE.get(model_type)
    if found is None:
        raise UnsupportedModel(
            f"model_type {model_type!r} is not supported; supported: {', '.join(BY_MODEL_TYPE)}"
        )
    return found
