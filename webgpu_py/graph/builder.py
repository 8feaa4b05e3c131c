"""Graphs by hand: `g = Graph(); x = g.input(...); y = g.call(name, ...); g.output("y", y)`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DtypeError, ShapeError, UnsupportedOperator
from .call import Call, Env
from .operator import find_operator, operator_index
from .session import Session
from .shapes import add_maximal, infer_into
from .values import (
    Bool,
    BoolList,
    Constant,
    Dim,
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
    ValueId,
    ValueList,
    itemsize,
)

if TYPE_CHECKING:
    from ..device import Device
    from .helpers import Helpers
else:
    Helpers = object  # a stub only: `Graph.__getattr__` finds them


def dim(name: str, *, max: int) -> Dim:
    """A live dimension of an input: any size from 1 to `max`, equal wherever the name is equal."""
    if max < 1:
        raise ShapeError(f"dim {name!r}: max={max}, must be at least 1")
    return Dim(name, max)


@dataclass(frozen=True, slots=True)
class Var:
    """A value of a graph under construction: tensor or SymInt."""

    graph: Graph
    id: ValueId

    @property
    def shape(self) -> tuple[int, ...]:
        """Maximal dims; () for a SymInt."""
        value = self.graph.ir.values[self.id]
        return value.spec.dims if isinstance(value, Tensor) else ()

    @property
    def dtype(self) -> str:
        """Element type on the device; `symint` for a symbolic integer."""
        value = self.graph.ir.values[self.id]
        return value.spec.dtype if isinstance(value, Tensor) else "symint"

    def __repr__(self) -> str:
        """Id, dtype and maximal dims."""
        return f"<Var {self.id} {self.dtype} {list(self.shape)}>"


class NoHelper(UnsupportedOperator, AttributeError):
    """Both, so that `hasattr` and what asks by it (notebooks do) take a graph for what it is."""


class Graph(Helpers):
    """Builds the IR; shapes and dtypes are checked at each call, in the caller's own frame."""

    def __init__(self) -> None:
        self.ir = GraphIR()
        self._seen = Env(maximal=True)
        self._seen_values = self._seen_nodes = 0

    # -- values

    def _add(self, value: Value) -> ValueId:
        self.ir.values.append(value)
        return len(self.ir.values) - 1

    def input(self, name: str, shape: Sequence[int | Dim], dtype: str = "float32") -> Var:
        """An input tensor; a `dim(...)` in the shape may change from run to run."""
        self._fresh(name, self.ir.inputs)
        dims = tuple(d.max if isinstance(d, Dim) else int(d) for d in shape)
        if any(d < 1 for d in dims):
            raise ShapeError(f"input {name!r} has shape {list(dims)}; every dim must be positive")
        itemsize(dtype)
        i = self._add(Tensor(TensorSpec(dtype, dims)))
        self.ir.inputs.append(Port(name, i, tuple(shape)))
        return Var(self, i)

    def symint(self, name: str, initial: int = 0) -> Var:
        """An input integer (a position, a length) that kernels and shapes read live."""
        self._fresh(name, self.ir.inputs)
        i = self._add(SymInt(initial))
        self.ir.inputs.append(Port(name, i))
        return Var(self, i)

    def constant(self, data: Any, key: str | None = None) -> Var:
        """A constant: an array, or a `Constant` whose bytes stay in their source.

        Float64, float16 and int64 arrays become float32 and int32 on the device. Constants with
        equal `key` are stored once.
        """
        if not isinstance(data, Constant):
            array = np.asarray(data)
            if array.dtype in (np.float64, np.float16):
                array = array.astype(np.float32)
            elif array.dtype == np.int64:
                array = _narrowed(array)
            spec = TensorSpec(str(array.dtype), array.shape)
            itemsize(spec.dtype)
            data = Constant(spec, np.ascontiguousarray(array), key=key)
        self.ir.constants.append(data)
        return Var(self, self._add(Tensor(data.spec, len(self.ir.constants) - 1)))

    def output(self, name: str, value: Var) -> None:
        """Name a tensor as an output; the order of calls is the order of outputs."""
        self._fresh(name, self.ir.outputs)
        if not isinstance(value, Var) or value.graph is not self or value.dtype == "symint":
            raise ShapeError(f"output {name!r}: {value!r} is no tensor of this graph")
        self.ir.outputs.append(Port(name, value.id))

    def _fresh(self, name: str, ports: list[Port]) -> None:
        if not name.isidentifier():
            raise ShapeError(f"port name {name!r} must be a Python identifier")
        if any(p.name == name for p in ports):
            raise ShapeError(f"there is a port {name!r} already; names must be distinct")

    # -- calls

    def call(self, name: str, *args: Any) -> Any:
        """Append an operator call; a Var, a tuple of Vars for several results.

        Arguments come in ExecuTorch's order: Vars, numbers, strings, None, lists. Raises what the
        operator's checks raise, before the graph is changed.
        """
        op = find_operator(name)
        most = len(op.signature.arguments)
        if len(args) > most:
            raise ShapeError(f"{name} takes at most {most} arguments, got {len(args)}")
        values, nodes = len(self.ir.values), len(self.ir.nodes)
        try:
            ids = tuple(self._argument(name, a) for a in args)
            return self._append(Call(op, Node(name, ids), nodes, self.ir, self._env(), False))
        except Exception:
            for i in range(values, len(self.ir.values)):
                self._seen.dims.pop(i, None)
                self._seen.symints.pop(i, None)
            self._seen_values = min(self._seen_values, values)
            del self.ir.values[values:]
            del self.ir.nodes[nodes:]
            raise

    def _env(self) -> Env:
        """Maximal dims and initial SymInts; only what is new since the last call is looked at."""
        add_maximal(self._seen, self.ir, self._seen_values)
        for index in range(self._seen_nodes, len(self.ir.nodes)):
            node = self.ir.nodes[index]
            op = find_operator(node.op)
            if op.signature.kind == "symint":
                infer_into(Call(op, node, index, self.ir, self._seen))
        self._seen_values, self._seen_nodes = len(self.ir.values), len(self.ir.nodes)
        return self._seen

    def _append(self, call: Call) -> Any:
        signature = call.operator.signature
        if signature.kind == "symint":
            call.operator.evaluate(call)
            results = [self._add(SymInt())]
        else:
            specs = call.operator.infer(call)
            results = [self._add(Tensor(s)) for s in specs]
        last = self._add(ValueList(tuple(results))) if signature.kind == "list" else results[0]
        self.ir.nodes.append(Node(call.name, (*call.node.args, last)))
        found = tuple(Var(self, i) for i in results)
        return found if signature.kind == "list" else found[0]

    def _argument(self, op: str, value: Any) -> ValueId:
        if isinstance(value, Var):
            if value.graph is not self:
                raise ShapeError(f"{op}: {value!r} belongs to another graph")
            return value.id
        return self._add(self._literal(op, value))

    def _literal(self, op: str, value: Any) -> Value:
        if value is None:
            return Null()
        if isinstance(value, (bool, np.bool_)):
            return Bool(bool(value))
        if isinstance(value, (int, np.integer)):
            return Int(int(value))
        if isinstance(value, (float, np.floating)):
            return Double(float(value))
        if isinstance(value, str):
            return String(value)
        if isinstance(value, (list, tuple)):
            return self._list(op, value)
        raise DtypeError(
            f"{op}: an argument is a {type(value).__name__}; pass graph values, numbers, strings, "
            "None or lists of them (arrays through g.constant)"
        )

    def _list(self, op: str, value: Sequence[Any]) -> Value:
        if any(v is None or isinstance(v, Var) for v in value):
            return ValueList(tuple(self._argument(op, v) for v in value))
        if value and all(isinstance(v, bool) for v in value):
            return BoolList(tuple(value))
        if all(isinstance(v, (int, np.integer)) for v in value):
            return IntList(tuple(int(v) for v in value))
        return DoubleList(tuple(float(v) for v in value))

    def __getattr__(self, helper: str) -> Callable[..., Any]:
        """`g.embedding_q4gsw(...)` is `g.call("et_vk.embedding_q4gsw.default", ...)`."""
        if helper.startswith("_") or helper == "ir":
            raise AttributeError(helper)
        names = helper_names()
        if helper not in names:
            raise NoHelper(
                f"Graph has no helper {helper!r}; call g.call(name, ...) with a name from "
                "webgpu_py.operator_names()"
            )
        return lambda *args: self.call(names[helper], *args)

    def _repr_svg_(self) -> str:
        """A notebook draws the graph as it is so far."""
        from .drawing import graph_svg
        from .picture import graph_picture

        return graph_svg(graph_picture(self.ir))

    # -- running

    async def build(self, device: Device, limits: Mapping[str, int] | None = None) -> Session:
        """A session on `device`; `limits` are injected upper bounds, for tests."""
        if not self.ir.outputs:
            raise ShapeError("the graph has no output; name one with g.output(name, value)")
        return await Session.build(device, self.ir, limits)


def helper_names() -> dict[str, str]:
    """Helper name -> operator name: the bare name, with the overload where bare names collide.

    Bare `add`, `sub`, `mul`, `floordiv` are the symbolic-integer operators' own names in
    ExecuTorch; the helpers of those names are the tensor operators, `sym_add` ... the symbolic.
    """
    stems: dict[str, list[str]] = {}
    for name in sorted(operator_index()):
        parts = name.split(".")
        if len(parts) == 1:
            stems.setdefault(f"sym_{name}", []).append(name)
            continue
        own = parts[0] == "webgpu_py"
        stem = parts[1] if own or len(parts) > 2 else parts[0]
        stems.setdefault(stem.lstrip("_"), []).append(name)
    found: dict[str, str] = {}
    for stem, names in stems.items():
        if len(names) == 1:
            found[stem] = names[0]
        for name in names if len(names) > 1 else []:
            found[f"{stem}_{name.rsplit('.', 1)[-1].lower()}"] = name
    return found


def _narrowed(array: np.ndarray) -> np.ndarray:
    narrow = array.astype(np.int32)
    if not np.array_equal(narrow, array):
        raise DtypeError("an int64 constant does not fit int32 (-2147483648 to 2147483647)")
    return narrow
