"""Qwen 2, 2.5 and 3: Llama's layer, with biases in Qwen 2 and head norms in Qwen 3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .llama import Llama


class Qwen2(Llama):
    """Llama with biases of q, k and v, which `linear` adds because the file has them."""

    @classmethod
    def slides(cls, config: Mapping[str, Any], layer: int) -> bool:
        wanted = bool(config.get("use_sliding_window", False))
        return wanted and layer >= int(config.get("max_window_layers", 28))


class Qwen3(Qwen2):
    """Llama with norms of each head of q and k, before they are rotated."""

    HEAD_NORMS = True
