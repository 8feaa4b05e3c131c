"""Constants on their way to the device: as they are, or converted in small row blocks."""

from __future__ import annotations

import numpy as np

from ..errors import DtypeError, FormatError
from .bridge import Bridge
from .values import Constant

BLOCK_NBYTES = 4 << 20
"""Most bytes of a weight that pass through Python's heap at once."""

_STORED_ITEMSIZE = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "int64": 8}


def _converted(raw: bytes | np.ndarray, stored: str, dtype: str) -> np.ndarray:
    flat = np.frombuffer(raw, np.uint8)
    if stored == "bfloat16" and dtype == "float32":
        return (flat.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    if dtype == "float32" and stored in ("float16", "float32", "float64"):
        return flat.view(stored).astype(np.float32)
    if (stored, dtype) == ("int64", "int32"):
        wide = flat.view(np.int64)
        narrow = wide.astype(np.int32)
        if not np.array_equal(narrow, wide):
            raise DtypeError("an int64 constant does not fit int32")
        return narrow
    raise DtypeError(f"a {stored} constant can't become {dtype}")


async def upload_constant(
    bridge: Bridge, buffer: int, constant: Constant, at: int = 0, fresh: bool = True
) -> None:
    """Write a constant's bytes into a buffer at byte `at`, converted to the device's dtype.

    Bytes of a `source` go there directly, without Python's heap, when no conversion is needed.
    A constant with neither data nor source is zeros, which a fresh buffer holds already.
    """
    spec = constant.spec
    if constant.data is None and constant.source is None:
        if not fresh:
            _clear(bridge, buffer, spec.nbytes)
        return
    stored = constant.dtype or spec.dtype
    if stored == spec.dtype and not constant.plus:
        if constant.data is not None:
            data = np.frombuffer(_bytes_of(constant.data), np.uint8)
            _check_length(constant, data.nbytes, spec.nbytes)
            bridge.write(buffer, at, data[: spec.nbytes])
        else:
            assert constant.source is not None
            _check_length(constant, constant.nbytes, spec.nbytes)
            await bridge.upload(buffer, at, constant.source, constant.offset, spec.nbytes)
        return
    if stored not in _STORED_ITEMSIZE:
        raise DtypeError(f"a {stored} constant can't become {spec.dtype}")
    item = _STORED_ITEMSIZE[stored]
    step = BLOCK_NBYTES // item
    have = len(_bytes_of(constant.data)) if constant.data is not None else constant.nbytes
    _check_length(constant, have, spec.numel * item)
    for start in range(0, spec.numel, step):
        count = min(step, spec.numel - start)
        raw = await _read(constant, start * item, count * item)
        block = _converted(raw, stored, spec.dtype)
        if constant.plus:
            block = block + np.float32(constant.plus)
        bridge.write(buffer, at + 4 * start, block.view(np.uint8))


def _clear(bridge: Bridge, buffer: int, nbytes: int) -> None:
    zeros = np.zeros(min(nbytes, BLOCK_NBYTES), np.uint8)
    for start in range(0, nbytes, BLOCK_NBYTES):
        bridge.write(buffer, start, zeros[: nbytes - start])


def _bytes_of(data: np.ndarray | bytes) -> memoryview:
    if isinstance(data, np.ndarray):
        return np.ascontiguousarray(data).reshape(-1).view(np.uint8).data
    return memoryview(data)


async def _read(constant: Constant, offset: int, nbytes: int) -> bytes:
    if constant.data is not None:
        return bytes(_bytes_of(constant.data)[offset : offset + nbytes])
    assert constant.source is not None
    return await constant.source.read(constant.offset + offset, nbytes)


def _check_length(constant: Constant, have: int, need: int) -> None:
    if have < need:
        raise FormatError(
            f"constant {constant.key or ''} is undersized: {have} bytes, "
            f"{list(constant.spec.dims)} {constant.spec.dtype} needs {need}"
        )
