"""Cross entropy with its gradient."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

import numpy as np

from ..errors import IndexOutOfRange, UnsupportedOperator
from ..graph.call import Call
from ..graph.lowering import Lowering
from ..graph.operator import Operator, operator
from ..graph.values import TensorSpec


@operator("et_vk.fused_ce.default(logits, labels, n_valid) -> [loss, dlogits]")
class FusedCrossEntropy(Operator):
    """loss = sum over rows of (logsumexp(logits) - logits[label]) / n_valid, and its gradient.

    dlogits = (softmax(logits) - onehot(label)) / n_valid; rows with a negative label count as 0.
    Shapes: logits float32 [..., V], labels int32 [...]; loss [], dlogits as logits; the number of
    rows may be live.
    Errors: ShapeError, DtypeError, UnsupportedOperator (n_valid), IndexOutOfRange (a label >= V).
    """

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        logits, labels = call.tensor("logits", "float32"), call.tensor("labels", "int32")
        call.check(
            logits.rank >= 1 and labels.dims == logits.dims[:-1],
            f"logits {list(logits.dims)} and labels {list(labels.dims)}, must be [..., V] and "
            "[...]",
        )
        n_valid = call.float("n_valid")
        call.check(
            isfinite(n_valid) and n_valid > 0,
            f"n_valid={n_valid}, must be positive",
            UnsupportedOperator,
        )
        host = call.env.host.get(labels.id)
        if host is not None:
            check_labels(call, host, logits.dims[-1])
        return [TensorSpec("float32", ()), TensorSpec("float32", logits.dims)]

    def lower(self, call: Call, out: Lowering) -> None:
        logits, labels = call.tensor("logits"), call.tensor("labels")
        classes = logits.dims[-1]
        losses = out.scratch(4 * labels.numel)
        width = out.width(256)
        out.dispatch(
            "fused_ce",
            {"logits": logits, "labels": labels, "losses": losses, "dlogits": call.out(1)},
            {"rows": labels.numel, "classes": classes, "n_valid": call.float("n_valid")},
            labels.numel,
            {"wg_size": width},
        )
        out.dispatch(
            "sum_all",
            {"x": losses, "y": call.out()},
            {"numel": labels.numel},
            1,
            {"wg_size": width},
        )

    def reference(self, call: Call, logits: np.ndarray, labels: np.ndarray) -> Any:  # type: ignore[override]
        classes = logits.shape[-1]
        rows, flat = logits.reshape(-1, classes).astype(np.float64), labels.reshape(-1)
        check_labels(call, flat, classes)
        kept = np.flatnonzero(flat >= 0)
        shifted = rows - rows.max(1, keepdims=True)
        total = np.exp(shifted).sum(1, keepdims=True)
        slopes = np.exp(shifted) / total
        slopes[kept, flat[kept]] -= 1
        slopes[flat < 0] = 0
        losses = np.log(total[kept, 0]) - shifted[kept, flat[kept]]
        n_valid = call.float("n_valid")
        return [losses.sum() / n_valid, slopes / n_valid]


def check_labels(call: Call, labels: np.ndarray, classes: int) -> None:
    """IndexOutOfRange for a label that names no class."""
    bad = np.flatnonzero(labels >= classes)
    if len(bad):
        raise call.error(
            IndexOutOfRange,
            f"index {int(labels.flat[bad[0]])} at position {int(bad[0])} is out of range, "
            f"allowed are below {classes}",
        )
