"""Constants copied once into their buffers, and weights that lie one below the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ..errors import DtypeError
from ..graph.call import Call
from ..graph.memory import ARENA_ALIGN
from ..graph.operator import Operator, operator
from ..graph.values import TensorSpec


@operator("et_vk.prepack.default(constant) -> out")
class Prepack(Operator):
    """out = constant: an identity copy done once at build, before the first run.

    The planner uploads the constant straight into out's buffer; a constant that is also used
    directly, or prepacked twice, is stored once, unless one of the results is written in place.
    Errors: ShapeError when the argument is no constant, or dims or dtype differ.
    """

    alias: ClassVar[bool] = True
    once: ClassVar[bool] = True

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        x = call.tensor("constant")
        return [TensorSpec(x.dtype, x.dims)]

    def reference(self, call: Call, constant: np.ndarray) -> np.ndarray:  # type: ignore[override]
        return constant


@operator("webgpu_py.join_rows(parts) -> out")
class JoinRows(Operator):
    """The rows of several weights, one weight below the other, without a copy.

    The parts are constants or what is made of constants at build; the planner lets them lie in
    out's buffer from the start, where each can still be used by itself.
    Shapes: parts [N_i, ..] with equal further dims and one dtype, whose bytes are multiples of 256
    but for the last, as bindings begin at such; out [sum N_i, ..].
    Errors: ShapeError, DtypeError.
    """

    once: ClassVar[bool] = True
    joins: ClassVar[bool] = True

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        parts = [t for t in call.tensors("parts") if t is not None]
        call.check(len(parts) > 0, "no part is given, there must be one")
        first = parts[0]
        for t in parts:
            call.check(
                t.dtype == first.dtype, f"{t.name} is {t.dtype}, must be {first.dtype}", DtypeError
            )
            call.check(
                t.rank > 0 and t.dims[1:] == first.dims[1:],
                f"{t.name} is {list(t.dims)}, rows must be those of {list(first.dims)}",
            )
        for t in parts[:-1]:
            call.check(
                t.spec.nbytes % ARENA_ALIGN == 0,
                f"{t.name} has {t.spec.nbytes} bytes, must be a multiple of {ARENA_ALIGN}",
            )
        return [TensorSpec(first.dtype, (sum(t.dims[0] for t in parts), *first.dims[1:]))]

    def reference(self, call: Call, parts: list[np.ndarray]) -> np.ndarray:  # type: ignore[override]
        return np.concatenate(parts)
