"""Attention kernels for any operator: geometry, the choice of kernel, and the float64 route.

A stream is one key/value head of one batch entry; the query heads of its group and the tokens are
the stream's rows, so that a key is read once for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..graph.call import TensorRef
from ..graph.dims import ceil_div, dims8, strides8
from ..graph.kernel import Number
from ..graph.limits import Limits
from ..graph.lowering import Lowering, Operand

Route = Literal["tile", "split"]

TILE_WIDTH, TILE_ROWS, TILE_DIM, TILE_STORAGE = 128, 32, 256, 16384
TALL_DIM, TALL_STORAGE = 128, 24576
TILE_GROUPS, TILE_SPLITS = 1200, 8
"""Workgroups that keep a large GPU busy to the end, when the longest are still at it, and the most
stretches of the keys to get them (H200)."""
SPLIT_WIDTH, SPLIT_ROWS, SPLIT_KEYS = 64, 8, 64
SPLIT_GROUPS, SPLIT_GROUPS_CPU = 1024, 32
"""Workgroups that keep a large GPU busy, and an adapter on the CPU: there each of those that have
nothing to do takes 2 us (SwiftShader)."""
MERGE_WIDTH = 256
QUAD, QUAD_ROWS = 4, 4
MASKED = -1e30


@dataclass(frozen=True, slots=True)
class Geometry:
    """Where everything lies; strides in elements, `token` between tokens or keys of one head."""

    streams: int
    kv_heads: int
    heads: int
    tokens: int
    keys: int
    dim: int
    scale: float
    q_strides: tuple[int, int, int]
    kv_strides: tuple[int, int, int]
    causal: bool = True
    packed: bool = False
    window: int = 0
    softcap: float = 0.0

    @property
    def rows(self) -> int:
        """Query rows of a stream."""
        return self.tokens * self.heads


def route(g: Geometry, limits: Limits) -> Route:
    """Few rows split the keys among workgroups, many rows share each tile of keys."""
    fits = (
        limits.workgroup_width(TILE_WIDTH) == TILE_WIDTH
        and limits.max_compute_workgroup_storage_size >= TILE_STORAGE
        and g.dim <= TILE_DIM
    )
    return "tile" if fits and g.rows > TILE_ROWS and g.tokens > 4 else "split"


def split_sizes(g: Geometry, width: int, groups: int = SPLIT_GROUPS) -> tuple[int, int]:
    """Rows of a workgroup, and stretches the keys are split into; both from maximal sizes only.

    More than one token always takes blocks of the same height: a kernel for every live number of
    tokens would have to be compiled at its first run.
    """
    blocks = ceil_div(g.rows, SPLIT_ROWS)
    rows = ceil_div(g.rows, blocks) if g.tokens == 1 else SPLIT_ROWS
    if width < SPLIT_WIDTH:
        return rows, 1
    wanted = ceil_div(groups, g.streams * blocks)
    return rows, max(1, min(wanted, 128, ceil_div(g.keys, SPLIT_KEYS)))


def attend(
    out: Lowering,
    g: Geometry,
    q: Operand,
    k: TensorRef,
    v: TensorRef,
    y: TensorRef,
    position: int = 0,
    mask: TensorRef | None = None,
) -> None:
    """Dispatches of softmax(cap(q k^T * scale) + mask) v; `position` is token 0's live word."""
    lead = q.dims[:-2] if isinstance(q, TensorRef) else ()
    masks = (1,) * (len(lead) + 2 - mask.rank) + mask.dims if mask else (1,) * (len(lead) + 2)
    strides = strides8(masks)
    params: dict[str, Number] = {
        "streams": g.streams,
        "rows": g.rows,
        "heads": g.heads,
        "dim": g.dim,
        "keys": g.keys,
        "kv_heads": g.kv_heads,
        "window": g.window,
        "position": position,
        "scale": g.scale,
        "softcap": g.softcap,
        "q_batch": g.q_strides[0],
        "q_token": g.q_strides[1],
        "q_head": g.q_strides[2],
        "kv_batch": g.kv_strides[0],
        "kv_token": g.kv_strides[1],
        "kv_head": g.kv_strides[2],
        "mask_token": strides[6],
        "mask_key": strides[7],
        "mask_dims": dims8(lead),
        "mask_strides": [0, 0, *strides[:6]],
    }
    bind: dict[str, Operand] = {"q": q, "k": k, "v": v, "mask": mask, "y": y}
    loads: dict[str, float] = {
        "causal": g.causal,
        "whole": g.dim % 4 == 0,
        "packed": g.packed,
        "masked": mask is not None,
        "capped": g.softcap > 0,
    }
    # In quads, 128 tokens of 32 heads take 103 ms instead of 407 by tiles (SwiftShader).
    if route(g, out.limits) == "tile" and not _in_quads(g, out):
        _attend_tiles(out, g, bind, params, loads)
    else:
        _attend_split(out, g, bind, params, loads)


def _attend_tiles(
    out: Lowering,
    g: Geometry,
    bind: dict[str, Operand],
    params: dict[str, Number],
    loads: dict[str, float],
) -> None:
    """attention_tile, and attention_join where the keys are split among workgroups."""
    rows, splits = _tile_sizes(g, out)
    params["splits"] = splits
    groups = g.streams * ceil_div(g.rows, rows) * splits
    shape = {"columns": ceil_div(g.dim, 64), "even": g.dim % 32 == 0, "row_quads": rows // 4}
    partial = _partial(out, g, splits)
    chosen = {**loads, **shape, "direct": splits == 1}
    out.dispatch("attention_tile", bind | partial, params, groups, chosen)
    if splits == 1:
        return
    _join(out, g, partial, bind["y"], params, rows)


def _join(
    out: Lowering,
    g: Geometry,
    partial: dict[str, Operand],
    y: Operand,
    params: dict[str, Number],
    rows: int,
) -> None:
    """attention_join; `rows` is how many a workgroup took of those that left the parts."""
    width = out.width(16 if out.software else 64)
    out.dispatch(
        "attention_join",
        {"partial": partial["y"], "stats": partial["stats"], "y": y},
        params,
        ceil_div(g.streams * g.rows * ceil_div(g.dim, 4), width),
        {"causal": g.causal, "block_rows": rows, "wg_size": width},
    )


def _attend_split(
    out: Lowering,
    g: Geometry,
    bind: dict[str, Operand],
    params: dict[str, Number],
    loads: dict[str, float],
) -> None:
    """attention_decode or a form of attention_split, and what joins the stretches of the keys."""
    width = out.width(SPLIT_WIDTH)
    rows, splits = split_sizes(g, width, SPLIT_GROUPS_CPU if out.software else SPLIT_GROUPS)
    params["splits"] = splits
    partial = _partial(out, g, splits)
    if _in_quads(g, out):
        rows = QUAD_ROWS
        kernel = "attention_split_subgroup"
        chosen = {**loads, "direct": splits == 1, "wg_size": QUAD}
    elif splits > 1 and decodes(g, out.limits, bool(loads["masked"])) and not out.software:
        kernel = "attention_decode"
        chosen = {**loads, "heads": g.heads, "vectors": g.dim // 4}
    else:
        kernel = "attention_split"
        chosen = _split(g, rows, width, loads, splits == 1)
    groups = g.streams * ceil_div(g.rows, rows) * splits
    out.dispatch(kernel, bind | partial, params, groups, chosen)
    if splits == 1:
        return
    if out.software:
        # With attention_merge, which has barriers, a node of 32 heads takes 5.6 ms instead of 3.1
        # (SwiftShader, 128 keys).
        _join(out, g, partial, bind["y"], params, rows)
        return
    width = out.width(MERGE_WIDTH)
    out.dispatch(
        "attention_merge",
        {"partial": partial["y"], "stats": partial["stats"], "y": bind["y"]},
        params,
        g.streams * g.rows,
        {
            "causal": loads["causal"],
            "whole": loads["whole"],
            "block_rows": rows,
            "dim_lanes": min(_power_of_two(g.dim), width),
            "wg_size": width,
        },
    )


def _in_quads(g: Geometry, out: Lowering) -> bool:
    """Whether attention_split_subgroup takes it: registers and quads, for adapters on the CPU."""
    able = "subgroups" in out.features and out.width(QUAD) == QUAD
    return out.software and able and g.dim % (4 * QUAD) == 0


def _partial(out: Lowering, g: Geometry, splits: int) -> dict[str, Operand]:
    """Where stretches of the keys leave their part of the output, and what merges the parts."""
    if splits == 1:
        return {"stats": out.scratch(16)}
    parts = g.streams * g.rows * splits
    return {"y": out.scratch(4 * parts * g.dim), "stats": out.scratch(8 * parts)}


def _tall(g: Geometry, out: Lowering) -> bool:
    """Whether attention_tile takes 64 rows a workgroup, for which keys are read half as often."""
    room = out.limits.max_compute_workgroup_storage_size >= TALL_STORAGE
    return room and g.rows > TILE_ROWS and g.dim <= TALL_DIM and not out.software


def _tile_sizes(g: Geometry, out: Lowering) -> tuple[int, int]:
    """Rows of a workgroup of attention_tile, and stretches the keys are split into."""
    rows = TILE_ROWS * (2 if _tall(g, out) else 1)
    if out.software:
        return rows, 1
    wanted = TILE_GROUPS // (g.streams * ceil_div(g.rows, rows))
    room = out.limits.max_storage_buffer_binding_size // (4 * g.streams * g.rows * g.dim)
    return rows, max(1, min(wanted, TILE_SPLITS, ceil_div(g.keys, 2 * SPLIT_KEYS), room))


def decodes(g: Geometry, limits: Limits, masked: bool) -> bool:
    """Whether attention_decode takes it: one token, up to 8 heads, whole vectors of 2^n."""
    vectors = g.dim // 4
    storage = g.heads * (16 * vectors + 1536) + 512
    return (
        g.tokens == 1
        and g.heads <= SPLIT_ROWS
        and g.dim % 4 == 0
        and vectors in (2, 4, 8, 16, 32, 64)
        and not masked
        and g.causal
        and limits.workgroup_width(TILE_WIDTH) == TILE_WIDTH
        and storage <= limits.max_compute_workgroup_storage_size
    )


def _split(
    g: Geometry, block: int, width: int, loads: dict[str, float], direct: bool
) -> dict[str, float]:
    """Constants of attention_split."""
    return {
        **loads,
        "block_rows": block,
        "row_slots": min(_power_of_two(block), width),
        "dim_lanes": min(_power_of_two(ceil_div(g.dim, 4)), width),
        "direct": direct,
        "wg_size": width,
    }


def _power_of_two(n: int) -> int:
    return 1 << (n - 1).bit_length()


def attention(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    scale: float,
    bias: np.ndarray,
    softcap: float = 0.0,
) -> np.ndarray:
    """softmax(cap(q k^T * scale) + bias) v in float64 over the last two dims.

    cap(x) is softcap * tanh(x / softcap), or x without one. -inf in `bias` excludes a key; other
    scores are at least MASKED, as in the kernels. A row without keys is 0.
    """
    scores = np.matmul(q.astype(np.float64) * scale, np.swapaxes(k, -1, -2).astype(np.float64))
    if softcap:
        scores = softcap * np.tanh(scores / softcap)
    excluded = np.isneginf(bias)
    scores = np.where(excluded, -np.inf, np.maximum(scores + bias, MASKED))
    most = scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isneginf(most), 0, most))
    total = weights.sum(axis=-1, keepdims=True)
    found: np.ndarray = np.matmul(weights, v.astype(np.float64)) / np.where(total == 0, 1, total)
    return found


def unpacked(cache: np.ndarray, dim: int) -> np.ndarray:
    """A cache of float16 pairs in uint32 as float16, without the padding of an odd `dim`."""
    return np.ascontiguousarray(cache).view(np.float16)[..., :dim]


def cached_attention(
    q: np.ndarray,
    k_cache: np.ndarray,
    v_cache: np.ndarray,
    position: int,
    scale: float,
    window: int = 0,
    softcap: float = 0.0,
) -> np.ndarray:
    """Causal attention of q [B, S, Hq, D] at `position` over caches [B, C, Hkv, D], in float64."""
    batch, tokens, q_heads, dim = q.shape
    kv_heads = k_cache.shape[2]
    heads = q_heads // kv_heads
    end = position + tokens
    at, key = np.arange(position, end)[:, None], np.arange(end)
    hidden = (key > at) | ((key <= at - window) if window else np.zeros(1, bool))
    bias = np.repeat(np.where(hidden, -np.inf, 0.0), heads, axis=0)
    out = np.empty(q.shape, np.float64)
    for b in range(batch):
        for h in range(kv_heads):
            group = slice(h * heads, (h + 1) * heads)
            rows = q[b, :, group].reshape(tokens * heads, dim)
            keys, values = k_cache[b, :end, h], v_cache[b, :end, h]
            found = attention(rows, keys, values, scale, bias, softcap)
            out[b, :, group] = found.reshape(tokens, heads, dim)
    return out


def merged(dims: Sequence[int]) -> tuple[int, int, int, int]:
    """[.., S, H, D] as (batch, S, H, D)."""
    batch = 1
    for d in dims[:-3]:
        batch *= d
    return batch, dims[-3], dims[-2], dims[-1]
