"""Reductions, products, norms, convolution and pooling."""

import torch
from portable_cases.recorder import F32, I32, I64, SPECIAL, aten, f32, ints, record


def reduce():
    a, i = f32(2, 3, 4), ints(I64, 2, 3, 4)
    aten("sum.IntList_out", a, [1], False, None)
    aten("sum.IntList_out", a, [0, -1], True, None)
    aten("sum.IntList_out", i, None, False, None, out=I64)
    aten("mean.out", a, [-1], True, None)
    aten("mean.out", a, [0, 2], False, None)
    aten("mean.dtype_out", a, None)
    aten("prod.int_out", a, 1, False, None)
    aten("prod.out", ints(I32, 5, low=1, high=4), None, out=I64)
    aten("cumsum.out", a, 1, None)
    aten("cumsum.out", i, -1, None, out=I64)
    for name in ("amax", "amin"):
        aten(f"{name}.out", a, [1], True)
        aten(f"{name}.out", a, [0, -1], False)
        aten(f"{name}.out", i, [], False, out=I64)
        aten(f"{name}.out", SPECIAL, [0], False)
    for name in ("argmax", "argmin"):
        aten(f"{name}.out", a, None, False, out=I64)
        aten(f"{name}.out", a, -1, True, out=I64)
        aten(f"{name}.out", i, 0, False, out=I64)
        aten(f"{name}.out", SPECIAL, 0, False, out=I64)
    for name in ("max", "min"):
        aten(f"{name}.dim_{name}", a, 1, False, out=[F32, I64])
        aten(f"{name}.dim_{name}", i, -1, True, out=[I64, I64])
        aten(f"{name}.unary_out", a)
    aten("var.correction_out", a, [1], None, False)
    aten("var.correction_out", a, None, 0, True)
    aten("var.out", a, [0, 2], True, False)
    aten("var.out", a, [-1], False, True)
    variance, mean = torch.var_mean(a, [2], correction=2, keepdim=True)
    record("aten::var_mean.correction_out", (a, [2], 2, True), [F32, F32], [variance, mean])


def matmul():
    aten("mm.out", f32(3, 5), f32(5, 2))
    aten("mm.out", ints(I64, 3, 5), ints(I64, 5, 2), out=I64)
    aten("bmm.out", f32(2, 3, 5), f32(2, 5, 4))
    aten("addmm.out", f32(4), f32(3, 5), f32(5, 4), 1, 1)
    aten("addmm.out", f32(3, 4), f32(3, 5), f32(5, 4), 0.5, 2)
    aten("linear.out", f32(2, 3, 5), f32(4, 5), f32(4))
    aten("linear.out", f32(3, 5), f32(4, 5), None)


def norms():
    a = f32(2, 3, 4)
    for name in ("_softmax", "_log_softmax"):
        aten(f"{name}.out", a, 1, False)
        aten(f"{name}.out", a * 100, -1, False)
    w, b = f32(3, 4), f32(3, 4)
    aten("native_layer_norm.out", a, [3, 4], w, b, 1e-5, out=[F32] * 3)
    aten("native_layer_norm.out", a, [4], None, None, 0.1, out=[F32] * 3)
    x = f32(2, 6, 2, 3)
    aten("native_group_norm.out", x, f32(6), f32(6), 2, 6, 6, 3, 1e-5, out=[F32] * 3)
    aten(
        "_native_batch_norm_legit_no_training.out",
        x,
        f32(6),
        f32(6),
        f32(6),
        f32(6).abs(),
        0.1,
        1e-5,
        out=[F32] * 3,
    )
    aten("_native_batch_norm_legit.no_stats_out", x, None, None, True, 0.1, 1e-5, out=[F32] * 3)


def convolution():
    x = f32(2, 4, 9)
    aten("convolution.out", x, f32(6, 4, 3), f32(6), [1], [1], [1], False, [0], 1)
    aten("convolution.out", x, f32(6, 2, 3), None, [2], [2], [2], False, [0], 2)
    aten("convolution.out", x, f32(4, 3, 3), f32(6), [2], [1], [1], True, [1], 2)
    y = f32(1, 4, 7, 6)
    aten("convolution.out", y, f32(4, 1, 3, 2), f32(4), [2, 1], [1, 0], [1, 2], False, [0, 0], 4)
    aten("convolution.out", y, f32(4, 2, 2, 3), None, [2, 3], [0, 1], [2, 1], True, [1, 0], 1)
    aten("avg_pool2d.out", y, [3, 2], [2, 1], [1, 1], False, True, None)
    aten("avg_pool2d.out", y, [3], [], [1], True, False, None)
    aten("avg_pool2d.out", y, [2, 2], [2, 2], [0, 0], True, True, 3)
    aten("max_pool2d_with_indices.out", y, [3, 2], [2, 2], [1, 1], [1, 1], False, out=[F32, I64])
    aten("max_pool2d_with_indices.out", y, [2], [], [0], [2], True, out=[F32, I64])
    aten("_adaptive_avg_pool2d.out", y, [3, 4])
    for args in (([10, 9], None), (None, [2.0, 1.5])):
        size, factors = args
        for align in (False, True):
            result = torch.ops.aten.upsample_bilinear2d.vec(y, size, align, factors)
            record("aten::upsample_bilinear2d.vec_out", (y, size, align, factors), [F32], [result])
        result = torch.ops.aten.upsample_nearest2d.vec(y, size, factors)
        record("aten::upsample_nearest2d.vec_out", (y, size, factors), [F32], [result])
