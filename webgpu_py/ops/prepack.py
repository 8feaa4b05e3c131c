"""Constants copied once into their buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from ..graph.call import Call
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
