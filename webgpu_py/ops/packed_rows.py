"""Rows of packed weights by index: what every embedding operator shares."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from ..errors import IndexOutOfRange
from ..graph.call import Call, TensorRef
from ..graph.dims import ceil_div
from ..graph.lowering import Lowering
from .packed import PackedMatrix


def check_indices(call: Call, indices: TensorRef, rows: int) -> None:
    """Rank, and the values too where the host knows them."""
    call.check(indices.rank >= 1, "indices has rank 0, must be at least 1")
    host = call.env.host.get(indices.id)
    if host is not None:
        check_range(call, host, rows)


def check_range(call: Call, indices: np.ndarray, rows: int) -> None:
    """IndexOutOfRange that names the first bad index and its position."""
    flat = indices.reshape(-1)
    bad = (flat < 0) | (flat >= rows)
    if bad.any():
        at = int(bad.argmax())
        raise call.error(
            IndexOutOfRange,
            f"index {int(flat[at])} at position {at} is out of range, allowed are 0 to {rows - 1}",
        )


def take_rows(call: Call, table: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Rows of a table for the reference; IndexOutOfRange where the device would raise it."""
    check_range(call, indices, len(table))
    rows: np.ndarray = table[indices]
    return rows


def lower_embedding(out: Lowering, weight: PackedMatrix, indices: TensorRef, y: TensorRef) -> None:
    """Dispatch y[..., :] = weight[indices[...], :], in as many parts as the binding limit asks."""
    limits = out.limits
    fours = (
        weight.k % 4 == 0
        and weight.row_bytes % 2 == 0
        and (weight.scale_kind == "none" or weight.span % 4 == 0)
    )
    kernel = "packed_embedding" if fours else "packed_embedding_any"
    params, grid, constants = (_in_fours if fours else _in_elements)(out, weight, indices.numel)
    for part in weight.parts(limits.max_storage_buffer_binding_size):
        out.dispatch(
            kernel,
            {"indices": indices, "codes": part.codes, "scales": part.scales, "y": y},
            {
                "count": indices.numel,
                "rows": weight.n,
                "first": part.first,
                "here": part.count,
                **params,
                **part.params(weight),
            },
            grid,
            {**weight.constants(), **constants},
            fours and out.bakes(indices.numel),
        )


_Layout: TypeAlias = tuple[dict[str, int], int | tuple[int, int, int], dict[str, float]]
"""Params, grid and constants that are a kernel's own."""


def _in_fours(out: Lowering, weight: PackedMatrix, count: int) -> _Layout:
    fours = weight.k // 4
    # One row has an invocation for each vec4: 2.6 us instead of 2.9 (H200, with its params baked).
    single = out.bakes(count)
    lanes, width = fours if single else ceil_div(fours, 4), out.width(128)
    if out.software:
        # An invocation costs an adapter on the CPU more than another turn of its loop: 64 a
        # workgroup, of 4 turns each, take 1.7 times as long (SwiftShader, rows of 576).
        lanes, width = min(lanes, 4), out.width(4)
    constants: dict[str, float] = {"wg_size": width, "single": single}
    constants |= {"turns": 4 * lanes < fours, "quarters": fours % 4 == 0}
    return {"fours": fours, "lanes": lanes}, ceil_div(count * lanes, width), constants


def _in_elements(out: Lowering, weight: PackedMatrix, count: int) -> _Layout:
    limits = out.limits
    width = out.width(4 if out.software else min(64, 1 << (weight.k - 1).bit_length()))
    most = 1 if out.software else limits.max_compute_workgroups_per_dimension
    across = min(ceil_div(weight.k, width), most)
    grid = (across, *limits.fold(count, "packed_embedding_any"))
    return {"width": weight.k}, grid, {"wg_size": width}
