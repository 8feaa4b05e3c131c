"""Quantized neural networks on the browser's GPU, from Python."""

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
from .graph.operator import operator_names
from .graph.session import Session
from .program import Program, load

__version__ = "0.1.0"

__all__ = [
    "Cancelled",
    "ContextLength",
    "Device",
    "DeviceLost",
    "DtypeError",
    "FeatureMissing",
    "FormatError",
    "Graph",
    "IndexOutOfRange",
    "InsecureContext",
    "LimitExceeded",
    "NetworkError",
    "NoAdapter",
    "NoWebGPU",
    "OutOfMemory",
    "Program",
    "Session",
    "ShapeError",
    "UnsupportedModel",
    "UnsupportedOperator",
    "Var",
    "VersionMismatch",
    "WebGPUPyError",
    "WrongNumbers",
    "dim",
    "load",
    "operator_names",
    "request_device",
]
