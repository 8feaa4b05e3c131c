"""The dtype argument of PyTorch's operators."""

from __future__ import annotations

from ..errors import DtypeError
from ..graph.call import Call
from ..graph.values import Int, Null, String

_CODES = {0: "uint8", 1: "int8", 3: "int32", 4: "int32", 5: "float32", 6: "float32", 11: "bool"}
_NAMES = {"uint8", "int8", "int32", "float32", "bool"}


def scalar_type(call: Call, name: str) -> str | None:
    """Device dtype that an argument asks for: None, PyTorch's ScalarType code, or a dtype's name.

    int64 becomes int32 and float16 float32, as everywhere on the device.
    """
    value = call.value(name)
    if isinstance(value, Null):
        return None
    found = None
    if isinstance(value, String) and value.value in _NAMES:
        found = value.value
    elif isinstance(value, Int):
        found = _CODES.get(value.value)
    if found is None:
        raise call.error(
            DtypeError,
            f"{name} is {getattr(value, 'value', value)!r}, allowed are {', '.join(sorted(_NAMES))}"
            " or their ScalarType codes",
        )
    return found


def result_type(call: Call, name: str, default: str) -> str:
    """Device dtype of a result: what the program declares, else the argument, else `default`."""
    declared = call.declared()
    if declared is not None:
        return declared.dtype
    return scalar_type(call, name) or default
