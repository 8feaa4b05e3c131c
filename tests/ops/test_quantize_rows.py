"""webgpu_py.quantize_rows: codes and scales bit for bit, ties, tiny numbers, losses, refusals."""

import numpy as np
import pytest

from ops import features
from ops.opcase import Const, OpCase, check, run
from webgpu_py import DtypeError, ShapeError, UnsupportedModel, UnsupportedOperator
from webgpu_py.ops.quantize_rows import LOSSES, PARTS

RANGES = {4: (-8, 7), 8: (-128, 127)}
SMALL = {"max_storage_buffer_binding_size": 1 << 16}


def stored(kind, values):
    """The values as a file keeps them, and what they are then in float64."""
    if kind == "BF16":
        bits = (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        return bits, (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    kept = values.astype({"F16": np.float16, "F32": np.float32}[kind])
    return kept, kept.astype(np.float64)


def expected(exact, bits):
    """Codes u32 [N, W], scales u32 and (signal, noise) of a float64 matrix, group by group."""
    lowest, highest = RANGES[bits]
    n, k = exact.shape
    per_word = 32 // bits
    codes = np.full((n, -(-k // per_word)), 0x88888888 if bits == 4 else 0, np.uint32)
    scales, noise = [], 0.0
    for row in range(n):
        for start in range(0, k, 32):
            w = exact[row, start : start + 32]
            extreme = max(w, key=abs)  # the first of equal ones
            # A float64 quotient rounded to float32 is the float32 quotient.
            scale = np.float16(np.float32(extreme / -8 if bits == 4 else abs(extreme) / 127))
            scales.append(scale if scale != 0 else np.float16(0))  # no -0
            q = np.zeros(len(w))
            if scale != 0:
                q = np.clip(np.round((w / float(scale)).astype(np.float32)), lowest, highest)
            noise += ((w - q * float(scale)) ** 2).sum()
            for i, step in enumerate(q.astype(int)):
                at, shift = divmod(start + i, per_word)
                word = int(codes[row, at]) & ~((2**bits - 1) << bits * shift)
                word |= (step + (8 if bits == 4 else 0)) % 2**bits << bits * shift
                codes[row, at] = word
    scales = np.array(scales + [0] * (len(scales) % 2), np.float16).view(np.uint32)
    return codes, scales, ((exact**2).sum(), noise)


def case(kind, bits, values, limits=None, index=0):
    kept, exact = stored(kind, values)
    codes, scales, losses = expected(exact, bits)
    weight = kept.view(np.uint8).reshape(-1)
    table = np.zeros((index + 1, PARTS, LOSSES), np.float32)
    args = [Const(weight), kind, *exact.shape, bits, Const(table), index]
    made = OpCase("webgpu_py.quantize_rows", args, [codes, scales], limits=limits, mutated=(5,))
    return made, losses, index


def normal(n, k, seed=0):
    return np.random.default_rng(seed).standard_normal((n, k)) / 7


def ties(extreme):
    """Groups whose scale is a power of two and whose weights lie in the middle of two codes."""
    w = np.arange(32) % 16 - 7.5 + np.zeros((6, 1))
    w[:, 3] = extreme
    w[::2, 20] = -extreme
    return w * np.array([1, 2.0**-9, -4, 2.0**-14, -(2.0**-3), 2.0**5])[:, None]


def tiny():
    """From the smallest float16 down to nothing, and up to the largest scale."""
    sizes = 2.0 ** np.array([-9, -13, -17, -20, -22, -23, -24, -25, -40, -120, 14, 18])
    w = normal(len(sizes), 32, 3)
    w *= sizes[:, None] / np.abs(w).max(axis=1, keepdims=True)
    return np.concatenate([w, np.zeros((1, 32))])


CASES = [
    *(case(kind, bits, normal(3, 96)) for kind in ("F32", "F16", "BF16") for bits in (4, 8)),
    *(case(kind, 4, normal(5, 43, 1)) for kind in ("F32", "F16", "BF16")),
    case("F16", 8, normal(3, 41, 2)),
    case("BF16", 4, normal(1, 1, 5)),
    case("F32", 4, ties(8)),
    case("BF16", 8, ties(127)),
    case("F32", 4, tiny()),
    case("F32", 8, tiny()),
    case("F16", 4, tiny() / 8),
    case("F16", 4, normal(70, 64, 4), {"max_compute_invocations_per_workgroup": 1}, 2),
    case("F16", 4, normal(70, 64, 4), {"max_compute_workgroups_per_dimension": 4}),
    # Runs of 128 rows; more groups than all invocations take at once.
    case("F32", 4, normal(300, 60, 6), SMALL, 1),
    case("BF16", 8, normal(640, 64, 7), SMALL | {"max_compute_invocations_per_workgroup": 4}),
]


def verify(c, gpu=None):
    made, losses, index = c
    ((codes, scales, table),) = run(made, gpu)
    np.testing.assert_array_equal(codes, made.expected[0], err_msg=str(made))
    np.testing.assert_array_equal(scales, made.expected[1], err_msg=str(made))
    totals = table[index].astype(np.float64).sum(axis=0)
    np.testing.assert_allclose(totals[:2], losses, rtol=2e-5, atol=1e-30)
    assert totals[2] == 0
    assert not table[:index].any()
    features.record(made.op, gpu.kind if gpu else "cpu", {"float32", "uint8"}, live=False)


@pytest.mark.parametrize("c", CASES, ids=lambda c: f"{c[0].args[1:5]} {c[0].limits or ''}")
def test_cpu(c):
    verify(c)


def test_browser(gpu):
    for c in CASES:
        verify(c, gpu)


def bad_case():
    values = normal(4, 64, 8).astype(np.float32)
    values[0, 3], values[1, 40], values[2, 63] = np.nan, -np.inf, 1e6
    good = values.copy()
    good[0, :32] = good[1, 32:] = good[2, 32:] = 0
    made, _, _ = case("F32", 4, good)
    made.args[0] = Const(values.view(np.uint8).reshape(-1))
    return made


def test_bad_groups_are_counted_and_zero(gpu):
    made = bad_case()
    for device in (None, gpu):
        ((codes, scales, table),) = run(made, device)
        assert table[0, :, 2].sum() == 3
        np.testing.assert_array_equal(codes, made.expected[0])
        np.testing.assert_array_equal(scales, made.expected[1])


TABLE = np.zeros((2, PARTS, LOSSES), np.float32)


@pytest.mark.parametrize(
    ("weight", "rest", "error", "text"),
    [
        (np.zeros(64, np.uint8), ("Q8_0", 1, 32, 4), UnsupportedModel, "Q8_0 matrix"),
        (np.zeros(64, np.uint8), ("F16", 1, 32, 3), UnsupportedOperator, "bits=3"),
        (np.zeros(63, np.uint8), ("F16", 1, 32, 4), ShapeError, "takes 64 bytes, weight has 63"),
        (np.zeros(64, np.uint8), ("F16", 0, 32, 4), ShapeError, "no matrix"),
        (np.zeros(64, np.int32), ("F16", 1, 32, 4), DtypeError, "weight is int32"),
    ],
)
def test_refused_before_any_buffer(weight, rest, error, text):
    with pytest.raises(error, match=text) as caught:
        check(OpCase("webgpu_py.quantize_rows", [Const(weight), *rest, Const(TABLE), 0], []))
    assert "[buffers created: 0]" in str(caught.value)


@pytest.mark.parametrize(("table", "index"), [(TABLE, 2), (TABLE[:, 1:], 0), (TABLE, -1)])
def test_losses_must_have_the_place(table, index):
    weight = Const(np.zeros(64, np.uint8))
    with pytest.raises(ShapeError, match="losses is"):
        check(OpCase("webgpu_py.quantize_rows", [weight, "F16", 1, 32, 4, Const(table), index], []))
