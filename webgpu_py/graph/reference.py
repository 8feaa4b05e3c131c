"""A call's reference on given arrays: what the NumPy device runs, and what others are held to."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .call import Call
from .values import Tensor, ValueId


def run_reference(call: Call, array: Callable[[ValueId], np.ndarray]) -> None:
    """Compute a call on the arrays of its tensors by value id; results and mutations go into them.

    `call.env` has the live SymInts. UnsupportedOperator for a user's kernel without a reference.
    """
    if call.operator.signature.kind == "symint":
        return
    with np.errstate(all="ignore"):
        results = call.operator.reference(call, **call.map_tensors(array))
        if isinstance(results, (np.ndarray, np.generic)):
            results = [results]
        for i, result in zip(call.result_ids, results, strict=False):
            if isinstance(call.graph.values[i], Tensor):
                target = array(i)
                target[...] = np.asarray(result).reshape(target.shape)
