"""Execution plans of a `.pte`: values, instructions and delegates, every index checked.

The flatbuffer's fields are numbered in declaration order: ExecutionPlan {name, -, values,
inputs, outputs, chains, operators, delegates}; Tensor {scalar_type, storage_offset, sizes,
dim_order, -, data_buffer_idx, allocation_info, -, shape_dynamism, extra_tensor_info}.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ..errors import DtypeError
from ..graph.values import Bool, BoolList, Double, DoubleList, Int, Null, Source, String
from .flat import Table, within
from .pte_records import (
    DTYPE_BYTES,
    SCALAR_TYPES,
    Delegate,
    DelegateCall,
    EValue,
    ExecutionPlan,
    FreeCall,
    Instruction,
    IntIds,
    JumpFalseCall,
    KernelCall,
    MoveCall,
    PteTensor,
    TensorIds,
)
from .segments import Span

MAX_RANK = 16
"""Rank of a tensor at most, as in ExecuTorch's runtime."""

MAX_TENSOR_BYTES = 1 << 32
"""Bytes of a tensor at most: a wasm heap cannot hold more, and hostile sizes end here."""

_VALUE_KINDS = (
    "None",
    "Null",
    "Int",
    "Bool",
    "Double",
    "Tensor",
    "String",
    "IntList",
    "DoubleList",
    "BoolList",
    "TensorList",
    "OptionalTensorList",
)
_CALL_KINDS = ("None", "KernelCall", "DelegateCall", "MoveCall", "JumpFalseCall", "FreeCall")
_EXTERNAL = 1
_SEGMENT = 1


class PlanReader:
    """Reads execution plans against the program's segments and named data."""

    def __init__(
        self, root: Table, source: Source, segments: Sequence[Span], named: dict[str, Span]
    ) -> None:
        self._root, self._source, self._segments, self._named = root, source, segments, named
        self._inline = [self._in_file(t.span(0)) for t in root.tables(3, "InlineData")]
        self._old_constants = [self._in_file(t.span(0)) for t in root.tables(2, "Buffer")]
        constant = root.table(5, "SubsegmentOffsets")
        self._constants = None if constant is None else self._offsets(constant)
        self._states = [self._offsets(t) for t in root.tables(6, "SubsegmentOffsets")]
        if self._old_constants and self._constants and len(self._constants[1]) > 1:
            raise root.fail("constants are both in constant_buffer and in a constant segment")

    def plan(self, table: Table) -> ExecutionPlan:
        """One method; `FormatError` for whatever in it does not fit together."""
        method = f"method {table.string(0)!r}"
        found: list[EValue] = []
        for index, t in enumerate(table.tables(2, "EValue")):
            with within(f"{method}, value {index}"):
                found.append(self._value(t))
        values = tuple(found)
        for index, value in enumerate(values):
            with within(method):
                _check_list(table, values, index, value)
        operators = tuple(
            ".".join(filter(None, (t.text(0, "operator name"), t.string(1))))
            for t in table.tables(6, "Operator")
        )
        delegates = []
        for index, t in enumerate(table.tables(7, "BackendDelegate")):
            with within(f"{method}, delegate {index}"):
                delegates.append(self._delegate(t))
        chains = []
        for at, chain in enumerate(table.tables(5, "Chain")):
            calls, steps = chain.tables(2, "Instruction"), []
            for index, call in enumerate(calls):
                with within(f"{method}, chain {at}, instruction {index}"):
                    counts = len(operators), len(delegates), len(calls)
                    steps.append(_instruction(call, values, *counts))
            chains.append(tuple(steps))
        inputs, outputs = table.ints(3, "i32"), table.ints(4, "i32")
        for what, ids in (("input", inputs), ("output", outputs)):
            for at, index in enumerate(ids):
                with within(f"{method}, {what} {at}"):
                    _in_range(table, "value", index, len(values))
        name = table.text(0, "method name")
        return ExecutionPlan(
            name, values, inputs, outputs, tuple(chains), operators, tuple(delegates)
        )

    def _in_file(self, span: tuple[int, int]) -> Span:
        """A byte vector of the flatbuffer as a range of the file, which starts with it."""
        return Span(self._source, *span)

    def _offsets(self, table: Table) -> tuple[Span, tuple[int, ...]]:
        """Segment and offsets of a SubsegmentOffsets; an empty one needs no segment."""
        index, offsets = table.u32(0), table.ints(1, "u64")
        if index >= len(self._segments):
            if len(offsets) > 1:
                raise table.fail(f"segment {index} of {len(self._segments)}")
            return Span(self._source, 0, 0), offsets
        return self._segments[index], offsets

    def _value(self, table: Table) -> EValue:
        kind, body = table.union(0, _VALUE_KINDS)
        if body is None or kind == 1:
            return Null()
        match kind:
            case 2:
                return Int(body.i64(0))
            case 3:
                return Bool(body.flag(0))
            case 4:
                return Double(body.f64(0))
            case 5:
                return self._tensor(body)
            case 6:
                return String(body.text(0, "string_val"))
            case 7:
                return IntIds(body.ints(0, "i64"))
            case 8:
                return DoubleList(body.doubles(0))
            case 9:
                return BoolList(body.bools(0))
            case _:
                return TensorIds(body.ints(0, "i32"), optional=kind == 11)

    def _tensor(self, table: Table) -> PteTensor:
        code, sizes = table.i8(0), table.ints(2, "i32")
        if code not in SCALAR_TYPES:
            raise DtypeError(
                f"{self._source.name}: a tensor of scalar type {code}; "
                f"{', '.join(DTYPE_BYTES)} can be held"
            )
        dtype, itemsize = SCALAR_TYPES[code]
        if len(sizes) > MAX_RANK or any(size < 0 for size in sizes):
            raise table.fail(f"sizes {sizes}: up to {MAX_RANK} dimensions of 0 or more")
        # Zero dimensions must not hide the others, which a live shape could bring back.
        if prod(max(size, 1) for size in sizes) * itemsize > MAX_TENSOR_BYTES:
            raise table.fail(f"{dtype}{list(sizes)} is over {MAX_TENSOR_BYTES} bytes")
        if table.i32(1):
            raise table.fail(f"storage_offset {table.i32(1)}, only 0 is defined")
        order = table.ints(3, "u8") or tuple(range(len(sizes)))
        if sorted(order) != list(range(len(sizes))):
            raise table.fail(f"dim_order {order} is no permutation of {len(sizes)} dimensions")
        dynamism = table.i8(8)
        if dynamism not in (0, 1, 2):
            raise table.fail(f"shape_dynamism {dynamism}, 0 to 2 are defined")
        extra = table.table(9, "ExtraTensorInfo")
        details = table.table(6, "AllocationDetails")
        planned = details is not None
        data = self._data(table, extra, planned, prod(sizes) * itemsize)
        return PteTensor(
            dtype,
            sizes,
            order,
            data,
            mutable=planned and data is not None,
            storage=None
            if details is None
            else (details.u32(0), details.u32(1) | details.u32(2) << 32),
            dynamic=dynamism != 0,
            unbounded=dynamism == 2,
            name=None if extra is None else extra.string(1),
        )

    def _data(self, table: Table, extra: Table | None, planned: bool, nbytes: int) -> Span | None:
        """Stored bytes of a tensor: external by name, initial state, or constant; else None."""
        index = table.u32(5)
        if extra is not None and extra.i8(2) == _EXTERNAL:
            name = extra.text(1, "name of an external tensor")
            if name not in self._named:
                raise table.fail(
                    f"external tensor {name!r} is in none of the files — "
                    "give the .ptd files that belong to the program"
                )
            return self._named[name].part(0, nbytes, f"external tensor {name!r}")
        if index == 0:
            return None
        if planned:
            group = 0 if extra is None else extra.u64(0)
            if group >= len(self._states):
                raise table.fail(f"initial state in group {group} of {len(self._states)}")
            segment, offsets = self._states[group]
        elif self._old_constants:
            if index >= len(self._old_constants):
                raise table.fail(f"constant {index} of {len(self._old_constants)}")
            return self._old_constants[index].part(0, nbytes, f"constant {index}")
        elif self._constants is not None:
            segment, offsets = self._constants
        else:
            raise table.fail(f"constant {index}, and the program has no constants")
        if index >= len(offsets):
            raise table.fail(f"constant {index} of {len(offsets)}")
        return segment.part(offsets[index], nbytes, f"constant {index}")

    def _delegate(self, table: Table) -> Delegate:
        data = table.table(1, "BackendDelegateDataReference")
        if data is None:
            raise table.fail("processed data is missing")
        places = self._segments if data.i8(0) == _SEGMENT else self._inline
        index = data.u32(1)
        if index >= len(places):
            raise table.fail(f"delegate data {index} of {len(places)}")
        specs = tuple(
            (spec.text(0, "key"), spec.blob(1)) for spec in table.tables(2, "CompileSpec")
        )
        return Delegate(table.text(0, "delegate id"), places[index], specs)


def _in_range(table: Table, what: str, index: int, count: int) -> int:
    if not 0 <= index < count:
        raise table.fail(f"{what} {index} is outside 0 to {count - 1}")
    return index


def _check_list(table: Table, values: Sequence[EValue], index: int, value: EValue) -> None:
    """The entries of lists must be values of the right kind."""
    if isinstance(value, IntIds):
        allowed: tuple[type, ...] = (Int,)
    elif isinstance(value, TensorIds):
        allowed = (PteTensor, Null) if value.optional else (PteTensor,)
    else:
        return
    for item in value.items:
        if item == -1 and isinstance(value, TensorIds) and value.optional:
            continue
        _in_range(table, f"list {index}: entry", item, len(values))
        if not isinstance(values[item], allowed):
            raise table.fail(f"list {index}: entry {item} is {type(values[item]).__name__}")


def _instruction(
    table: Table, values: Sequence[EValue], operators: int, delegates: int, calls: int
) -> Instruction:
    kind, body = table.union(0, _CALL_KINDS)
    if body is None:
        raise table.fail("empty instruction")
    count = len(values)
    if kind in (1, 2):
        args = body.ints(1, "i32")
        for arg in args:
            _in_range(body, "argument", arg, count)
        if kind == 1:
            return KernelCall(_in_range(body, "operator", body.i32(0), operators), args)
        return DelegateCall(_in_range(body, "delegate", body.i32(0), delegates), args)
    first = _in_range(body, "value", body.i32(0), count)
    if kind == 3:
        return MoveCall(first, _in_range(body, "value", body.i32(1), count))
    if kind == 4:
        value = values[first]
        if not isinstance(value, Bool | PteTensor):
            raise body.fail(f"condition {first} is {type(value).__name__}, not a truth value")
        # One past the last instruction is the end of the chain.
        return JumpFalseCall(first, _in_range(body, "instruction", body.i32(1), calls + 1))
    if not isinstance(values[first], PteTensor):
        raise body.fail(f"value {first} to free is {type(values[first]).__name__}, not a tensor")
    return FreeCall(first)
