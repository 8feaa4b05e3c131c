"""The graph IR: values, nodes and constants, one to one with the Vulkan-delegate graph.

A graph is a list of values (`ValueId` = index into it) and a chain of nodes, each an operator
name with argument ids. Dimensions in the IR are upper bounds; live dimensions belong to a run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Protocol, TypeAlias

import numpy as np

from ..errors import DtypeError

ValueId: TypeAlias = int

ITEMSIZE: dict[str, int] = {
    "float32": 4,
    "int32": 4,
    "uint32": 4,
    "int8": 1,
    "uint8": 1,
    "bool": 1,
}
"""Bytes per element of every device dtype; 64-bit and half types stop at the boundary."""


def itemsize(dtype: str) -> int:
    """Bytes per element of a device dtype; `DtypeError` when no device tensor can have it."""
    try:
        return ITEMSIZE[dtype]
    except KeyError:
        raise DtypeError(
            f"dtype {dtype!r} has no device form; use one of {', '.join(ITEMSIZE)}"
        ) from None


@dataclass(frozen=True, slots=True)
class Dim:
    """A named live dimension with an upper bound, as `dim("n", max=16)` makes it."""

    name: str
    max: int


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """Element type and dimensions of a tensor."""

    dtype: str
    dims: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """`dims`, by NumPy's name."""
        return self.dims

    @property
    def numel(self) -> int:
        """Elements; 1 for rank 0."""
        return prod(self.dims)

    @property
    def nbytes(self) -> int:
        """Bytes, without padding."""
        return self.numel * itemsize(self.dtype)


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor value: maximal spec, and the index of its constant where it has one."""

    spec: TensorSpec
    constant: int | None = None


@dataclass(frozen=True, slots=True)
class Null:
    """Python's None."""


@dataclass(frozen=True, slots=True)
class Int:
    """A literal integer (int64 range)."""

    value: int


@dataclass(frozen=True, slots=True)
class Double:
    """A literal float64."""

    value: float


@dataclass(frozen=True, slots=True)
class Bool:
    """A literal truth value."""

    value: bool


@dataclass(frozen=True, slots=True)
class String:
    """A literal string."""

    value: str


@dataclass(frozen=True, slots=True)
class IntList:
    """Literal integers."""

    items: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DoubleList:
    """Literal floats."""

    items: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class BoolList:
    """Literal truth values."""

    items: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class ValueList:
    """Ids of other values: several results, or a list with symbolic entries."""

    items: tuple[ValueId, ...]


@dataclass(frozen=True, slots=True)
class SymInt:
    """An int32 known only when a run starts; `initial` is its value before the first run."""

    initial: int = 0


Value: TypeAlias = (
    Tensor
    | Null
    | Int
    | Double
    | Bool
    | String
    | IntList
    | DoubleList
    | BoolList
    | ValueList
    | SymInt
)


@dataclass(frozen=True, slots=True)
class Node:
    """One call in the chain: operator name and argument ids, the results' ids last."""

    op: str
    args: tuple[ValueId, ...]


class Source(Protocol):
    """Random-access bytes: memory, a file, a URL. `read` is all that header parsing needs."""

    name: str
    nbytes: int

    async def read(self, offset: int, nbytes: int) -> bytes:
        """Exactly `nbytes` bytes from `offset`; FormatError when the source is shorter."""
        ...


@dataclass(slots=True)
class Constant:
    """Bytes of a constant tensor: in memory (`data`), a range of a `source`, or zeros (neither).

    `key` names it in errors; it is equal for equal bytes (tied weights), so they are stored once.
    `dtype` is what the bytes hold: a float16 or bfloat16 constant becomes float32 on the way to the
    device. `plus` is added to every number of a float32 constant on that way.
    """

    spec: TensorSpec
    data: np.ndarray | bytes | None = None
    source: Source | None = None
    offset: int = 0
    nbytes: int = 0
    key: str | None = None
    dtype: str | None = None
    plus: float = 0.0


@dataclass(frozen=True, slots=True)
class Port:
    """A graph input or output: its name, its value, and per dimension a `Dim` or a fixed int.

    `dims=None` means that any live shape up to the maximum is taken (programs from files).
    """

    name: str
    value: ValueId
    dims: tuple[int | Dim, ...] | None = None


@dataclass(slots=True)
class GraphIR:
    """Everything lowering needs: values, chain, ports, constants."""

    values: list[Value] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    inputs: list[Port] = field(default_factory=list)
    outputs: list[Port] = field(default_factory=list)
    constants: list[Constant] = field(default_factory=list)
