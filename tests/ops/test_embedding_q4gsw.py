"""et_vk.embedding_q4gsw: both nibble orders, any even width, indices out of range."""

import numpy as np
import pytest

from ops.opcase import Const, In, OpCase, check, check_all, run
from ops.q4case import packed
from ops.routes import hardware_routes
from webgpu_py import DtypeError, IndexOutOfRange, ShapeError, UnsupportedOperator

OP = "et_vk.embedding_q4gsw.default"


def table(rows, width, group):
    """Codes [V, E] and scales [V, G], no two scales alike."""
    rng = np.random.default_rng(rows + width)
    codes = rng.integers(0, 16, (rows, width)).astype(np.uint8)
    scales = rng.permutation(np.linspace(0.01, 0.5, rows * (width // group)))
    return codes, scales.astype(np.float32).reshape(rows, -1)


def looked_up(codes, scales, group, indices):
    wide = scales.astype(np.float64)[:, np.arange(codes.shape[1]) // group]
    return (codes.astype(np.float64) - 8)[indices] * wide[indices]


def case(rows, width, group, indices, linear=True, limits=None):
    codes, scales = table(rows, width, group)
    indices = np.asarray(indices, np.int32)
    weight = Const(packed(codes, even_high=not linear))
    want = looked_up(codes, scales, group, indices)
    args = [weight, Const(scales), group, In("indices", indices), linear]
    return OpCase(OP, args, [want], limits=limits)


def live_case(linear):
    codes, scales = table(64, 32, 8)
    rng = np.random.default_rng(1)
    draws = [rng.integers(0, 64, n).astype(np.int32) for n in (16, 8, 1, 16)]
    wants = [[looked_up(codes, scales, 8, i)] for i in draws]
    args = [
        Const(packed(codes, even_high=not linear)),
        Const(scales),
        8,
        In("indices", draws[0], (16,)),
        linear,
    ]
    runs = [({"indices": i}, want) for i, want in zip(draws[1:], wants[1:], strict=True)]
    return OpCase(OP, args, wants[0], runs)


CASES = [
    case(64, 64, 32, [1, 5, 63, 0]),
    case(64, 64, 32, [1, 5, 63, 0], linear=False),
    case(512, 2048, 64, [1, 5, 511, 0]),
    case(5, 2, 2, [4, 0]),
    case(5, 6, 3, [[0, 4], [2, 2]], linear=False),
    case(5, 12, 6, [[[3], [1]]]),
    case(7, 20, 4, [6, 0, 3], linear=False),
    case(3, 62, 31, [2]),
    *(case(9, 4 * n, 4, [8, 0, 5]) for n in (63, 65)),
    case(9, 300, 50, [8, 0, 5], linear=False, limits={"max_compute_workgroups_per_dimension": 4}),
    case(9, 600, 50, list(range(9)), limits={"max_compute_workgroups_per_dimension": 4}),
    *(
        case(9, 96, 32, [8, 0], limits={"max_compute_invocations_per_workgroup": w})
        for w in (1, 32, 128)
    ),
    case(
        700, 32, 8, [0, 255, 256, 511, 512, 699], limits={"max_storage_buffer_binding_size": 8192}
    ),
    live_case(True),
    live_case(False),
    case(3, 8, 8, np.arange(66000) % 3),
]


@pytest.mark.parametrize("c", CASES, ids=str)
def test_cpu(c):
    check(c)


def test_browser(gpu):
    check_all(CASES, gpu)


@pytest.mark.parametrize("bad", [-1, 64])
def test_index_of_an_input_is_refused_before_the_run(bad):
    c = case(64, 32, 8, [1, 5, 63, 0])
    c.args[3].array[2] = bad
    with pytest.raises(IndexOutOfRange, match=f"index {bad} at position 2 .* 0 to 63"):
        run(c)


async def computed_index(value, kind, before=(0,), after=(63,)):
    """The indices are numbers that only the device makes integers of."""
    import sys

    import numpy as np

    import webgpu_py as wg

    store = sys.modules[wg.__name__].__dict__
    device = store.get(f"_test_device_{kind}") or await wg.request_device(kind)
    results = []
    for limits in (None, {"max_storage_buffer_binding_size": 1024}):
        g = wg.Graph()
        x = g.input("x", (len(before) + 1 + len(after),))
        i = g.call("aten._to_copy.default", x, 3)
        weight = g.constant(np.full((64, 16), 0x99, np.uint8))
        scales = g.constant(np.ones((64, 1), np.float32))
        y = g.call("et_vk.embedding_q4gsw.default", weight, scales, 32, i, True)
        g.output("y", y)
        session = await g.build(device, limits)
        try:
            await session.run(x=np.array([*before, value, *after], np.float32))
            results.append("no error")
        except wg.IndexOutOfRange as error:
            results.append(str(error))
        good = (await session.run(x=np.array([*before, 1, *after], np.float32)))["y"]
        results.append(bool((good == 1).all()))
        session.close()
    return results


@pytest.mark.parametrize("bad", [-1, 64])
def test_index_of_the_device_is_reported_after_the_run(gpu, bad):
    for text in gpu.call(computed_index, value=bad, kind="browser")[0::2]:
        assert f"index {bad} at position 1 is out of range" in text


def test_browser_with_the_kernels_of_a_gpu(gpu):
    with hardware_routes(gpu):
        check_all([*CASES, *(case(9, 4 * n, 4, [7]) for n in (1, 2, 5, 64, 131))], gpu)
        found = gpu.call(computed_index, value=64, kind="browser", before=(), after=())
    assert found[1::2] == [True, True]
    for text in found[0::2]:
        assert "index 64 at position 0 is out of range" in text


def zeros(dtype):
    return lambda dims: np.zeros(dims, dtype)


U8, F32, I32 = zeros(np.uint8), zeros(np.float32), zeros(np.int32)


@pytest.mark.parametrize(
    ("weight", "scales", "group", "indices", "linear", "kind", "text"),
    [
        (F32((3, 4)), F32((3, 1)), 8, I32((2,)), True, DtypeError, "weight is float32"),
        (U8((3, 4)), I32((3, 1)), 8, I32((2,)), True, DtypeError, "scales is int32"),
        (U8((3, 4)), F32((3, 1)), 8, F32((2,)), True, DtypeError, "indices is float32"),
        (U8((12,)), F32((3, 1)), 8, I32((2,)), True, ShapeError, "weight has rank 1"),
        (U8((3, 4)), F32((3,)), 8, I32((2,)), True, ShapeError, "scales has rank 1"),
        (U8((3, 4)), F32((2, 1)), 8, I32((2,)), True, ShapeError, "do not cover 3 rows of 8"),
        (U8((3, 4)), F32((3, 1)), 4, I32((2,)), True, ShapeError, "do not cover 3 rows of 8"),
        (U8((3, 4)), F32((3, 1)), -8, I32((2,)), True, UnsupportedOperator, "must be positive"),
        (U8((3, 4)), F32((3, 1)), 8, I32(()), True, ShapeError, "indices has rank 0"),
        (U8((3, 4)), F32((3, 1)), 8, I32((2,)), 2, UnsupportedOperator, "a Bool"),
    ],
)
def test_refused_before_any_buffer(weight, scales, group, indices, linear, kind, text):
    args = [Const(weight), Const(scales), group, In("indices", indices), linear]
    with pytest.raises(kind, match=text) as caught:
        check(OpCase(OP, args, []))
    assert "[buffers created: 0]" in str(caught.value)
