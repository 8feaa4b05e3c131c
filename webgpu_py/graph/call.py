"""A node's arguments, read by name and checked for kind, against maximal or live dims."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..errors import DtypeError, ShapeError, UnsupportedOperator, WebGPUPyError
from .operator import Argument, Operator
from .values import (
    Bool,
    BoolList,
    Double,
    DoubleList,
    GraphIR,
    Int,
    IntList,
    Node,
    Null,
    String,
    SymInt,
    Tensor,
    TensorSpec,
    ValueId,
    ValueList,
)


@dataclass(slots=True)
class Env:
    """What differs from run to run: live dims, symbolic integers, and the host's inputs.

    `maximal` says that dims are the bounds of a build: symbolic integers that come from data hold
    their initial value, so a shape rule that reads one prefers the declared result.
    """

    dims: dict[ValueId, tuple[int, ...]] = field(default_factory=dict)
    symints: dict[ValueId, int] = field(default_factory=dict)
    host: dict[ValueId, np.ndarray] = field(default_factory=dict)
    maximal: bool = False


@dataclass(frozen=True, slots=True)
class TensorRef:
    """A tensor argument: its live spec, its maximal spec, and the name it has in the signature."""

    id: ValueId
    name: str
    spec: TensorSpec
    max_spec: TensorSpec

    @property
    def dims(self) -> tuple[int, ...]:
        """Live dimensions."""
        return self.spec.dims

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.spec.dims)

    @property
    def dtype(self) -> str:
        """Element type on the device."""
        return self.spec.dtype

    @property
    def numel(self) -> int:
        """Live elements."""
        return self.spec.numel

    def fixed(self, axis: int = 0) -> bool:
        """Whether the dimensions from `axis` on are as large as they can be."""
        return self.dims[axis:] == self.max_spec.dims[axis:]


@dataclass(frozen=True, slots=True)
class Call:
    """One node with its operator; `index` is its place in the chain."""

    operator: Operator
    node: Node
    index: int
    graph: GraphIR
    env: Env
    has_results: bool = True

    def with_env(self, env: Env) -> Call:
        """The same call at other live values."""
        return replace(self, env=env)

    @property
    def name(self) -> str:
        """The operator's name."""
        return self.operator.name

    def error(self, kind: type[WebGPUPyError], message: str) -> WebGPUPyError:
        """An error of the family that starts with operator and node."""
        return kind(f"{self.name} (node {self.index}): {message}")

    def check(self, condition: bool, message: str, kind: type[WebGPUPyError] = ShapeError) -> None:
        """Raise an error of the family unless `condition` holds."""
        if not condition:
            raise self.error(kind, message)

    # -- raw arguments

    def _argument(self, name: str) -> Argument:
        return self.operator.signature.arguments[self._position(name)]

    def _position(self, name: str) -> int:
        position = self.operator.signature.positions.get(name)
        if position is None:
            raise KeyError(f"{self.name} declares no argument {name!r}")
        return position

    @property
    def argument_ids(self) -> tuple[ValueId, ...]:
        """Ids of the arguments, without the result."""
        return self.node.args[:-1] if self.has_results else self.node.args

    def id(self, name: str) -> ValueId | None:
        """Value id of an argument; None where it is absent."""
        position = self._position(name)
        ids = self.argument_ids
        return ids[position] if position < len(ids) else None

    def value(self, name: str) -> Any:
        """The IR value of an argument; Null where it is absent."""
        found = self.id(name)
        value = Null() if found is None else self.graph.values[found]
        if isinstance(value, Null) and not self._argument(name).optional:
            raise self.error(UnsupportedOperator, f"argument {name!r} is missing")
        return value

    def is_null(self, name: str) -> bool:
        """Whether an optional argument is None or absent."""
        return isinstance(self.value(name), Null)

    def is_symint(self, name: str) -> bool:
        """Whether an argument is a SymInt, or a list with one in it."""
        value = self.value(name)
        if isinstance(value, ValueList):
            return any(isinstance(self.graph.values[i], SymInt) for i in value.items)
        return isinstance(value, SymInt)

    def _wrong(self, name: str, wanted: str, value: object) -> WebGPUPyError:
        return self.error(
            UnsupportedOperator, f"argument {name!r} is a {type(value).__name__}, must be {wanted}"
        )

    # -- scalars and lists (1 and 1.0 share one value in exported graphs, so both kinds are read)

    def _scalar(self, name: str, value: object) -> builtins.int | builtins.float | builtins.bool:
        if isinstance(value, SymInt):
            found = self.id(name)
            assert found is not None
            return self.env.symints[found]
        if isinstance(value, (Int, Double, Bool)):
            return value.value
        raise self._wrong(name, "a number", value)

    def int(self, name: str) -> builtins.int:
        """An integer: Int, integral Double, Bool or the current value of a SymInt."""
        value = self.value(name)
        if isinstance(value, Null):
            return int(self._argument(name).default)
        number = self._scalar(name, value)
        if number != int(number):
            raise self._wrong(name, f"an integer, not {number}", value)
        return int(number)

    def float(self, name: str) -> builtins.float:
        """A float: Double, Int or the current value of a SymInt."""
        value = self.value(name)
        return float(
            self._argument(name).default if isinstance(value, Null) else self._scalar(name, value)
        )

    def bool(self, name: str) -> builtins.bool:
        """A truth value: Bool, or an Int that is 0 or 1."""
        value = self.value(name)
        if isinstance(value, Null):
            return bool(self._argument(name).default)
        number = self._scalar(name, value)
        if number not in (0, 1):
            raise self._wrong(name, f"a Bool, not {number}", value)
        return bool(number)

    def string(self, name: str) -> str:
        """A String."""
        value = self.value(name)
        if isinstance(value, Null):
            return str(self._argument(name).default)
        if not isinstance(value, String):
            raise self._wrong(name, "a String", value)
        return value.value

    def ints(self, name: str) -> list[builtins.int]:
        """A list of integers, symbolic entries at their current value."""
        value = self.value(name)
        if isinstance(value, Null):
            return list(self._argument(name).default or [])
        if isinstance(value, (IntList, BoolList, DoubleList)):
            items = [int(i) for i in value.items]
            if any(i != j for i, j in zip(items, value.items, strict=True)):
                raise self._wrong(name, "a list of integers", value)
            return items
        if isinstance(value, ValueList):
            return [self._list_entry(name, i) for i in value.items]
        if isinstance(value, (Int, SymInt)):
            return [self.int(name)]
        raise self._wrong(name, "a list of integers", value)

    def floats(self, name: str) -> list[builtins.float]:
        """A list of floats; empty where it is absent."""
        value = self.value(name)
        if isinstance(value, Null):
            return list(self._argument(name).default or [])
        if isinstance(value, (IntList, DoubleList)):
            return [builtins.float(i) for i in value.items]
        raise self._wrong(name, "a list of numbers", value)

    def _list_entry(self, name: str, item: ValueId) -> builtins.int:
        value = self.graph.values[item]
        if isinstance(value, SymInt):
            return self.env.symints[item]
        if isinstance(value, Int) or (isinstance(value, Double) and value.value.is_integer()):
            return int(value.value)
        raise self._wrong(name, "a list of integers", value)

    # -- tensors

    def ref(self, value_id: ValueId, name: str) -> TensorRef:
        """The tensor value `value_id` at its live dims."""
        value = self.graph.values[value_id]
        if not isinstance(value, Tensor):
            raise self._wrong(name, "a Tensor", value)
        dims = self.env.dims.get(value_id, value.spec.dims)
        return TensorRef(value_id, name, TensorSpec(value.spec.dtype, dims), value.spec)

    def tensor(self, name: str, dtype: str | Sequence[str] | None = None) -> TensorRef:
        """A tensor argument, of that dtype if one is named."""
        value = self.value(name)
        found = self.id(name)
        if found is None or not isinstance(value, Tensor):
            raise self._wrong(name, "a Tensor", value)
        ref = self.ref(found, name)
        allowed = (dtype,) if isinstance(dtype, str) else dtype
        if allowed and ref.dtype not in allowed:
            raise self.error(DtypeError, f"{name} is {ref.dtype}, must be {' or '.join(allowed)}")
        return ref

    def optional_tensor(self, name: str, dtype: str | None = None) -> TensorRef | None:
        """A tensor argument, or None."""
        return None if self.is_null(name) else self.tensor(name, dtype)

    def tensors(self, name: str) -> list[TensorRef | None]:
        """A ValueList of tensors; Null entries are None."""
        value = self.value(name)
        if isinstance(value, Tensor):
            return [self.tensor(name)]
        if not isinstance(value, ValueList):
            raise self._wrong(name, "a list of Tensors", value)
        return [
            None if isinstance(self.graph.values[i], Null) else self.ref(i, f"{name}[{n}]")
            for n, i in enumerate(value.items)
        ]

    @property
    def result_ids(self) -> tuple[ValueId, ...]:
        """Value ids of the results (none while the builder still infers them)."""
        if not self.has_results:
            return ()
        last = self.node.args[-1]
        value = self.graph.values[last]
        return value.items if isinstance(value, ValueList) else (last,)

    def out(self, position: builtins.int = 0) -> TensorRef:
        """A result tensor."""
        return self.ref(self.result_ids[position], self.result_name(position))

    def result_name(self, position: builtins.int) -> str:
        """Name of a result; an operator with one name for a list numbers them."""
        names = self.operator.signature.results
        return names[position] if position < len(names) else f"{names[-1]}[{position}]"

    def declared(self, position: builtins.int = 0) -> TensorSpec | None:
        """The maximal spec that a program from a file declares for a result, if it does."""
        if position >= len(self.result_ids):
            return None
        value = self.graph.values[self.result_ids[position]]
        return value.spec if isinstance(value, Tensor) else None

    # -- for the reference

    def tensor_ids(self) -> dict[str, ValueId | list[ValueId | None] | None]:
        """Per tensor argument by name: its id, None, or a list of those."""
        found: dict[str, ValueId | list[ValueId | None] | None] = {}
        values = self.graph.values
        for argument, i in zip(self.operator.signature.arguments, self.argument_ids, strict=False):
            value = values[i]
            if isinstance(value, Tensor):
                found[argument.name] = i
            elif isinstance(value, ValueList) and any(
                isinstance(values[j], Tensor) for j in value.items
            ):
                found[argument.name] = [
                    j if isinstance(values[j], Tensor) else None for j in value.items
                ]
        return found

    def map_tensors(self, fn: Callable[[ValueId], Any]) -> dict[str, Any]:
        """`tensor_ids` with `fn` applied to every id."""
        return {
            name: [None if j is None else fn(j) for j in i]
            if isinstance(i, list)
            else (None if i is None else fn(i))
            for name, i in self.tensor_ids().items()
        }
