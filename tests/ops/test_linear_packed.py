"""webgpu_py.linear_* and embedding_*: every stored type, any shape, one weight for both."""

import numpy as np
import pytest

from ops.opcase import Const, In, OpCase, check, check_all, distinct, run
from ops.routes import EVERYWHERE, hardware_routes
from webgpu_py import DtypeError, IndexOutOfRange, ShapeError, UnsupportedOperator
from webgpu_py.quant.ggml import BY_NAME, SUPPORTED
from webgpu_py.quant.q4gsw import quantize_q4gsw
from webgpu_py.quant.repack import dequantize, pack_q4gsw, repack

SUFFIX = {"u4": "q4", "i8": "q8", "f16": "f16", "bf16": "f16", "f32": "f16"}


def stored(kind, n, k):
    """Random blocks of a type with scales of a weight's size, some of them subnormal halves."""
    rng = np.random.default_rng(n * k)
    if BY_NAME[kind].elements == 1:
        values = rng.uniform(-1, 1, (n, k)).astype(np.float32)
        bits = values.view(np.uint32) >> 16
        data = {"F32": values, "F16": values.astype(np.float16), "BF16": bits.astype(np.uint16)}
        return data[kind].reshape(-1).view(np.uint8)
    count = n * k // BY_NAME[kind].elements
    blocks = rng.integers(0, 256, (count, BY_NAME[kind].nbytes)).astype(np.uint8)
    at = 208 if kind == "Q6_K" else 0
    halves = 2 if kind in ("Q4_1", "Q5_1", "Q4_K", "Q5_K") else 1
    for h in range(halves):
        scales = rng.uniform(-1, 1, count) * np.where(np.arange(count) % 3, 0.01, 1e-5)
        blocks[:, at + 2 * h : at + 2 * h + 2] = (
            scales.astype(np.float16)[:, None].view(np.uint8).reshape(-1, 2)
        )
    return blocks.reshape(-1)


def weight_args(layout, codes, scales):
    if layout.scales == "none":
        return [Const(codes), layout.codes]
    return [Const(codes), Const(scales), layout.scales, layout.group]


def linear(weight, values, m, bias=False, limits=None):
    n, k = values.shape
    x = distinct((m, k), m)
    want = x.astype(np.float64) @ values.T.astype(np.float64)
    args = [In("x", x), *weight_args(weight.layout, weight.codes, weight.scales)]
    if bias:
        args.append(Const(distinct((n,), 2)))
        want = want + args[-1].array
    op = f"webgpu_py.linear_{SUFFIX[weight.layout.codes]}"
    scale = float(np.abs(values).max()) * np.sqrt(k)
    return OpCase(op, args, [want], limits=limits, atol=2e-6 * scale, rtol=1e-5)


def embedding(weight, values, indices, limits=None):
    indices = np.asarray(indices, np.int32)
    op = f"webgpu_py.embedding_{SUFFIX[weight.layout.codes]}"
    args = weight_args(weight.layout, weight.codes, weight.scales)
    args += [values.shape[1], In("indices", indices)]
    return OpCase(op, args, [values[indices]], limits=limits, atol=0, rtol=2e-7)


def of(kind, n, k):
    blocks = stored(kind, n, k)
    return repack(kind, blocks, n, k), dequantize(kind, blocks, (n, k))


def requantized(n, k, group):
    made = quantize_q4gsw(distinct((n, k), k), group, scale_layout="row")
    weight = pack_q4gsw(made.packed, made.scales, k, group)
    codes = weight.codes.view(np.uint8).reshape(n, -1)
    low_high = np.stack((codes & 15, codes >> 4), axis=2).reshape(n, -1)[:, :k]
    scales = made.scales[:, np.arange(k) // group].astype(np.float64)
    return weight, (low_high.astype(np.float64) - 8) * scales


def width(kind):
    return 512 if kind.endswith("_K") else 96


SOME = ("Q4_1", "Q8_0", "Q6_K", "BF16")
ONE_ROW = [linear(*of(kind, 37, width(kind)), 1) for kind in SUPPORTED]
LINEAR = [
    *(linear(*of(kind, 37, width(kind)), 2, bias=True) for kind in SOME),
    *(linear(*of(kind, 37, width(kind)), 34) for kind in (*SOME, "Q4_K", "F32")),
    linear(*of("Q8_0", 5, 32), 70),
    linear(*of("Q4_1", 600, 64), 2, limits={"max_storage_buffer_binding_size": 16384}),
    linear(*of("Q6_K", 300, 256), 2, limits={"max_storage_buffer_binding_size": 1 << 17}),
    linear(*requantized(20, 64, 16), 3),
    linear(*requantized(20, 64, 16), 20),
]
ODD = [
    *(linear(*of(kind, 9, 7), m) for kind in ("F16", "BF16", "F32") for m in (1, 5)),
    linear(*requantized(5, 33, 8), 2),
    linear(*requantized(6, 72, 24), 5, bias=True),
]
EMBEDDING = [
    *(embedding(*of(kind, 11, width(kind)), [0, 10, 3, 3]) for kind in SUPPORTED),
    *(embedding(*of(kind, 5, 7), [[4, 0], [1, 1]]) for kind in ("F16", "BF16", "F32")),
    *(embedding(*of(kind, 11, width(kind)), [7]) for kind in SUPPORTED),
    embedding(*requantized(6, 36, 8), [5, 0, 2]),
    embedding(*requantized(6, 33, 8), [5, 0, 2]),
    embedding(
        *of("Q8_0", 700, 32),
        [0, 255, 256, 511, 512, 699],
        limits={"max_storage_buffer_binding_size": 8192},
    ),
]
CASES = ONE_ROW + LINEAR + ODD + EMBEDDING


@pytest.mark.parametrize("c", CASES, ids=str)
def test_cpu(c):
    check(c)


def test_browser(gpu):
    check_all(CASES, gpu)


@pytest.mark.parametrize("without", [(), EVERYWHERE])
def test_browser_with_the_kernels_of_a_gpu(gpu, without):
    with hardware_routes(gpu, without):
        check_all(ONE_ROW + EMBEDDING, gpu)


def tied(device_limits=None):
    """Blocks of one table, repacked once, read by an embedding and by the output layer."""
    import webgpu_py as wg

    n, k = 50, 64
    blocks = stored("Q8_0", n, k)
    g = wg.Graph()
    ids = g.input("ids", [3], "int32")
    codes, scales = g.call("webgpu_py.repack", g.constant(blocks), "Q8_0", n, k)
    h = g.call("webgpu_py.embedding_q8", codes, scales, "f16", 32, k, ids)
    g.output("y", g.call("webgpu_py.linear_q8", h, codes, scales, "f16", 32))
    return g, dequantize("Q8_0", blocks, (n, k)), blocks.nbytes


def test_tied_weights_are_stored_once():
    import asyncio

    import webgpu_py as wg

    async def go():
        g, values, stored_bytes = tied()
        session = await g.build(await wg.request_device("cpu"))
        y = (await session.run(ids=np.array([4, 0, 49], np.int32)))["y"]
        rows = values[[4, 0, 49]].astype(np.float64)
        assert np.allclose(y, rows @ values.T, rtol=1e-5, atol=1e-6)
        assert session.memory()["weights"] <= 1.05 * stored_bytes + 32

    asyncio.run(go())


def test_index_of_an_input_is_refused_before_the_run():
    c = embedding(*of("Q8_0", 5, 32), [4, 0])
    c.args[-1].array[1] = 5
    with pytest.raises(IndexOutOfRange, match=r"index 5 at position 1 .* 0 to 4"):
        run(c)


def zeros(dtype):
    return lambda dims: np.zeros(dims, dtype)


F32, I32, U32 = zeros(np.float32), zeros(np.int32), zeros(np.uint32)
X, CODES = F32((2, 64)), U32((3, 8))


@pytest.mark.parametrize(
    ("op", "args", "kind", "text"),
    [
        ("linear_q4", [X, I32((3, 8)), U32((3,)), "f16", 32], DtypeError, "codes is int32"),
        ("linear_q4", [X, CODES, F32((3,)), "f16", 32], DtypeError, "scales is float32"),
        ("linear_q4", [F32(()), CODES, U32((3,)), "f16", 32], ShapeError, "x has rank 0"),
        ("linear_q4", [X, U32((24,)), U32((3,)), "f16", 32], ShapeError, "codes has rank 1"),
        ("linear_q4", [X, U32((3, 9)), U32((3,)), "f16", 32], ShapeError, "rows of 9 words"),
        ("linear_q4", [X, CODES, U32((2,)), "f16", 32], ShapeError, "scales has 2 words"),
        ("linear_q4", [X, CODES, U32((3,)), "k", 16], UnsupportedOperator, "scale_kind 'k'"),
        ("linear_q4", [X, CODES, U32((3,)), "k_min", 16], UnsupportedOperator, "must be 32"),
        ("linear_q4", [X, CODES, U32((3,)), "f16", 0], UnsupportedOperator, "must be positive"),
        ("linear_q4", [X, CODES, U32((15,)), "k_min", 32], ShapeError, "super-blocks of 256"),
        ("linear_q4", [X, CODES, U32((3,)), "f16", 32, F32((2,))], ShapeError, "bias has 2"),
        ("linear_f16", [X, U32((3, 32)), "f64"], UnsupportedOperator, "code_kind 'f64'"),
        ("linear_f16", [X, U32((3, 31)), "f16"], ShapeError, "rows of 31 words"),
        ("embedding_q8", [CODES, U32((3,)), "f16", 32, 0, I32((2,))], ShapeError, "width=0"),
        ("embedding_q8", [CODES, U32((3,)), "f16", 32, 32, I32(())], ShapeError, "rank 0"),
        ("embedding_f16", [CODES, "f16", 16, F32((2,))], DtypeError, "indices is float32"),
    ],
)
def test_refused_before_any_buffer(op, args, kind, text):
    def wrapped(at, a):
        if not isinstance(a, np.ndarray):
            return a
        last = op.startswith("embedding") and at == len(args) - 1
        return In("v", a) if last or a is X or a.ndim == 0 else Const(a)

    case = OpCase(f"webgpu_py.{op}", [wrapped(at, a) for at, a in enumerate(args)], [])
    with pytest.raises(kind, match=text) as caught:
        check(case)
    assert "[buffers created: 0]" in str(caught.value)
