"""Key/value caches: writing rows at a live position, in place."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ..errors import DtypeError, IndexOutOfRange
from ..graph.call import Call, TensorRef
from ..graph.dims import ceil_div
from ..graph.lowering import Lowering
from ..graph.operator import Operator, operator
from ..graph.values import TensorSpec
from .attention import merged


def check_position(call: Call, tokens: int, capacity: int) -> None:
    """Rows input_pos .. input_pos + tokens - 1 lie in the cache."""
    position = call.int("input_pos")
    call.check(tokens <= capacity, f"{tokens} tokens, the cache has {capacity} rows")
    call.check(
        0 <= position <= capacity - tokens,
        f"input_pos={position} with {tokens} tokens, allowed are 0 to {capacity - tokens} "
        f"(the cache has {capacity} rows)",
        IndexOutOfRange,
    )


def append(
    out: Lowering,
    new: Sequence[TensorRef],
    caches: Sequence[TensorRef],
    position: int,
    placeholder: TensorRef | None = None,
) -> None:
    """Dispatch that writes k and v [.., S, H, D] into their caches at live word `position`.

    With one tensor and cache, `placeholder` is a result to fill with zeros.
    """
    batch, tokens, heads, dim = merged(new[0].dims)
    packed = caches[0].dtype == "uint32"
    words = batch * tokens * heads * (ceil_div(dim, 2) if packed else dim)
    zeros = placeholder.numel if placeholder else 0
    width = out.width(256)
    out.dispatch(
        "cache_append",
        {
            "k": new[0],
            "v": new[-1],
            "k_cache": caches[0],
            "v_cache": placeholder or caches[1],
        },
        {
            "words": words,
            "tensors": len(new),
            "zeros": zeros,
            "tokens": tokens,
            "heads": heads,
            "dim": dim,
            "capacity": merged(caches[0].dims)[1],
            "position": position,
        },
        ceil_div(words * len(new) + zeros, width),
        {"packed": packed, "wg_size": width},
    )


def append_reference(cache: np.ndarray, new: np.ndarray, position: int) -> None:
    """`append` on NumPy, in place; cache and new [.., S, H, D]."""
    rows = slice(position, position + new.shape[-3])
    if cache.dtype == np.uint32:
        dim = new.shape[-1]
        half = np.zeros((*new.shape[:-1], dim + dim % 2), np.float16)
        half[..., :dim] = np.clip(new, -65504, 65504)
        new = half.view(np.uint32)
    cache[..., rows, :, :] = new


@operator("update_cache.default(value, cache!, input_pos) -> out")
class UpdateCache(Operator):
    """cache[0, input_pos + s] = value[0, s], in place.

    Shapes: value [1, S, H, D], cache [1, C, H, D], float32. input_pos: Int or SymInt. The result
    is a placeholder, zeros of its declared shape ([1] in exported programs).
    Errors: ShapeError, DtypeError, IndexOutOfRange (input_pos, rows past the end). Batches and
    float16 are refused as in the reference: what exports of them return is not the cache.
    """

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        value, cache = call.tensor("value", "float32"), call.tensor("cache", "float32")
        call.check(
            value.rank >= 4 and value.rank == cache.rank,
            f"value {list(value.dims)} and cache {list(cache.dims)} must have one rank, at least 4",
        )
        a, b = value.dims, cache.dims
        call.check(
            a[:-3] == b[:-3] and a[-2:] == b[-2:],
            f"value {list(a)} and cache {list(b)} may differ in the rows (dim -3) only",
        )
        call.check(prod(a[:-3]) == 1, f"value {list(a)}: leading dims must be 1, one batch entry")
        for x in (value, cache):
            host = call.env.host.get(x.id)
            call.check(
                host is None or host.dtype == np.float32,
                f"{x.name} is {host.dtype if host is not None else ''}, must be float32",
                DtypeError,
            )
        check_position(call, a[-3], b[-3])
        return [call.declared() or TensorSpec("float32", (1,))]

    def lower(self, call: Call, out: Lowering) -> None:
        position = out.live("input_pos")
        append(out, [call.tensor("value")], [call.tensor("cache")], position, call.out())

    def reference(  # type: ignore[override]
        self, call: Call, value: np.ndarray, cache: np.ndarray
    ) -> np.ndarray:
        append_reference(cache, value, call.int("input_pos"))
        return np.zeros(call.out().dims)
