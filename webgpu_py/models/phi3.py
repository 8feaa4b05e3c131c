"""Phi-3 and Phi-3.5: Llama's layer with q, k, v in one matrix, and gate and up in another."""

from __future__ import annotations

from .llama import Llama


class Phi3(Llama):
    """Llama with fused projections; every layer has the sliding window, if there is one."""

    PROJECTIONS = ("qkv_proj",)
    GATED = ("gate_up_proj",)
