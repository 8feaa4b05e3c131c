"""Symbolic integers: evaluated on the host, in chain order, before anything reaches the device."""

from __future__ import annotations

from ..errors import DtypeError, IndexOutOfRange, ShapeError, UnsupportedOperator
from ..graph.call import Call
from ..graph.dims import normal_dim
from ..graph.operator import Operator, operator
from ..graph.values import SymInt

INT32_MIN = -(1 << 31)


@operator("sym_size.int(x, dim) -> symint out")
class SymSize(Operator):
    """out = the live size of dimension `dim` of x, of an intermediate tensor too.

    Errors: ShapeError (dim out of range), UnsupportedOperator (x no tensor, dim no integer).
    """

    def evaluate(self, call: Call) -> int:
        x = call.tensor("x")
        call.check(x.rank > 0, "x is a scalar, it has no dimensions")
        return x.dims[normal_dim(call, call.int("dim"), x.rank)]


@operator("et_vk.select_as_symint.default(x, dim, index) -> symint out")
class SelectAsSymInt(Operator):
    """out = x[0, .., index, .., 0] at dimension `dim`, read from the host's array at each run.

    x: a graph input of integers, any rank but 0; negative dim and index count from the end of
    the live dims. Before the first run the value is the SymInt's initial one.
    Errors: UnsupportedOperator (x no graph input), ShapeError (dim, empty x), DtypeError,
    IndexOutOfRange (index outside the dimension, value outside int32).
    """

    def evaluate(self, call: Call) -> int:
        x = call.tensor("x")
        call.check(
            any(port.value == x.id for port in call.graph.inputs),
            "x is no graph input, only those can be read on the host",
            UnsupportedOperator,
        )
        call.check(x.rank > 0, "x is a scalar, it has no dimensions")
        dim = normal_dim(call, call.int("dim"), x.rank)
        host = call.env.host.get(x.id)
        dims = x.dims if host is None else host.shape
        call.check(0 not in dims, f"x is empty: {list(dims)}")
        index, size = call.int("index"), dims[dim]
        call.check(
            -size <= index < size,
            f"index={index} in dim {dim} of {list(dims)}, allowed are {-size} to {size - 1}",
            IndexOutOfRange,
        )
        if host is None:
            return self._initial(call)
        call.check(
            host.dtype.kind in "iu", f"x is {host.dtype}, must be int32 or int64", DtypeError
        )
        at = [0] * len(dims)
        at[dim] = index % size
        value = int(host[tuple(at)])
        call.check(
            INT32_MIN <= value < -INT32_MIN,
            f"value {value} at position {at} does not fit int32 (-2147483648 to 2147483647)",
            IndexOutOfRange,
        )
        return value

    def _initial(self, call: Call) -> int:
        if not call.result_ids:
            return 0
        result = call.graph.values[call.result_ids[0]]
        return result.initial if isinstance(result, SymInt) else 0


@operator(
    "add(a, b) -> symint out",
    "sub(a, b) -> symint out",
    "mul(a, b) -> symint out",
    "floordiv(a, b) -> symint out",
)
class Arithmetic(Operator):
    """a + b, a - b, a * b, floor(a / b) in int32, which wraps; a and b are Int or SymInt.

    Errors: ShapeError (division by zero, INT32_MIN / -1), UnsupportedOperator (other kinds).
    """

    def evaluate(self, call: Call) -> int:
        a, b = _wrapped(call.int("a")), _wrapped(call.int("b"))
        if self.name == "add":
            return _wrapped(a + b)
        if self.name == "sub":
            return _wrapped(a - b)
        if self.name == "mul":
            return _wrapped(a * b)
        if b == 0:
            raise call.error(ShapeError, f"{a} // 0: the divisor must not be 0")
        if (a, b) == (INT32_MIN, -1):
            raise call.error(ShapeError, f"{a} // {b} does not fit int32")
        return a // b


def _wrapped(value: int) -> int:
    return (value - INT32_MIN & 0xFFFFFFFF) + INT32_MIN
