"""One family of errors: `.code` is the same string in Python and in JavaScript.

A message says what was seen, what is allowed and what to do, with numbers and names.
"""

from __future__ import annotations


class WebGPUPyError(Exception):
    """Base of every error this package raises on purpose; `code` names the kind."""

    code = "WebGPUPyError"


class NoWebGPU(WebGPUPyError):
    """The browser has no `navigator.gpu`."""

    code = "NoWebGPU"


class InsecureContext(WebGPUPyError):
    """The page is neither https nor localhost, so the browser hides WebGPU."""

    code = "InsecureContext"


class NoAdapter(WebGPUPyError):
    """`navigator.gpu` exists but offers no adapter."""

    code = "NoAdapter"


class DeviceLost(WebGPUPyError):
    """The GPU device is gone; everything on it must be rebuilt."""

    code = "DeviceLost"


class OutOfMemory(WebGPUPyError):
    """The device could not give the asked-for memory."""

    code = "OutOfMemory"


class LimitExceeded(WebGPUPyError):
    """Something needs more than a device limit; names the thing, the need and the limit."""

    code = "LimitExceeded"


class FeatureMissing(WebGPUPyError):
    """A WebGPU or browser feature that was asked for is absent."""

    code = "FeatureMissing"


class FormatError(WebGPUPyError):
    """A file is damaged, truncated or not what it claims to be."""

    code = "FormatError"


class UnsupportedOperator(WebGPUPyError):
    """No operator of that name, or a form of it that has no meaning here."""

    code = "UnsupportedOperator"


class UnsupportedModel(WebGPUPyError):
    """A model architecture or weight type that this package does not run."""

    code = "UnsupportedModel"


class ShapeError(WebGPUPyError):
    """Dimensions do not fit the operator, the tensor or each other."""

    code = "ShapeError"


class DtypeError(WebGPUPyError):
    """An element type that the operator or the boundary does not take."""

    code = "DtypeError"


class IndexOutOfRange(WebGPUPyError):
    """An index, position or token id outside what it points into."""

    code = "IndexOutOfRange"


class ContextLength(WebGPUPyError):
    """A prompt longer than the model's context."""

    code = "ContextLength"


class Cancelled(WebGPUPyError):
    """The caller asked to stop."""

    code = "Cancelled"


class NetworkError(WebGPUPyError):
    """A download failed or answered with something unusable; `status` is HTTP's, where known."""

    code = "NetworkError"
    status: int | None = None


class VersionMismatch(WebGPUPyError):
    """Two halves of the package speak different protocol versions."""

    code = "VersionMismatch"


class WrongNumbers(WebGPUPyError):
    """The device computes wrong or unstable results."""

    code = "WrongNumbers"


def error_of_code(code: str, message: str) -> WebGPUPyError:
    """The error whose `code` is `code`, as JavaScript names it; the base class if unknown."""
    for kind in WebGPUPyError.__subclasses__():
        if kind.code == code:
            return kind(message)
    return WebGPUPyError(f"{code}: {message}")
