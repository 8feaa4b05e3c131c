"""Records what PyTorch computes for every portable operator, into `portable.json`.

Run by hand, in an environment with torch==2.13.0 and executorch==1.5.1:

    python tests/unit/goldens/make_portable.py

Operators are called through their schema, by position, so the order of arguments is proved too.
A case: {op, args, outs: [dtype], results: [tensor]}; a tensor: {dtype, shape, data (base64)}.
"""

import base64
import json
from pathlib import Path

import executorch.exir.passes._quant_patterns_and_replacements  # noqa: F401
import torch
import torch.ao.quantization.fx._decomposed
from executorch.exir.passes import dim_order_ops_registry  # noqa: F401

torch.manual_seed(7)
CASES = []
F32, F16, BF16, F64 = torch.float32, torch.float16, torch.bfloat16, torch.float64
I64, I32, I16, I8, U8, BOOL = (
    torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool,
)  # fmt: skip


def name_of(dtype):
    return str(dtype).removeprefix("torch.")


def encode(value):
    if isinstance(value, torch.Tensor):
        raw = value.detach().contiguous()
        if raw.dtype == BF16:
            raw = raw.view(torch.int16)
        data = base64.b64encode(raw.numpy().tobytes()).decode()
        return {"dtype": name_of(value.dtype), "shape": list(value.shape), "data": data}
    if isinstance(value, (list, tuple)):
        return [encode(v) for v in value]
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return {"float": str(value)}
    return value


def record(op, args, outs, results):
    CASES.append(
        {
            "op": op,
            "args": encode(args),
            "outs": [name_of(d) for d in outs],
            "results": encode(list(results)),
        }
    )


def aten(op, *args, out=F32):
    """Call an out variant by position: inputs, then empty results of the dtypes `out`."""
    head, _, overload = op.partition(".")
    function = getattr(getattr(torch.ops.aten, head), overload or "default")
    dtypes = out if isinstance(out, (list, tuple)) else [out]
    schema = function._schema.arguments
    inputs = [a for a in schema if not a.is_out]
    assert len(inputs) == len(args), (op, [a.name for a in inputs], args)
    positional = [v for a, v in zip(inputs, args, strict=True) if not a.kwarg_only]
    named = {a.name: v for a, v in zip(inputs, args, strict=True) if a.kwarg_only}
    results = [torch.empty(0, dtype=d) for d in dtypes]
    targets = [a for a in schema if a.is_out]
    named |= {a.name: r for a, r in zip(targets, results, strict=True)}
    try:
        function(*positional, **named)
    except NotImplementedError:
        # No CPU form of the out variant; the functional one takes the same inputs.
        plain = overload.removesuffix("out").strip("_") or "default"
        results = [getattr(getattr(torch.ops.aten, head), plain)(*args)]
    record(f"aten::{op}", args, dtypes, results)


def in_place(op, target, *args):
    head, _, overload = op.partition(".")
    result = getattr(getattr(torch.ops.aten, head), overload or "default")(target.clone(), *args)
    record(f"aten::{op}", (target, *args), [target.dtype], [result])


def f32(*shape, scale=2.0):
    return torch.randn(*shape) * scale


def ints(dtype, *shape, low=-50, high=50):
    return torch.randint(low, high, shape).to(dtype)


SPECIAL = torch.tensor([0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 7.25, float("inf"),
                        float("-inf"), float("nan"), 1e-30, -3e8])  # fmt: skip
NONZERO = torch.tensor([1, -1, 2, -3, 7, 5, -8, 3, 9, -4, 6, -7])


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


def quantized():
    q = torch.ops.quantized_decomposed
    d = "quantized_decomposed::"
    x = torch.cat([f32(12, scale=3), torch.tensor([0.125, 0.375, -1e9, 1e9])]).reshape(4, 4)
    codes = ints(I8, 4, 4, low=-128, high=127)
    record(
        d + "quantize_per_tensor.out",
        (x, 0.25, 3, -128, 127, 1),
        [I8],
        [q.quantize_per_tensor(x, 0.25, 3, -128, 127, I8)],
    )
    s, z = torch.tensor([0.05]), torch.tensor([7])
    record(
        d + "quantize_per_tensor.Tensor_out",
        (x, s, z, 0, 255, 0),
        [U8],
        [q.quantize_per_tensor.tensor(x, s, z, 0, 255, U8)],
    )
    record(
        d + "dequantize_per_tensor.out",
        (codes, 0.3, -5, -128, 127, 1, None),
        [F32],
        [q.dequantize_per_tensor(codes, 0.3, -5, -128, 127, I8)],
    )
    record(
        d + "dequantize_per_tensor.Tensor_out",
        (codes, s, z, -128, 127, 1, None),
        [F32],
        [q.dequantize_per_tensor.tensor(codes, s, z, -128, 127, I8)],
    )
    scales, zeros = torch.rand(4) + 0.1, ints(I64, 4, low=-9, high=9)
    record(
        d + "quantize_per_channel.out",
        (x, scales, zeros, 1, -128, 127, 1),
        [I8],
        [q.quantize_per_channel(x, scales, zeros, 1, -128, 127, I8)],
    )
    record(
        d + "dequantize_per_channel.out",
        (codes, scales, zeros, 0, -128, 127, 1, None),
        [F32],
        [q.dequantize_per_channel(codes, scales, zeros, 0, -128, 127, I8)],
    )
    s, z = q.choose_qparams_per_token_asymmetric(x[:3], I8)
    record(d + "choose_qparams_per_token_asymmetric.out", (x[:3], 1), [F64, I64], [s, z])
    record(
        d + "quantize_per_token.out",
        (x[:3], s, z, -128, 127, 1),
        [I8],
        [q.quantize_per_token(x[:3], s, z, -128, 127, I8)],
    )
    record(
        d + "dequantize_per_token.out",
        (codes[:3], s, z, -128, 127, 1, 6),
        [F32],
        [q.dequantize_per_token(codes[:3], s, z, -128, 127, I8, F32)],
    )
    s, z = q.choose_qparams.tensor(x[:3], -128, 127, 1e-6, I8)
    record(d + "choose_qparams.Tensor_out", (x[:3], -128, 127, 1e-6, 1), [F64, I64], [s, z])
    indices = torch.tensor([[5, 0], [3, 5]])
    table = ints(I8, 6, 8, low=-128, high=127)
    one, groups = torch.rand(6) + 0.1, torch.rand(6, 2) + 0.1
    shift = ints(I64, 6, low=-5, high=5).to(F32)
    for scales, zeros in ((one, None), (one, shift)):
        record(
            d + "embedding_byte.out",
            (table, scales, zeros, -128, 127, indices),
            [F32],
            [q.embedding_byte(table, scales, zeros, -128, 127, indices)],
        )
    record(
        d + "embedding_byte.dtype_out",
        (table, groups, None, -128, 127, indices, 6),
        [F32],
        [q.embedding_byte.dtype(table, groups, None, -128, 127, indices, dtype=F32)],
    )
    packed = torch.randint(0, 256, (6, 4)).to(U8)
    record(
        d + "embedding_4bit.out",
        (packed, groups, None, -8, 7, indices),
        [F32],
        [q.embedding_4bit(packed, groups, None, -8, 7, indices)],
    )
    four = q.embedding_4bit.dtype(packed, one, None, -8, 7, indices, dtype=F32)
    record(d + "embedding_4bit.dtype_out", (packed, one, None, -8, 7, indices, 6), [F32], [four])
    two = q.embedding_2bit.dtype(packed, groups, None, -2, 1, indices, dtype=F32)
    record(d + "embedding_2bit.dtype_out", (packed, groups, None, -2, 1, indices, 6), [F32], [two])
    record(
        d + "embedding_2bit.out",
        (packed, one, None, -2, 1, indices),
        [F32],
        [q.embedding_2bit(packed, one, None, -2, 1, indices)],
    )


for make in (
    unary,
    arithmetic,
    compare,
    copies,
    shape,
    indexing,
    reduce,
    matmul,
    norms,
    convolution,
    quantized,
):
    make()
lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in CASES)
Path(__file__).with_name("portable.json").write_text(f"[\n{lines}\n]\n")
print(len(CASES), "cases")
