"""Qwen 2, 2.5 and 3: Llama's layer, with biases in Qwen 2 and head norms in Qwen 3."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .llama import Llama

if TYPE_CHECKING:
    from .terms import Terms


class Qwen2(Llama):
    """Llama with biases of q, k and v, which `linear` adds because the file has them."""

    @classmethod
    def slides(cls, config: Terms, layer: int) -> bool:
        wanted = bool(config.get("use_sliding_window", False))
        return wanted and layer >= config.number("max_window_layers", 28)


class Qwen3(Qwen2):
    """Llama with norms of each head of q and k, before they are rotated."""

    HEAD_NORMS = True
