"""Layer and group normalization: blocks of consecutive elements to mean 0 and variance 1."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ..graph.call import Call, TensorRef
from ..graph.lowering import Lowering, Operand
from ..graph.operator import Operator, operator
from ..graph.values import TensorSpec


def _affine(call: Call, count: int) -> tuple[TensorRef | None, TensorRef | None]:
    found = call.optional_tensor("weight", "float32"), call.optional_tensor("bias", "float32")
    for ref in found:
        call.check(
            ref is None or ref.numel == count,
            f"{ref.name if ref else ''} has {ref.numel if ref else 0} elements, must be {count}",
        )
    return found


def _dispatch(
    call: Call, out: Lowering, blocks: int, size: int, inner: int = 1, groups: int = 1
) -> None:
    weight, bias = call.optional_tensor("weight"), call.optional_tensor("bias")
    stats: list[Operand] = [
        call.out(i) if len(call.result_ids) > i else out.scratch(4 * blocks) for i in (1, 2)
    ]
    out.dispatch(
        "block_norm",
        {
            "x": call.tensor("x"),
            "weight": weight,
            "bias": bias,
            "y": call.out(0),
            "means": stats[0],
            "rstds": stats[1],
        },
        {
            "blocks": blocks,
            "size": size,
            "inner": inner,
            "groups": groups,
            "eps": call.float("eps"),
        },
        blocks,
        {
            "has_weight": weight is not None,
            "has_bias": bias is not None,
            "wg_size": out.width(256 if size > 512 else 64),
        },
    )


def _normalized(x: np.ndarray, eps: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of x [blocks, size] normalized, their means, and 1 / deviation."""
    wide = x.astype(np.float64)
    mean = wide.mean(axis=1, keepdims=True)
    rstd = 1 / np.sqrt(wide.var(axis=1, keepdims=True) + eps)
    return (wide - mean) * rstd, mean, rstd


@operator(
    "aten.native_layer_norm.default(x, normalized_shape, weight=None, bias=None, eps=1e-5)"
    " -> [out, mean, rstd]"
)
class LayerNorm(Operator):
    """(x - mean) / sqrt(variance + eps) * weight + bias over the last dims, biased variance.

    Shapes: x [.., *normalized_shape]; weight, bias of normalized_shape's elements, or None;
    mean and rstd [.., 1, ..]. float32. Errors: ShapeError, DtypeError.
    """

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        x, shape = call.tensor("x", "float32"), call.ints("normalized_shape")
        lead = x.rank - len(shape)
        call.check(
            0 < len(shape) <= x.rank and list(x.dims[lead:]) == shape,
            f"normalized_shape {shape} must be the last dims of x {list(x.dims)}",
        )
        _affine(call, prod(shape))
        stats = TensorSpec("float32", (*x.dims[:lead], *[1] * len(shape)))
        return [x.spec, stats, stats]

    def lower(self, call: Call, out: Lowering) -> None:
        size = prod(call.ints("normalized_shape"))
        _dispatch(call, out, call.tensor("x").numel // size, size)

    def reference(  # type: ignore[override]
        self,
        call: Call,
        x: np.ndarray,
        weight: np.ndarray | None = None,
        bias: np.ndarray | None = None,
    ) -> Sequence[np.ndarray]:
        size = prod(call.ints("normalized_shape"))
        y, mean, rstd = _normalized(x.reshape(-1, size), call.float("eps"))
        y = y * (1 if weight is None else weight.reshape(-1))
        return [y + (0 if bias is None else bias.reshape(-1)), mean, rstd]


@operator(
    "aten.native_group_norm.default"
    "(x, weight=None, bias=None, N, C, HxW, group, eps) -> [out, mean, rstd]"
)
class GroupNorm(Operator):
    """(x - mean) / sqrt(variance + eps) per group of channels, then * weight + bias per channel.

    Shapes: x [N, C, ..], C a multiple of group; weight, bias [C] or None; mean, rstd [N, group].
    float32, biased variance. Errors: ShapeError, DtypeError.
    """

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        x, group = call.tensor("x", "float32"), call.int("group")
        call.check(x.rank >= 2, f"x has rank {x.rank}, must be [N, C, ..]")
        channels = x.dims[1]
        call.check(
            group > 0 and channels % group == 0,
            f"{channels} channels do not divide into {group} groups",
        )
        _affine(call, channels)
        stats = TensorSpec("float32", (x.dims[0], group))
        return [x.spec, stats, stats]

    def lower(self, call: Call, out: Lowering) -> None:
        x, group = call.tensor("x"), call.int("group")
        blocks = x.dims[0] * group
        _dispatch(call, out, blocks, x.numel // blocks, prod(x.dims[2:]), group)

    def reference(  # type: ignore[override]
        self,
        call: Call,
        x: np.ndarray,
        weight: np.ndarray | None = None,
        bias: np.ndarray | None = None,
    ) -> Sequence[np.ndarray]:
        blocks = x.shape[0] * call.int("group")
        y, mean, rstd = _normalized(x.reshape(blocks, -1), call.float("eps"))
        per_channel = (1, -1, *[1] * (x.ndim - 2))
        y = y.reshape(x.shape) * (1 if weight is None else weight.reshape(per_channel))
        return [y + (0 if bias is None else bias.reshape(per_channel)), mean, rstd]
