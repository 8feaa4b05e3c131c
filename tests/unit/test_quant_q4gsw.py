"""4-bit group-wise symmetric: codes and scales by hand, layouts, bounds of the error, hostility."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webgpu_py.errors import FormatError, ShapeError
from webgpu_py.quant.nibbles import pack_nibbles, unpack_nibbles
from webgpu_py.quant.q4gsw import (
    dequantize_q4gsw,
    dequantize_rows,
    quantize_q4gsw,
    quantize_qcs4w,
    quantize_rows,
    row_blocks,
)
from webgpu_py.quant.snr import Snr, snr_db

RULES = ("absmax", "least_squares")
ORDERS = ("even_low", "even_high")


def normal(n, k, seed=0):
    return np.random.default_rng(seed).standard_normal((n, k), dtype=np.float32)


def test_nibble_orders_by_hand():
    codes = np.array([[1, 2, 3, 4, 5]], np.uint8)
    assert pack_nibbles(codes, "even_low").tolist() == [[0x21, 0x43, 0x85]]
    assert pack_nibbles(codes, "even_high").tolist() == [[0x12, 0x34, 0x58]]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("k", [1, 2, 7, 16, 33])
def test_nibbles_round_trip(k, order):
    codes = (np.arange(3 * k, dtype=np.uint8).reshape(3, k) * 7) % 16
    packed = pack_nibbles(codes, order)
    assert packed.shape == (3, (k + 1) // 2)
    assert np.array_equal(unpack_nibbles(packed, k, order), codes)
    other = "even_high" if order == "even_low" else "even_low"
    assert np.array_equal(unpack_nibbles(packed << 4 | packed >> 4, k, other), codes)


def test_nibbles_of_a_wrong_width_are_refused():
    with pytest.raises(ShapeError, match="rows of 3 bytes cannot hold 7 codes"):
        unpack_nibbles(np.zeros((2, 3), np.uint8), 7)


def test_absmax_codes_by_hand():
    row = np.array([[-7.5, 7.5, 0.5, 1.5, -0.5, 3.2, -3.8, 0]], np.float32)
    codes, scales = quantize_rows(row, 8)
    assert scales.tolist() == [[1.0]]
    # -7.5 goes to the even -8; 7.5 to 8, clamped; halves go to the even neighbour.
    assert codes.tolist() == [[0, 15, 8, 10, 8, 11, 4, 8]]
    assert dequantize_rows(codes, scales, 8).tolist() == [[-8, 7, 0, 2, 0, 3, -4, 0]]


def transposed(scales):
    """[N, G] as [G, N padded to 4]."""
    return np.pad(scales.T, ((0, 0), (0, -len(scales) % 4)))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("layout", ["transposed", "row"])
@pytest.mark.parametrize("n, k, group", [(5, 64, 32), (3, 40, 16), (1, 33, 32), (7, 300, 256)])
def test_whole_matrix_equals_its_rows(n, k, group, order, layout, rule):
    weights = normal(n, k, seed=k)
    q = quantize_q4gsw(weights, group, rule=rule, nibbles=order, scale_layout=layout)
    groups = -(-k // group)
    assert q.packed.shape == (n, (k + 1) // 2)
    assert q.scales.shape == ((groups, -(-n // 4) * 4) if layout == "transposed" else (n, groups))
    codes, scales = quantize_rows(weights, group, rule)
    if layout == "transposed":
        assert np.array_equal(q.scales, transposed(scales))
        assert not q.scales[:, n:].any()
    else:
        assert np.array_equal(q.scales, scales)
    assert np.array_equal(unpack_nibbles(q.packed, k, order), codes)
    back = dequantize_q4gsw(q.packed, q.scales, k, group, order, layout)
    assert np.array_equal(back, dequantize_rows(codes, scales, group))
    assert q.snr_db == pytest.approx(snr_db(weights, back), abs=1e-6)


@pytest.mark.parametrize("rule", RULES)
def test_blocks_of_rows_do_not_show_in_the_result(rule):
    weights = normal(300, 512)
    q = quantize_q4gsw(weights, 32, rule=rule)
    assert len(list(row_blocks(300, 512))) == 3
    codes, scales = quantize_rows(weights, 32, rule)
    assert np.array_equal(q.packed, pack_nibbles(codes))
    assert np.array_equal(q.scales, transposed(scales))


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([16, 32, 64, 128, 256]),
    st.floats(-30, 30),
    st.sampled_from([1, 3]),
)
@settings(max_examples=40, deadline=None)
def test_absmax_error_is_at_most_half_a_step(seed, group, exponent, power):
    weights = (normal(4, 256, seed) ** power * np.float32(10**exponent)).astype(np.float32)
    codes, scales = quantize_rows(weights, group)
    error = np.abs(weights - dequantize_rows(codes, scales, group))
    assert (error <= np.repeat(scales, group, axis=1) * 0.5001).all()


@given(st.integers(0, 2**32 - 1), st.sampled_from([16, 32, 128]), st.sampled_from([1, 3, 5]))
@settings(max_examples=40, deadline=None)
def test_least_squares_never_loses_to_absmax(seed, group, power):
    weights = normal(8, 128, seed) ** power
    absmax = quantize_q4gsw(weights, group)
    least = quantize_q4gsw(weights, group, rule="least_squares")
    assert least.snr_db >= absmax.snr_db


@pytest.mark.parametrize(
    "group, least, absmax", [(16, 23.0, 21.0), (32, 21.7, 20.3), (128, 20.1, 19)]
)
def test_snr_of_normal_weights(group, least, absmax):
    weights = normal(256, 1024)
    assert quantize_q4gsw(weights, group).snr_db > absmax
    assert quantize_q4gsw(weights, group, rule="least_squares").snr_db > least


@pytest.mark.parametrize("size", [1e-30, 0.25, -0.25, 1e30])
def test_least_squares_gives_values_on_the_grid_back(size):
    grid = np.random.default_rng(1).permuted(np.tile(np.arange(-8, 8), (6, 4)), axis=1)
    weights = (grid * size).astype(np.float32)
    q = quantize_q4gsw(weights, 64, rule="least_squares")
    assert q.snr_db > 130
    assert np.array_equal(unpack_nibbles(q.packed, 64), grid + 8)


@pytest.mark.parametrize("rule", RULES)
def test_zero_and_tiny_groups(rule):
    weights = np.zeros((3, 64), np.float32)
    weights[1, 5] = 1e-45
    weights[2, :32] = np.linspace(-3e-39, 3e-39, 32)
    q = quantize_q4gsw(weights, 32, rule=rule)
    back = dequantize_q4gsw(q.packed, q.scales, 64, 32)
    assert not back[0].any() and np.isfinite(back).all()
    assert (unpack_nibbles(q.packed, 64)[0] == 8).all()


def test_float16_and_lazy_rows_are_taken():
    weights = normal(9, 64).astype(np.float16)

    class Lazy:
        shape = weights.shape

        def __getitem__(self, rows):
            return weights[rows]

    assert np.array_equal(
        quantize_q4gsw(Lazy()).packed, quantize_q4gsw(weights.astype(np.float32)).packed
    )


def test_per_channel_form():
    weights = normal(5, 23)
    q = quantize_qcs4w(weights)
    assert q.nibbles == "even_high" and q.scales.shape == (5,) and q.packed.shape == (5, 12)
    assert np.allclose(q.scales, np.abs(weights).max(axis=1) / 7.5)
    back = dequantize_q4gsw(q.packed, q.scales, 23, 23, "even_high", "row")
    assert (np.abs(back - weights) <= 0.5001 * q.scales[:, None]).all()
    assert (q.packed[:, -1] & 15 == 8).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_weight_that_is_not_finite_is_named(bad):
    weights = normal(200, 512)
    weights[190, 17] = bad
    with pytest.raises(FormatError, match=rf"weight \[190, 17\] is {bad}"):
        quantize_q4gsw(weights)


@pytest.mark.parametrize("group", [0, -32, 4, 12, 512])
def test_group_sizes_outside_the_range_are_refused(group):
    with pytest.raises(ShapeError, match=f"group size {group}"):
        quantize_q4gsw(normal(2, 64), group)


@pytest.mark.parametrize("dims", [(64,), (2, 3, 32), (0, 32), (4, 0)])
def test_only_matrices_are_taken(dims):
    with pytest.raises(ShapeError, match="matrix"):
        quantize_q4gsw(np.zeros(dims, np.float32))


def test_too_few_scales_are_refused():
    q = quantize_q4gsw(normal(6, 64))
    with pytest.raises(ShapeError, match="do not cover 6 rows of 4 groups"):
        dequantize_q4gsw(q.packed, q.scales, 64, 16)


@pytest.mark.parametrize("rule", RULES)
def test_memory_beside_the_result_is_a_few_mib(rule):
    weights = normal(4096, 1024)
    tracemalloc.start()
    q = quantize_q4gsw(weights, rule=rule)
    beside = tracemalloc.get_traced_memory()[1] - q.packed.nbytes - q.scales.nbytes
    tracemalloc.stop()
    assert beside < 3 << 20


def test_snr():
    exact = np.array([3.0, 4.0], np.float32)
    assert snr_db(exact, exact) == np.inf
    assert snr_db(exact, np.array([3.0, 4.5], np.float32)) == pytest.approx(20.0)
    assert Snr(signal=0.0, noise=1.0).db == -np.inf
