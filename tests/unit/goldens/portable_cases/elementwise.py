"""One element at a time: unary, arithmetic, comparisons and logic."""

import torch
from portable_cases.recorder import (
    BF16,
    BOOL,
    F16,
    F64,
    I8,
    I16,
    I32,
    I64,
    NONZERO,
    SPECIAL,
    U8,
    aten,
    f32,
    ints,
)


def unary():
    names = """abs neg sign ceil floor round trunc exp expm1 log log2 log10 log1p sqrt rsqrt
        reciprocal sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh erf sigmoid relu
        _conj_physical"""
    for name in names.split():
        x = torch.cat([f32(12), SPECIAL[:-1]])
        aten(f"{name}.out", x)
    for name in "exp sqrt sigmoid rsqrt tanh".split():
        aten(f"{name}.out", ints(I64, 9, low=1))
    for name in "abs neg sign ceil round relu".split():
        aten(f"{name}.out", ints(I32, 9), out=I32)
    aten("exp.out", f32(7).to(F16), out=F16)
    aten("sin.out", f32(7).to(BF16), out=BF16)
    aten("neg.out", f32(7, scale=900).to(F64), out=F64)
    aten("logit.out", torch.rand(9), None)
    aten("logit.out", torch.tensor([-1.0, 0.0, 0.3, 1.0]), 0.1)
    aten("gelu.out", torch.cat([f32(9), SPECIAL[:9]]), "none")
    aten("gelu.out", torch.cat([f32(9), SPECIAL[:9]]), "tanh")
    aten("gelu.out", f32(9).to(F16), "none", out=F16)
    aten("elu.out", f32(11), 1.3, 0.7, 0.9)
    aten("glu.out", f32(3, 8), -1)
    aten("glu.out", f32(4, 3), 0)
    aten("hardtanh.out", f32(11, scale=4), -1.5, 2.0)
    aten("leaky_relu.out", f32(11), 0.2)


def arithmetic():
    a, b = f32(3, 4), f32(4)
    i, j = ints(I64, 3, 4), ints(I64, 4)
    aten("add.out", a, b, 1)
    aten("add.out", a, b, 2.5)
    aten("add.out", i, j, 3, out=I64)
    aten("add.out", i.to(I32), a, 1)
    aten("add.out", i.to(U8), j.to(I8), 1, out=I16)
    aten("add.out", f32(5).to(F16), f32(5).to(F16), 1, out=F16)
    aten("add.out", f32(5).to(BF16), f32(5), 1)
    aten("add.out", i > 0, j > 0, True, out=BOOL)
    aten(
        "add.out",
        torch.tensor([2**31 - 1, -(2**31)], dtype=I32),
        torch.tensor([1, -1], dtype=I32),
        1,
        out=I32,
    )
    aten("add.Scalar_out", a, 2.5, 1)
    aten("add.Scalar_out", i, 7, 2, out=I64)
    aten("add.Scalar_out", i, 0.5, 1)
    aten("sub.out", a, b, 1)
    aten("sub.out", i, j, 4, out=I64)
    aten("sub.Scalar_out", a, 3, 1)
    aten("rsub.Scalar_out", a, 3, 2)
    aten("mul.out", a, b)
    aten("mul.out", i, a)
    aten("mul.out", i > 0, j > 0, out=BOOL)
    aten("mul.Scalar_out", i, 3, out=I64)
    aten("mul.Scalar_out", i, 0.25)
    aten("div.out", a, b)
    aten("div.out", i, NONZERO[:4])
    aten("div.out", torch.tensor([1.0, -1.0, 0.0]), torch.zeros(3))
    aten("div.Scalar_out", i, 4)
    for mode in ("trunc", "floor", None):
        aten("div.out_mode", a, b, mode)
        aten("div.Scalar_mode_out", a, -0.75, mode)
        if mode:
            aten("div.out_mode", i, NONZERO[:4], mode, out=I64)
            aten("div.Scalar_mode_out", i, -7, mode, out=I64)
    aten("floor_divide.out", a, b)
    aten("floor_divide.out", i, NONZERO[:4], out=I64)
    for name in ("remainder", "fmod"):
        aten(f"{name}.Tensor_out", a, b)
        aten(f"{name}.Tensor_out", i, NONZERO[:4], out=I64)
        aten(f"{name}.Scalar_out", i, -7, out=I64)
        aten(f"{name}.Scalar_out", a, 0.75)
    aten("pow.Tensor_Tensor_out", a.abs(), b)
    aten(
        "pow.Tensor_Tensor_out", torch.tensor([2, -3, 1, -1]), torch.tensor([5, 3, -2, -3]), out=I64
    )
    aten("pow.Tensor_Scalar_out", a, 3)
    aten("pow.Tensor_Scalar_out", a.abs(), 0.5)
    aten("pow.Tensor_Scalar_out", ints(I32, 6), 2, out=I32)
    aten("pow.Scalar_out", 2, a)
    aten("pow.Scalar_out", 3, torch.tensor([0, 1, 2, 5]), out=I64)
    aten("atan2.out", a, b)
    aten("atan2.out", i, j)
    x, y = torch.cat([f32(4), SPECIAL]), torch.cat([f32(4), SPECIAL.flip(0)])
    for name in ("maximum", "minimum"):
        aten(f"{name}.out", x, y)
        aten(f"{name}.out", i, j, out=I64)
        aten(f"{name}.out", i.to(I32), a)
    aten("clamp.out", x, -1, 1.5)
    aten("clamp.out", x, None, 0.5)
    aten("clamp.out", i, -7, None, out=I64)
    aten("clamp.out", a, 1.0, -1.0)
    aten("clamp.Tensor_out", a, b - 1, b + 1)
    aten("clamp.Tensor_out", a, None, b)
    for name in ("and", "or", "xor"):
        aten(f"bitwise_{name}.Tensor_out", i, j, out=I64)
        aten(f"bitwise_{name}.Tensor_out", i > 0, j > 0, out=BOOL)
        aten(f"bitwise_{name}.Scalar_out", i.to(I32), 21, out=I32)
    aten("bitwise_not.out", i.to(U8), out=U8)
    aten("bitwise_not.out", i > 0, out=BOOL)
    for name in ("left", "right"):
        aten(f"bitwise_{name}_shift.Tensor_out", i, j.abs() % 9, out=I64)
        aten(f"bitwise_{name}_shift.Tensor_Scalar_out", i.to(I32), 3, out=I32)


def compare():
    a, b = f32(3, 4), f32(3, 1)
    a[0, 0] = b[0, 0]
    i = ints(I64, 3, 4, low=-3, high=3)
    x, y = torch.cat([SPECIAL, SPECIAL]), torch.cat([SPECIAL, SPECIAL.flip(0)])
    for name in "eq ne lt le gt ge".split():
        aten(f"{name}.Tensor_out", a, b, out=BOOL)
        aten(f"{name}.Tensor_out", x, y, out=BOOL)
        aten(f"{name}.Tensor_out", i, a, out=BOOL)
        aten(f"{name}.Scalar_out", i, 1, out=BOOL)
        aten(f"{name}.Scalar_out", i, 0.5, out=BOOL)
        aten(f"{name}.Scalar_out", i > 0, True, out=BOOL)
    for name in "and or xor".split():
        aten(f"logical_{name}.out", i, a > 0, out=BOOL)
    aten("logical_not.out", i, out=BOOL)
    aten("logical_not.out", SPECIAL, out=BOOL)
    aten("isnan.out", SPECIAL, out=BOOL)
    aten("isinf.out", SPECIAL, out=BOOL)
    m = torch.tensor([[[0, 1, 0], [0, 0, 0]], [[0, 0, 0], [1, 1, 1]]])
    for name in ("any", "all"):
        aten(f"{name}.all_out", m, out=BOOL)
        aten(f"{name}.out", m, 1, False, out=BOOL)
        aten(f"{name}.out", m > 0, -1, True, out=BOOL)
    aten("any.dims_out", m, [0, 2], False, out=BOOL)
    aten("any.dims_out", m, None, True, out=BOOL)
    aten("where.self_out", a > 0, a, b)
    aten("where.self_out", i > 0, i, torch.tensor(5), out=I64)
    aten("masked_fill.Scalar_out", a, i[:1] > 0, -7.5)
    aten("masked_fill.Scalar_out", i, a > 0, 9, out=I64)
