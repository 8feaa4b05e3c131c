"""Matrix products in float32."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod
from typing import Any

import numpy as np

from ..graph.call import Call, TensorRef
from ..graph.dims import ceil_div, strides_of
from ..graph.lowering import Lowering, Operand, Slice
from ..graph.operator import Operator, operator
from ..graph.values import TensorSpec

FEW_ROWS = 8
"""With at most so many rows (or columns), lanes share the depth rather than a tile."""

FULL_GRID = 128
"""Tiles that keep a large device busy; fewer ask for smaller tiles."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """A tensor read as a batch of matrices: strides, in elements, of the outer index and of k."""

    tensor: Operand
    outer: int
    k: int
    batch: int = 0


@dataclass(frozen=True, slots=True)
class Product:
    """y = alpha * a . b + beta * c over `batch` matrices; c and y have (row, column) strides."""

    a: Matrix
    b: Matrix
    y: TensorRef
    rows: int
    cols: int
    depth: int
    batch: int = 1
    y_strides: tuple[int, int] = (0, 1)
    y_batch: int = 0
    c: TensorRef | None = None
    c_strides: tuple[int, int] = (0, 0)
    alpha: float = 1.0
    beta: float = 0.0
    col_offset: int = 0

    def flipped(self) -> Product:
        """The same product as y' = b' . a'."""
        return Product(
            self.b,
            self.a,
            self.y,
            self.cols,
            self.rows,
            self.depth,
            self.batch,
            self.y_strides[::-1],
            self.y_batch,
            self.c,
            self.c_strides[::-1],
            self.alpha,
            self.beta,
        )


@dataclass(frozen=True, slots=True)
class Tiling:
    """How a product is cut: a family's kernel, its constants, and how many workgroups."""

    kernel: str
    constants: dict[str, float]
    groups: int


def tiling(out: Lowering, tile: str, block: str, rows: int, cols: int, batch: int = 1) -> Tiling:
    """Kernel `tile` with workgroup memory, or `block` without where that costs more than it saves.

    The edge is 64 results, or less for few tiles, small devices and ones that run on the CPU.
    """

    def groups(side: int) -> int:
        return ceil_div(rows, 4 * side) * ceil_div(cols, 4 * side) * batch

    widest = 16
    while widest * widest > out.width(256):
        widest //= 2
    side = min(widest, 4 if out.software else 16 if groups(16) >= FULL_GRID else 8)
    while side < widest and groups(side) > out.limits.max_compute_workgroups_per_dimension**2:
        side *= 2
    kernel = block if out.software else tile
    return Tiling(kernel, {"wg_size": side * side, "side": side}, groups(side))


def multiply(out: Lowering, p: Product) -> None:
    """Dispatch a product: lanes along the depth for few rows or columns, else tiles."""
    if p.cols < p.rows and p.cols <= FEW_ROWS and p.col_offset == 0:
        p = p.flipped()
    width = out.width(256 if p.depth >= 1024 else 64)
    # Neighbouring lanes read neighbouring memory: along k, or across up to 32 columns.
    columns = 1 if p.b.k == 1 else min(width, 32, 1 << (p.cols - 1).bit_length())
    params: dict[str, int | float] = {
        "rows": p.rows,
        "cols": p.cols,
        "depth": p.depth,
        "batch": p.batch,
        "a_row": p.a.outer,
        "a_k": p.a.k,
        "a_batch": p.a.batch,
        "b_col": p.b.outer,
        "b_k": p.b.k,
        "b_batch": p.b.batch,
        "c_row": p.c_strides[0],
        "c_col": p.c_strides[1],
        "y_row": p.y_strides[0],
        "y_col": p.y_strides[1],
        "y_batch": p.y_batch,
        "col_offset": p.col_offset,
        "along_k": int(p.a.k == 1) + 2 * int(p.b.k == 1),
        "columns": columns,
        "alpha": p.alpha,
        "beta": p.beta if p.c is not None else 0.0,
    }
    bind: dict[str, Operand] = {"a": p.a.tensor, "b": p.b.tensor, "c": p.c, "y": p.y}
    if p.rows <= FEW_ROWS and not out.software:
        groups = ceil_div(p.cols, columns) * ceil_div(p.rows, 4) * p.batch
        out.dispatch("gemv", bind, params, groups, {"wg_size": width})
        return
    cut = tiling(out, "matmul", "matmul_block", p.rows, p.cols, p.batch)
    out.dispatch(cut.kernel, bind, params, cut.groups, cut.constants)


@operator("aten.mm.default(a, b) -> out", "aten.bmm.default(a, b) -> out")
class MatMul(Operator):
    """mm: out[m, n] = sum_k a[m, k] * b[k, n]; bmm: the same for every batch.

    Shapes: mm [M, K] x [K, N]; bmm [B, M, K] x [B, K, N]. float32, all dims may be live.
    Errors: ShapeError (ranks, inner dims, batches), DtypeError.
    """

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        a, b = call.tensor("a", "float32"), call.tensor("b", "float32")
        rank = 3 if self.name == "aten.bmm.default" else 2
        fits = a.rank == b.rank == rank and a.dims[-1] == b.dims[-2] and a.dims[:-2] == b.dims[:-2]
        batch = "B, " if rank == 3 else ""
        call.check(
            fits,
            f"a {list(a.dims)} and b {list(b.dims)}, must be [{batch}M, K] and [{batch}K, N]",
        )
        return [TensorSpec("float32", (*a.dims[:-1], b.dims[-1]))]

    def lower(self, call: Call, out: Lowering) -> None:
        a, b, y = call.tensor("a"), call.tensor("b"), call.out()
        (rows, depth), cols = a.dims[-2:], b.dims[-1]
        product = Product(
            Matrix(a, depth, 1, rows * depth),
            Matrix(b, 1, cols, depth * cols),
            y,
            rows,
            cols,
            depth,
            prod(a.dims[:-2]),
            y_strides=(cols, 1),
            y_batch=rows * cols,
        )
        multiply(out, product)

    def reference(self, call: Call, a: np.ndarray, b: np.ndarray) -> Any:  # type: ignore[override]
        return np.matmul(a.astype(np.float64), b.astype(np.float64))


@operator("aten.linear.default(x, weight, bias=None) -> out")
class Linear(Operator):
    """out[..., n] = bias[n] + sum_k x[..., k] * weight[n, k].

    Shapes: x [..., K] of rank 1 or more, weight [N, K], bias [N] or None. float32.
    A weight beyond the device's binding limit is read in slices of whole rows.
    Errors: ShapeError (ranks, K, bias), DtypeError.
    """

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        x, weight = call.tensor("x", "float32"), call.tensor("weight", "float32")
        call.check(
            x.rank >= 1 and weight.rank == 2 and x.dims[-1] == weight.dims[1],
            f"x {list(x.dims)} and weight {list(weight.dims)}, must be [..., K] and [N, K]",
        )
        bias = call.optional_tensor("bias", "float32")
        call.check(
            bias is None or bias.dims == weight.dims[:1],
            f"bias {list(bias.dims) if bias else []}, must be [{weight.dims[0]}]",
        )
        return [TensorSpec("float32", (*x.dims[:-1], weight.dims[0]))]

    def lower(self, call: Call, out: Lowering) -> None:
        x, weight, y = call.tensor("x"), call.tensor("weight"), call.out()
        bias = call.optional_tensor("bias")
        cols, depth = weight.dims
        step = self._columns_at_once(weight, out.limits.max_storage_buffer_binding_size)
        for first in range(0, cols, step):
            count = min(step, cols - first)
            part: Operand = weight
            if step < cols:
                part = Slice(weight, 4 * first * depth, 4 * count * depth)
            product = Product(
                Matrix(x, depth, 1),
                Matrix(part, depth, 1),
                y,
                x.numel // depth,
                count,
                depth,
                y_strides=(cols, 1),
                c=bias,
                c_strides=(0, 1),
                beta=1.0,
                col_offset=first,
            )
            multiply(out, product)

    @staticmethod
    def _columns_at_once(weight: TensorRef, limit: int) -> int:
        """Rows of the weight in one binding: all, or as many as start on 256-byte boundaries."""
        rows, depth = weight.max_spec.dims
        unit = 64 // gcd(depth, 64)
        most = limit // 16 * 4 // depth // unit * unit
        return rows if weight.max_spec.nbytes <= limit or most == 0 else most

    def reference(  # type: ignore[override]
        self, call: Call, x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None
    ) -> Any:
        y = np.einsum(
            "...k,nk->...n", x.astype(np.float64), weight.astype(np.float64), optimize=True
        )
        return y if bias is None else y + bias


@operator("aten.addmm.default(input, mat1, mat2, beta=1, alpha=1) -> out")
class AddMM(Operator):
    """out = beta * input + alpha * mat1 . mat2; with beta 0 the input is not read.

    Shapes: mat1 [M, K], mat2 [K, N], input broadcasts to [M, N]. float32, all dims may be live.
    Errors: ShapeError (ranks, inner dims, no broadcast), DtypeError.
    """

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        c = call.tensor("input", "float32")
        a, b = call.tensor("mat1", "float32"), call.tensor("mat2", "float32")
        call.float("alpha"), call.float("beta")
        call.check(
            a.rank == b.rank == 2 and a.dims[1] == b.dims[0],
            f"mat1 {list(a.dims)} and mat2 {list(b.dims)}, must be [M, K] and [K, N]",
        )
        dims = (a.dims[0], b.dims[1])
        call.check(
            c.rank <= 2
            and all(i in (1, j) for i, j in zip(c.dims[::-1], dims[::-1], strict=False)),
            f"input {list(c.dims)} does not broadcast to {list(dims)}",
        )
        return [TensorSpec("float32", dims)]

    def lower(self, call: Call, out: Lowering) -> None:
        c, a, b, y = call.tensor("input"), call.tensor("mat1"), call.tensor("mat2"), call.out()
        (rows, depth), cols = a.dims, b.dims[1]
        dims = (1,) * (2 - c.rank) + c.dims
        steps = [0 if d == 1 else s for d, s in zip(dims, strides_of(dims), strict=True)]
        beta = call.float("beta")
        product = Product(
            Matrix(a, depth, 1),
            Matrix(b, 1, cols),
            y,
            rows,
            cols,
            depth,
            y_strides=(cols, 1),
            c=c if beta else None,
            c_strides=(steps[0], steps[1]),
            alpha=call.float("alpha"),
            beta=beta,
        )
        multiply(out, product)

    def reference(  # type: ignore[override]
        self,
        call: Call,
        input: np.ndarray,
        mat1: np.ndarray,
        mat2: np.ndarray,
    ) -> Any:
        y = call.float("alpha") * (mat1.astype(np.float64) @ mat2.astype(np.float64))
        beta = call.float("beta")
        return y + beta * input.astype(np.float64) if beta else y
