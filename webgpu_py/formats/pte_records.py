"""What a `.pte` file says, as plain records: methods, values, instructions, delegates, ranges.

Literal values share the classes of the graph IR; lists differ, because here an integer list and a
tensor list hold the ids of other values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import TypeAlias

from ..errors import FormatError
from ..graph.values import Bool, BoolList, Double, DoubleList, Int, Null, Source, String
from .segments import Span

SCALAR_TYPES: dict[int, tuple[str, int]] = {
    0: ("uint8", 1),
    1: ("int8", 1),
    2: ("int16", 2),
    3: ("int32", 4),
    4: ("int64", 8),
    5: ("float16", 2),
    6: ("float32", 4),
    7: ("float64", 8),
    11: ("bool", 1),
    15: ("bfloat16", 2),
    27: ("uint16", 2),
    28: ("uint32", 4),
    29: ("uint64", 8),
}
"""ExecuTorch's ScalarType code -> dtype name and bytes per element, for what NumPy can hold."""

DTYPE_BYTES = dict(SCALAR_TYPES.values())
"""Bytes per element of every dtype a value of a `.pte` can have."""


@dataclass(frozen=True, slots=True)
class PteTensor:
    """A tensor value: dtype, upper-bound sizes, and where its first bytes come from.

    `data` is the stored content: of a constant, or, when `mutable`, the state it starts with. It
    lies in `dim_order` (outermost dimension first); the identity means row-major. `dynamic` sizes
    are bounds, `unbounded` ones are not even that. `storage` is where the exporter planned it,
    (memory id, offset): a view has no instruction of its own, only the storage of its base.
    """

    dtype: str
    sizes: tuple[int, ...]
    dim_order: tuple[int, ...]
    data: Span | None = None
    mutable: bool = False
    storage: tuple[int, int] | None = None
    dynamic: bool = False
    unbounded: bool = False
    name: str | None = None

    @property
    def numel(self) -> int:
        """Elements at most; 1 for rank 0."""
        return prod(self.sizes)

    @property
    def nbytes(self) -> int:
        """Bytes at most."""
        return self.numel * DTYPE_BYTES[self.dtype]


@dataclass(frozen=True, slots=True)
class IntIds:
    """An integer list, each entry the id of an Int value, since entries may be symbolic."""

    items: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TensorIds:
    """A tensor list by value ids; -1 stands for None where `optional`."""

    items: tuple[int, ...]
    optional: bool = False


EValue: TypeAlias = (
    Null | Int | Bool | Double | PteTensor | String | IntIds | DoubleList | BoolList | TensorIds
)


@dataclass(frozen=True, slots=True)
class KernelCall:
    """Call operator `op` of the plan: schema arguments in order, then the results' ids again."""

    op: int
    args: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DelegateCall:
    """Run delegate `delegate` of the plan: its inputs in order, then its outputs."""

    delegate: int
    args: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MoveCall:
    """values[target] = values[source]."""

    source: int
    target: int


@dataclass(frozen=True, slots=True)
class JumpFalseCall:
    """Go to `destination` of the chain when `condition` is false (a tensor: not all true)."""

    condition: int
    destination: int


@dataclass(frozen=True, slots=True)
class FreeCall:
    """The tensor's storage is not needed any more."""

    value: int


Instruction: TypeAlias = KernelCall | DelegateCall | MoveCall | JumpFalseCall | FreeCall


@dataclass(frozen=True, slots=True)
class Delegate:
    """A part of the plan for a backend: its id, its blob (unread) and its compile options."""

    id: str
    blob: Span
    compile_specs: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class ExecutionPlan:
    """One method: values, the ids of its inputs and outputs, and what runs in which order."""

    name: str
    values: tuple[EValue, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    chains: tuple[tuple[Instruction, ...], ...]
    operators: tuple[str, ...]
    delegates: tuple[Delegate, ...]


@dataclass(frozen=True, slots=True)
class PteProgram:
    """A parsed `.pte`: methods by name, segments, and named data from it and its `.ptd` files."""

    source: Source
    version: int
    plans: dict[str, ExecutionPlan]
    segments: tuple[Span, ...] = ()
    named_data: dict[str, Span] = field(default_factory=dict)

    def plan(self, name: str) -> ExecutionPlan:
        """The method called `name`; `FormatError` listing what there is otherwise."""
        try:
            return self.plans[name]
        except KeyError:
            raise FormatError(
                f"{self.source.name}: no method {name!r}; it has {', '.join(sorted(self.plans))}"
            ) from None
