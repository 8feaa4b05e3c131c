"""ExecuTorch's Vulkan-delegate blob -> graph IR, one to one.

Layout (little-endian): 4 zero bytes, `VH00`, u16 header size (30), u32 flatbuffer offset, u32
flatbuffer size, u32 constants offset, u64 constants size; then the flatbuffer (identifier `VK00`)
and the constant region. Storage types and memory layouts of the file are ignored: every tensor
here is flat and row-major.

Traps of the schema: `constant_id` and `datatype` default to 0, so an absent field means constant 0
and BOOL. `mem_obj_id` is not read at all: it aliases tensors for another runtime's planner (across
dtypes, even inputs with activations), and ours works from liveness instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from ..errors import FormatError, UnsupportedOperator
from ..graph.values import (
    Bool,
    BoolList,
    Constant,
    Double,
    DoubleList,
    GraphIR,
    Int,
    IntList,
    Node,
    Null,
    Port,
    String,
    SymInt,
    Tensor,
    TensorSpec,
    Value,
    ValueList,
)
from ..sources import BytesSource
from .flat import MAX_FLATBUFFER, FlatBuffer, Table, within
from .segments import Span

_HEADER_BYTES = 30
_NAMED = (1 << 64) - 1
_MAX_RANK = 16
_MAX_BYTES = 1 << 40

_DTYPES: dict[int, tuple[str, str, int]] = {
    0: ("bool", "bool", 1),
    1: ("uint8", "uint8", 1),
    2: ("int8", "int8", 1),
    3: ("int32", "int32", 4),
    4: ("float32", "float16", 2),
    5: ("float32", "float32", 4),
    6: ("float32", "float64", 8),
    7: ("int32", "int64", 8),
}
"""VkDataType -> dtype on the device, dtype of stored bytes, stored bytes per element.

Half programs compute in float32 here; their constants stay half in the file.
"""

_VALUE_KINDS = (
    "None",
    "Null",
    "Int",
    "Double",
    "Bool",
    "VkTensor",
    "IntList",
    "DoubleList",
    "BoolList",
    "ValueList",
    "String",
    "SymInt",
)


async def read_vk_graph(
    blob: Span | bytes, named: Mapping[str, Span] | None = None, name: str = "delegate"
) -> GraphIR:
    """The graph in `blob`, its constants left where they are; `named` holds those with a key.

    Inputs are ports `arg0, arg1, ...` and outputs `out0, out1, ...` in the blob's order.

    Raises:
        FormatError: damaged blob, or a constant that is missing or too small.
        UnsupportedOperator: an input that is no tensor.
    """
    if not isinstance(blob, Span):
        blob = Span(BytesSource(blob, name), 0, len(blob))
    flatbuffer, region = await _sections(blob, name)
    root = FlatBuffer(await flatbuffer.read(), name).root(b"VK00", "VkGraph")
    return _GraphReader(root, name, region, named or {}).graph()


async def _sections(blob: Span, name: str) -> tuple[Span, Span]:
    """Flatbuffer and constant region of the blob; `FormatError` when they cannot be there."""
    if blob.nbytes < _HEADER_BYTES:
        raise FormatError(
            f"{name}: blob of {blob.nbytes} bytes, its header alone has {_HEADER_BYTES}"
        )
    head = await blob.part(0, _HEADER_BYTES, f"{name}: header").read()
    if head[4:8] != b"VH00":
        raise FormatError(f"{name}: identifier {head[4:8]!r} at byte 4, a Vulkan blob has b'VH00'")
    header, offset, size, data = (
        int.from_bytes(head[at : at + width], "little")
        for at, width in ((8, 2), (10, 4), (14, 4), (18, 4))
    )
    data_size = int.from_bytes(head[22:30], "little")
    if header < _HEADER_BYTES or offset < header or size == 0 or data < offset + size:
        raise FormatError(
            f"{name}: header of {header} bytes, flatbuffer of {size} at {offset}, constants at "
            f"{data}: they must follow each other"
        )
    if size > MAX_FLATBUFFER:
        raise FormatError(f"{name}: flatbuffer of {size} bytes, at most {MAX_FLATBUFFER}")
    # Older writers left the size out; then the region is the rest of the blob.
    data_size = data_size or max(blob.nbytes - data, 0)
    flatbuffer = blob.part(offset, size, f"{name}: flatbuffer")
    if data == blob.nbytes or data_size == 0:
        return flatbuffer, Span(blob.source, blob.offset + blob.nbytes, 0)
    return flatbuffer, blob.part(data, data_size, f"{name}: constant region")


class _GraphReader:
    """Turns the tables of one VkGraph into IR."""

    def __init__(self, root: Table, name: str, region: Span, named: Mapping[str, Span]) -> None:
        self._root, self._name, self._region, self._named = root, name, region, named
        self._stored = root.tables(5, "VkBytes")
        self._constants: list[Constant] = []
        self._constant_of: dict[tuple[int, str, TensorSpec], int] = {}

    def graph(self) -> GraphIR:
        """The whole graph; `FormatError` for ids that point nowhere."""
        values: list[Value] = []
        for index, table in enumerate(self._root.tables(2, "VkValue")):
            with within(f"value {index}"):
                values.append(self._value(table))
        for index, value in enumerate(values):
            if isinstance(value, ValueList):
                for item in value.items:
                    if isinstance(self._entry(values, item, f"list {index}"), ValueList):
                        raise self._root.fail(f"list {index}: entry {item} is a list itself")
        nodes: list[Node] = []
        for call in self._root.tables(1, "OperatorCall"):
            with within(f"node {len(nodes)}"):
                op, args = call.text(1, "operator name"), call.ints(2, "i32")
                for arg in args:
                    self._entry(values, arg, op)
            nodes.append(Node(op, args))
        inputs = self._ports(values, 3, "arg")
        outputs = self._ports(values, 4, "out")
        if len({port.value for port in inputs}) < len(inputs):
            ids = [port.value for port in inputs]
            twice = next(i for i in ids if ids.count(i) > 1)
            raise self._root.fail(f"value {twice} is an input twice")
        return GraphIR(values, nodes, inputs, outputs, self._constants)

    def _entry(self, values: list[Value], index: int, what: str) -> Value:
        if not 0 <= index < len(values):
            raise self._root.fail(f"{what}: value {index} is outside 0 to {len(values) - 1}")
        return values[index]

    def _ports(self, values: list[Value], field: int, prefix: str) -> list[Port]:
        ports = []
        for position, index in enumerate(self._root.ints(field, "u32")):
            name = f"{prefix}{position}"
            value = self._entry(values, index, name)
            if isinstance(value, SymInt):
                raise UnsupportedOperator(
                    f"{self._name}: {name} (value {index}) is a symbolic integer; the delegate "
                    "takes and gives tensors only — pass it as an int tensor of one element"
                )
            if not isinstance(value, Tensor):
                raise self._root.fail(
                    f"{name} (value {index}) is {type(value).__name__}, not a tensor"
                )
            ports.append(Port(name, index))
        return ports

    def _value(self, table: Table) -> Value:
        kind, body = table.union(0, _VALUE_KINDS)
        if body is None or kind == 1:
            return Null()
        match kind:
            case 2:
                return Int(body.i64(0))
            case 3:
                return Double(body.f64(0))
            case 4:
                return Bool(body.flag(0))
            case 5:
                return self._tensor(body)
            case 6:
                return IntList(body.ints(0, "i64"))
            case 7:
                return DoubleList(body.doubles(0))
            case 8:
                return BoolList(body.bools(0))
            case 9:
                return ValueList(body.ints(0, "i32"))
            case 10:
                return String(body.text(0, "string_val"))
            case _:
                return SymInt(body.i32(0))

    def _tensor(self, table: Table) -> Tensor:
        code, dims = table.i8(0), table.ints(1, "u32")
        if code not in _DTYPES:
            raise table.fail(f"datatype {code}; {sorted(_DTYPES)} are defined")
        dtype, stored, itemsize = _DTYPES[code]
        if len(dims) > _MAX_RANK:
            raise table.fail(f"{len(dims)} dimensions, at most {_MAX_RANK}")
        nbytes = prod(dims) * itemsize
        if prod(max(dim, 1) for dim in dims) * itemsize > _MAX_BYTES:
            raise table.fail(f"tensor byte size overflows: {stored}{list(dims)}")
        spec = TensorSpec(dtype, dims)
        constant = table.i32(2)
        if constant < 0:
            return Tensor(spec)
        return Tensor(spec, self._constant(table, constant, spec, stored, nbytes))

    def _constant(
        self, table: Table, index: int, spec: TensorSpec, stored: str, nbytes: int
    ) -> int:
        """Index in the IR of stored constant `index`, seen as `spec`."""
        if index >= len(self._stored):
            raise table.fail(f"constant_id {index} is outside 0 to {len(self._stored) - 1}")
        seen = (index, stored, spec)
        if seen not in self._constant_of:
            span, key = self._locate(index, nbytes)
            self._constant_of[seen] = len(self._constants)
            self._constants.append(
                Constant(
                    spec,
                    source=span.source,
                    offset=span.offset,
                    nbytes=nbytes,
                    key=key,
                    dtype=stored,
                )
            )
        return self._constant_of[seen]

    def _locate(self, index: int, nbytes: int) -> tuple[Span, str | None]:
        """Where the first `nbytes` bytes of stored constant `index` are, and their key."""
        entry = self._stored[index]
        offset, key = entry.u64(0), entry.string(2)
        if offset != _NAMED:
            return self._region.part(offset, nbytes, f"{self._name}: inline constant {index}"), None
        if not key:
            raise entry.fail(f"constant {index} has no inline offset and no named-data key")
        if key not in self._named:
            raise FormatError(
                f"{self._name}: named constant {key!r} not found among {len(self._named)} — "
                "give the .ptd files that belong to the program"
            )
        span = self._named[key]
        if span.nbytes < nbytes:
            raise FormatError(
                f"{self._name}: named constant {key!r} is undersized: {span.nbytes} bytes, "
                f"its tensor needs {nbytes}"
            )
        # A larger one is fine: weights may be stored padded.
        return span, key
