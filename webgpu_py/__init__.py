"""Quantized neural networks on the browser's GPU, from Python."""

from typing import TYPE_CHECKING, Any

from .device import Device, request_device
from .errors import (
    Cancelled,
    ContextLength,
    DeviceLost,
    DtypeError,
    FeatureMissing,
    FormatError,
    IndexOutOfRange,
    InsecureContext,
    LimitExceeded,
    NetworkError,
    NoAdapter,
    NoWebGPU,
    OutOfMemory,
    ShapeError,
    UnsupportedModel,
    UnsupportedOperator,
    VersionMismatch,
    WebGPUPyError,
    WrongNumbers,
)
from .graph.builder import Graph, Var, dim
from .graph.custom import Launch, kernel
from .graph.operator import operator_names
from .graph.session import Session
from .program import Program, load

if TYPE_CHECKING:
    from .diagnosis import doctor
    from .llm import LLM
    from .notebook import Heatmap, ProgressBar

__version__ = "0.1.0"

__all__ = [
    "LLM",
    "Cancelled",
    "ContextLength",
    "Device",
    "DeviceLost",
    "DtypeError",
    "FeatureMissing",
    "FormatError",
    "Graph",
    "Heatmap",
    "IndexOutOfRange",
    "InsecureContext",
    "Launch",
    "LimitExceeded",
    "NetworkError",
    "NoAdapter",
    "NoWebGPU",
    "OutOfMemory",
    "Program",
    "ProgressBar",
    "Session",
    "ShapeError",
    "UnsupportedModel",
    "UnsupportedOperator",
    "Var",
    "VersionMismatch",
    "WebGPUPyError",
    "WrongNumbers",
    "dim",
    "doctor",
    "kernel",
    "load",
    "operator_names",
    "request_device",
]


def __getattr__(name: str) -> Any:
    """`LLM`, `doctor` and what notebooks show, imported when first used: graphs need none of it."""
    if name == "LLM":
        from .llm import LLM

        return LLM
    if name == "doctor":
        from .diagnosis import doctor

        return doctor
    if name in ("Heatmap", "ProgressBar"):
        from . import notebook

        return getattr(notebook, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
