"""What moves and makes numbers: copies, shapes, indices."""

import torch
from executorch.exir.passes import dim_order_ops_registry  # noqa: F401
from portable_cases.recorder import (
    BF16,
    BOOL,
    F16,
    F32,
    F64,
    I32,
    I64,
    U8,
    aten,
    f32,
    in_place,
    ints,
    record,
)


def copies():
    a, i = f32(3, 4), ints(I64, 3, 4)
    in_place("copy_", a, ints(I64, 4), False)
    in_place("copy_", i, f32(3, 4, scale=30), False)
    aten("copy.out", a, f32(4), False)
    for name in ("alias_copy", "detach_copy", "lift_fresh_copy"):
        aten(f"{name}.out", a)
    aten("clone.out", a, None)
    for dtype in (I32, U8, BOOL, F16, BF16, F64):
        aten("_to_copy.out", f32(9, scale=30).abs(), False, None, out=dtype)
    aten("_to_copy.out", ints(I64, 6, high=2**40), False, None, out=I32)
    aten("fill.Scalar_out", a, 3)
    aten("fill.Tensor_out", i, torch.tensor(3), out=I64)
    aten("full.out", [2, 3], 2.5)
    aten("full.out", [], 7, out=I64)
    aten("full_like.out", a, -1.5, None)
    aten("zeros.out", [2, 0, 3])
    aten("ones.out", [4], out=BOOL)
    aten("scalar_tensor.out", 3.5)
    aten("arange.out", 5, out=I64)
    aten("arange.out", 4.5)
    aten("arange.start_out", 2, 11, 3, out=I64)
    aten("arange.start_out", 5, -4, -2, out=I32)
    aten("arange.start_out", 0.5, 2.1, 0.2)
    order = torch.ops.dim_order_ops
    x = f32(2, 3)
    record(
        "dim_order_ops::_to_dim_order_copy.out",
        (x, False, [0, 1]),
        [F16],
        [order._to_dim_order_copy(x, dtype=F16, dim_order=[0, 1])],
    )
    record(
        "dim_order_ops::_clone_dim_order.out",
        (x, False, [0, 1]),
        [F32],
        [order._clone_dim_order(x, dim_order=[0, 1])],
    )


def shape():
    a = f32(2, 3, 4)
    aten("view_copy.out", a, [4, -1])
    aten("view_copy.out", a, [2, 3, 2, 2])
    aten("squeeze_copy.dim_out", f32(2, 1, 3), 1)
    aten("squeeze_copy.dim_out", a, -1)
    aten("squeeze_copy.dims_out", f32(1, 3, 1, 2), [0, 1, -2])
    aten("unsqueeze_copy.out", a, -1)
    aten("unsqueeze_copy.out", a, 1)
    aten("permute_copy.out", a, [2, 0, -2])
    aten("transpose_copy.int_out", a, 0, -1)
    aten("t_copy.out", f32(3, 5))
    aten("t_copy.out", f32(3))
    aten("expand_copy.out", f32(3, 1), [2, -1, 4], False)
    aten("repeat.out", f32(2, 3), [2, 1, 3])
    aten("select_copy.int_out", a, 1, -1)
    aten("select_copy.int_out", a, -1, 2)
    aten("slice_copy.Tensor_out", a, 2, 1, 9223372036854775807, 2)
    aten("slice_copy.Tensor_out", a, 1, -2, None, 1)
    aten("slice_copy.Tensor_out", a, -1, None, -1, 1)
    aten("slice_copy.Tensor_out", a, 0, 1, 1, 1)
    aten("narrow_copy.out", a, 1, -2, 2)
    aten("cat.out", [f32(2, 3), f32(1, 3), torch.empty(0)], 0)
    aten("cat.out", [ints(I32, 2, 3), f32(2, 2)], -1)
    aten("stack.out", [f32(2, 3), f32(2, 3)], 1)
    aten("stack.out", [f32(2, 3), f32(2, 3)], -1)
    x, y = f32(5, 2), f32(2, 6)
    # Lists of results cannot be resized there, so these three record the functional form.
    record("aten::split_copy.Tensor_out", (x, 2, 0), [F32] * 3, torch.split_copy(x, 2, 0))
    record(
        "aten::split_with_sizes_copy.out",
        (y, [1, 2, 3], -1),
        [F32] * 3,
        torch.split_with_sizes_copy(y, [1, 2, 3], -1),
    )
    record("aten::unbind_copy.int_out", (a, 1), [F32] * 3, torch.unbind_copy(a, 1))
    aten("flip.out", a, [0, -1])
    aten("roll.out", a, [1, -2], [0, 2])
    aten("roll.out", a, [5], [])
    aten("tril.out", f32(2, 4, 4), -1)
    aten("tril.out", f32(3, 5), 1)
    aten("diagonal_copy.out", a, 1, 0, 2)
    aten("unfold_copy.out", f32(2, 9), 1, 4, 2)
    aten("unfold_copy.out", f32(7, 2), 0, 3, 3)
    aten("as_strided_copy.out", f32(4, 5), [3, 2], [5, 2], 1)
    aten("pixel_shuffle.out", f32(2, 12, 2, 3), 2)
    aten("pixel_unshuffle.out", f32(2, 2, 4, 6), 2)
    aten("constant_pad_nd.out", f32(2, 3), [1, 2, 0, 1], 0.5)
    aten("constant_pad_nd.out", f32(3, 4), [-1, 2, 1, -1], 9)
    aten("reflection_pad1d.out", f32(2, 5), [2, 3])
    aten("reflection_pad2d.out", f32(2, 4, 5), [1, 2, 3, 0])
    aten("reflection_pad3d.out", f32(1, 3, 3, 4), [1, 2, 0, 1, 2, 1])
    aten("replication_pad1d.out", f32(2, 5), [2, 6])
    aten("replication_pad2d.out", f32(2, 4, 5), [1, 2, 3, 0])
    aten("replication_pad3d.out", f32(1, 3, 3, 4), [1, 2, 0, 1, 2, 1])


def indexing():
    a = f32(4, 5)
    i = torch.tensor([[3, 0], [1, 3]])
    aten("embedding.out", a, i, -1, False, False)
    aten("embedding.out", a, i.to(I32), 0, False, False)
    aten("index_select.out", a, 1, torch.tensor([4, 0, 4]))
    aten("index_select.out", f32(2, 3, 4), -2, torch.tensor([2, 1], dtype=I32))
    aten("index.Tensor_out", a, [torch.tensor([3, -4, 1])])
    aten("index.Tensor_out", a, [None, torch.tensor([[0, 4], [2, 2]])])
    aten("index.Tensor_out", a, [torch.tensor([0, 3]), torch.tensor([4, 1])])
    aten("index.Tensor_out", f32(2, 3, 4), [torch.tensor([0, 1]), None, torch.tensor([3, 2])])
    aten("index.Tensor_out", a, [a > 0])
    row = f32(5)
    aten("index_put.out", a, [torch.tensor([3, 1])], row, False)
    aten("index_put.out", a, [torch.tensor([3, 3])], row, True)
    aten("index_put.out", a, [None, torch.tensor([2])], torch.tensor(7.0), False)
    in_place("index_put_", a, [torch.tensor([2])], row, False)
    aten("gather.out", a, 1, torch.tensor([[0, 4, 2], [1, 1, 0]]), False)
    aten("gather.out", a, -2, torch.tensor([[0, 3], [2, 1], [3, 3]]), False)
    where = torch.tensor([[0, 4, 2], [1, 3, 0]])
    aten("scatter.src_out", a, 1, where, f32(3, 4))
    aten("scatter.value_out", a, 1, where, -7)
    aten("scatter_add.out", a, 0, torch.tensor([[0, 3], [0, 1]]), f32(2, 3))
    aten("select_scatter.out", a, f32(4), 1, -2)
    aten("slice_scatter.out", a, f32(4, 2), 1, 1, 4, 2)
    aten("masked_select.out", a, torch.tensor([True, False, True, True, False]))
    aten("masked_scatter.out", a, a > 0, f32(20))
    aten("nonzero.out", torch.tensor([[0, 3], [2, 0], [1, 1]]), out=I64)
    aten("topk.values", f32(3, 7), 3, -1, True, True, out=[F32, I64])
    aten("topk.values", f32(6, 2), 2, 0, False, True, out=[F32, I64])
    aten("repeat_interleave.Tensor_out", torch.tensor([2, 0, 3]), None, out=I64)
