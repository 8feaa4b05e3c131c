"""What a portable kernel is: a function on NumPy arrays with the argument order of its schema.

A kernel takes the schema's inputs (arrays, numbers, truth values, strings, lists, None) and returns
new arrays; it never writes into what it was given, so callers may pass their own arrays. Where a
result goes, and in which dtype it is stored, is the caller's business. A kernel that must know what
it fills (its dtype, or the bound that keeps a huge size from being allocated) has a keyword `out`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias, TypeVar

import numpy as np

from ..errors import (
    DtypeError,
    FormatError,
    IndexOutOfRange,
    OutOfMemory,
    ShapeError,
    WebGPUPyError,
)

Array: TypeAlias = np.ndarray
Shape: TypeAlias = tuple[int, ...]
Result: TypeAlias = Any
"""What a kernel returns: an array, or the scalar that NumPy makes of rank 0."""


@dataclass(frozen=True, slots=True)
class Out:
    """A result's dtype, and its declared sizes: bounds, unless `unbounded`.

    Even sizes that the file calls static are bounds here, since inputs may be smaller than traced.
    """

    dtype: str
    sizes: Shape
    unbounded: bool = False

    @property
    def compute(self) -> np.dtype[Any]:
        """The NumPy dtype that holds it; bfloat16 values live in float32 arrays."""
        return np.dtype("float32" if self.dtype == "bfloat16" else self.dtype)

    def check(self, shape: Sequence[int]) -> Shape:
        """`shape` as a tuple; `ShapeError` when the result cannot have it."""
        found = tuple(int(n) for n in shape)
        if any(n < 0 for n in found):
            raise ShapeError(f"result of shape {list(found)}: sizes must be 0 or more")
        if self.unbounded:
            return found
        if len(found) != len(self.sizes) or prod(found) > prod(self.sizes):
            raise ShapeError(
                f"result of shape {list(found)}, declared is at most {list(self.sizes)}"
            )
        return found


@dataclass(frozen=True, slots=True)
class Kernel:
    """A registered kernel: how many inputs its schema has, and how many results.

    `outs` is -1 where the schema has one list of results, and 0 where it has none: then the result
    goes to the value that the call names last, or to its first input if the call `returns` nothing.
    An `elementwise` one broadcasts its arrays, whose common shape is checked before it is made.
    """

    name: str
    function: Callable[..., Any]
    arity: int
    outs: int
    returns: bool
    elementwise: bool
    wants_out: bool

    def split(self, args: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
        """Ids of inputs and ids of results (of the list, for `outs` -1) of a call.

        A call repeats its results at the end: the same id, or one list of several.
        """
        expected = self.arity + abs(self.outs) + self.returns
        if len(args) != expected:
            raise FormatError(
                f"{self.name}: {len(args)} arguments, expected {expected}: {self.arity} inputs, "
                f"{abs(self.outs)} results, {int(self.returns)} returned value"
            )
        if not self.returns:
            return args, args[:1]
        return args[: self.arity], args[self.arity : self.arity + max(abs(self.outs), 1)]

    def __call__(self, args: Sequence[Any], outs: Sequence[Out] = ()) -> Any:
        """The result, or a sequence of them; errors are of our family and begin with the name."""
        try:
            if self.elementwise and outs:
                arrays = [a.shape for a in args if isinstance(a, np.ndarray)]
                outs[0].check(np.broadcast_shapes(*arrays))
            with np.errstate(all="ignore"):
                if not self.wants_out:
                    return self.function(*args)
                return self.function(*args, out=outs[0] if len(outs) == 1 else tuple(outs))
        except WebGPUPyError as error:
            raise type(error)(f"{self.name}: {error}") from None
        except IndexError as error:
            raise IndexOutOfRange(f"{self.name}: {error}") from error
        except MemoryError as error:
            raise OutOfMemory(f"{self.name}: {error or 'no memory for its result'}") from error
        except (TypeError, AttributeError) as error:
            raise DtypeError(f"{self.name}: arguments of the wrong kind ({error})") from error
        except (ValueError, ArithmeticError) as error:
            raise ShapeError(f"{self.name}: arguments do not fit ({error})") from error


KERNELS: dict[str, Kernel] = {}
"""Everything that the imported families registered, by name."""

_Function = TypeVar("_Function", bound=Callable[..., Any])


def kernel(
    *names: str, outs: int = 1, returns: bool = True, elementwise: bool = False
) -> Callable[[_Function], _Function]:
    """Register a function under operator names such as `aten::add.out`."""

    def register(function: _Function) -> _Function:
        parameters = inspect.signature(function).parameters.values()
        arity = sum(p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters)
        wants_out = any(p.name == "out" for p in parameters)
        for name in names:
            KERNELS[name] = Kernel(name, function, arity, outs, returns, elementwise, wants_out)
        return function

    return register
