"""How a case is recorded, and the numbers that cases are made of."""

import base64

import torch

CASES = []
F32, F16, BF16, F64 = torch.float32, torch.float16, torch.bfloat16, torch.float64
I64, I32, I16, I8, U8, BOOL = (
    torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool,
)  # fmt: skip
SPECIAL = torch.tensor([0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 7.25, float("inf"),
                        float("-inf"), float("nan"), 1e-30, -3e8])  # fmt: skip
NONZERO = torch.tensor([1, -1, 2, -3, 7, 5, -8, 3, 9, -4, 6, -7])


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
