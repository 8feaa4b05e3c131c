"""Python values with arrays in them, and exceptions, as bytes that cross between two Pythons.

One side is the command line or a test, the other Pyodide in a page; both import this file. The
bytes are a plain .npz: nothing in them is executed when it is read.
"""

from __future__ import annotations

import builtins
import io
import json
import traceback
from typing import Any

import numpy as np

from webgpu_py.errors import WebGPUPyError, error_of_code

TREE = "tree"


class RemoteError(Exception):
    """An exception of the other side that has no class here; `type_name` is its name there."""

    def __init__(self, type_name: str, message: str) -> None:
        super().__init__(f"{type_name}: {message}")
        self.type_name = type_name


def pack(value: Any) -> bytes:
    """The bytes of a value.

    Taken are None, bool, int, float, str, bytes, lists, tuples, dicts, NumPy arrays and scalars.

    Raises:
        TypeError: something else was inside.
    """
    arrays: list[np.ndarray[Any, Any]] = []

    def keep(array: Any) -> int:
        kept = np.asarray(array)
        if kept.dtype.hasobject:
            raise TypeError(f"an array of {kept.dtype} cannot cross between two Pythons")
        arrays.append(kept)
        return len(arrays) - 1

    def node(v: Any) -> Any:
        if isinstance(v, np.generic):
            return {"scalar": keep(v)}
        if v is None or isinstance(v, bool | int | float | str):
            return v
        if isinstance(v, np.ndarray):
            return {"array": keep(v)}
        if isinstance(v, bytes | bytearray | memoryview):
            return {"bytes": keep(np.frombuffer(v, np.uint8))}
        if isinstance(v, list):
            return [node(x) for x in v]
        if isinstance(v, tuple):
            return {"tuple": [node(x) for x in v]}
        if isinstance(v, dict):
            return {"dict": [[node(k), node(x)] for k, x in v.items()]}
        raise TypeError(f"a {type(v).__name__} cannot cross between two Pythons: {v!r}")

    tree = np.frombuffer(json.dumps(node(value)).encode(), np.uint8)
    named: dict[str, Any] = {TREE: tree, **{f"a{i}": a for i, a in enumerate(arrays)}}
    out = io.BytesIO()
    np.savez(out, **named)
    return out.getvalue()


def unpack(data: bytes) -> Any:
    """The value that `pack` was given."""
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}

    def value(n: Any) -> Any:
        if isinstance(n, list):
            return [value(x) for x in n]
        if not isinstance(n, dict):
            return n
        ((kind, content),) = n.items()
        if kind == "tuple":
            return tuple(value(x) for x in content)
        if kind == "dict":
            return {value(k): value(x) for k, x in content}
        array = arrays[f"a{content}"]
        if kind == "bytes":
            return array.tobytes()
        return array if kind == "array" else array[()]

    return value(json.loads(arrays[TREE].tobytes()))


def pack_result(value: Any) -> bytes:
    """The bytes that make `unpack_result` return `value`."""
    return pack({"result": value})


def pack_error(error: BaseException) -> bytes:
    """The bytes that make `unpack_result` raise an exception like `error`."""
    described = {
        "type": type(error).__name__,
        "code": getattr(error, "code", None),
        "message": str(error.args[0]) if isinstance(error, KeyError) else str(error),
        "traceback": "".join(traceback.format_exception(error)),
    }
    return pack({"error": described})


def unpack_result(data: bytes) -> Any:
    """Return what `pack_result` packed, or raise what `pack_error` packed.

    The exception has the class of its code in this package, else the builtin class of its name,
    else it is a `RemoteError`; the other side's traceback is in its notes.
    """
    answer = unpack(data)
    if "error" not in answer:
        return answer["result"]
    told = answer["error"]
    error = _revived(told["type"], told["code"], told["message"])
    error.add_note("on the other side: " + told["traceback"])
    raise error


def _revived(type_name: str, code: Any, message: str) -> Exception:
    if code in {kind.code for kind in WebGPUPyError.__subclasses__()}:
        return error_of_code(code, message)
    kind = getattr(builtins, type_name, None)
    if isinstance(kind, type) and issubclass(kind, Exception):
        try:
            return kind(message)
        except TypeError:
            pass
    return RemoteError(type_name, message)
