"""A `.pte` in the page: its picture, inputs made as asked, a run with times and memory."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from .device import Device
from .errors import DtypeError, ShapeError
from .formats import pte_records as pte
from .graph.values import Source
from .method import Method
from .picture import program_picture
from .program import Program, load

if TYPE_CHECKING:
    from .page import Call

MAX_SHOWN = 1 << 20
"""Elements of an array that cross to the page when they are only to be looked at."""


class OpenProgram:
    """The open file when it is a program."""

    kind = "program"

    def __init__(self, program: Program, device: Device) -> None:
        self._program = program
        self._device = device

    def description(self) -> dict[str, Any]:
        """What the page draws."""
        return {"methods": program_picture(self._program), "memory": self._program.memory()}

    async def run(self, args: dict[str, Any], call: Call) -> dict[str, Any]:
        """Run `method` on `inputs`: arrays, numbers, or recipes as in `make_input`.

        Outputs cross up to `MAX_SHOWN` elements each, or whole if `whole`.
        """
        method, inputs = self._asked(args)
        most = sys.maxsize if args.get("whole") else MAX_SHOWN
        start = time.perf_counter()
        profile = bool(args.get("profile")) and "timestamp-query" in self._device.features
        result = await method.run(inputs, profile)
        elapsed = 1e3 * (time.perf_counter() - start)
        return {
            "inputs": [_shown(a, MAX_SHOWN) for a in inputs],
            "outputs": [_shown(a, most) for a in result.outputs],
            "run_ms": elapsed,
            "kernels": result.kernels,
            "dispatches": sum(s.dispatches for s in method.sessions),
            "memory": self._program.memory(),
        }

    async def debug(self, args: dict[str, Any], call: Call) -> dict[str, Any]:
        """What `Method.debug` finds for the same arguments."""
        method, inputs = self._asked(args)
        return (await method.debug(*inputs)).plain()

    def _asked(self, args: dict[str, Any]) -> tuple[Method, list[Any]]:
        """The method of a request, and its inputs."""
        method = self._program.method(args.get("method", "forward"))
        declared = [method.plan.values[i] for i in method.plan.inputs]
        given = args["inputs"]
        if len(given) != len(declared):
            raise ShapeError(f"{len(given)} inputs, {method.plan.name} takes {len(declared)}")
        return method, [
            make_input(f"input {k}", d, g)
            for k, (d, g) in enumerate(zip(declared, given, strict=True))
        ]

    async def reset(self, args: dict[str, Any], call: Call) -> None:
        """Caches and mutable buffers as at first."""
        await self._program.reset()

    async def memory(self, args: dict[str, Any], call: Call) -> dict[str, Any]:
        """Device bytes by kind."""
        return {"gpu": self._program.memory()}

    def close(self) -> None:
        """Free the sessions."""
        self._program.close()


async def open_program(
    source: Source, device: Device, options: dict[str, Any], call: Call
) -> OpenProgram:
    """Load a program onto the device."""
    return OpenProgram(await load(source, device=device), device)


def make_input(name: str, declared: Any, given: Any) -> Any:
    """An input as the page asks for it.

    `given` is an array or a number, taken as it is, or a recipe: `{"fill": "random" | "zeros" |
    "values", "shape": [...], "seed": int, "below": int, "values": [...]}`. Random floats are
    normal, random integers run from 0 to `below`, exclusive.
    """
    if not isinstance(given, dict):
        return given
    if not isinstance(declared, pte.PteTensor):
        raise DtypeError(f"{name} is a number; give a number")
    shape, dtype = tuple(given["shape"]), np.dtype(declared.dtype)
    if given["fill"] == "zeros":
        return np.zeros(shape, dtype)
    if given["fill"] == "values":
        return _typed(name, given["values"], shape, dtype)
    random = np.random.default_rng(given.get("seed", 0))
    if dtype.kind == "b":
        return random.random(shape) < 0.5
    if dtype.kind in "iu":
        return random.integers(0, max(1, given.get("below", 2)), shape).astype(dtype)
    return random.standard_normal(shape).astype(dtype)


def _typed(name: str, values: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    array = np.asarray(values, np.float64 if dtype.kind == "f" else None)
    if array.size == 1:
        return np.full(shape, array.reshape(()), dtype)
    if array.size != int(np.prod(shape)):
        raise ShapeError(
            f"{name}: {array.size} values for shape {list(shape)}, which holds "
            f"{int(np.prod(shape))}; type that many, or one for all"
        )
    return array.reshape(shape).astype(dtype)


def _shown(value: Any, most: int) -> Any:
    """What the page gets of a value: the array, or its facts alone where it is too large."""
    if not isinstance(value, np.ndarray):
        return {"value": value if isinstance(value, (int, float, bool, str)) else None}
    if value.dtype == np.float16:
        value = value.astype(np.float32)
    record: dict[str, Any] = {"dtype": str(value.dtype), "shape": list(value.shape)}
    if value.size:
        finite = value[np.isfinite(value)] if value.dtype.kind == "f" else value
        record |= {"finite": int(finite.size), "numel": int(value.size)}
        if finite.size:
            record |= {
                "min": float(finite.min()),
                "max": float(finite.max()),
                "mean": float(finite.mean(dtype=np.float64)),
            }
    if value.size <= most:
        record["array"] = np.ascontiguousarray(value)
    return record
