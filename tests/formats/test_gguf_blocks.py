"""Stored block types: decoded values against goldens of the `gguf` package, layouts by hand."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from webgpu_py.errors import ShapeError, UnsupportedModel
from webgpu_py.quant.ggml import BY_NAME, GGML_TYPES, SUPPORTED
from webgpu_py.quant.layouts import LAYOUTS, Layout
from webgpu_py.quant.q4gsw import dequantize_q4gsw, quantize_q4gsw
from webgpu_py.quant.repack import dequantize, pack_q4gsw, repack, supported_type, unpack

GOLDENS = np.load(Path(__file__).parent / "goldens" / "gguf_blocks.npz")
BLOCK_TYPES = [kind for kind in SUPPORTED if LAYOUTS[kind].scales != "none"]


def golden(kind: str):
    blocks, values = GOLDENS[f"{kind}_blocks"], GOLDENS[f"{kind}_values"]
    return blocks, values, values.shape


def bits(values):
    return np.ascontiguousarray(values, np.float32).view(np.uint32)


@pytest.mark.parametrize("kind", SUPPORTED)
def test_dequantize_equals_the_golden_bit_for_bit(kind):
    blocks, values, dims = golden(kind)
    assert np.array_equal(bits(dequantize(kind, blocks, dims)), bits(values))
    assert np.array_equal(bits(dequantize(kind, blocks.tobytes(), (1, *dims))), bits(values[None]))


@pytest.mark.parametrize("kind", SUPPORTED)
def test_repack_keeps_every_bit(kind):
    blocks, values, (n, k) = golden(kind)
    weight = repack(kind, blocks, n, k)
    layout = LAYOUTS[kind]
    assert weight.codes.dtype == weight.scales.dtype == np.uint32
    assert weight.codes.shape == (n, layout.row_words(k))
    assert weight.scales.shape == (layout.scale_words(n, k),)
    assert weight.codes.nbytes + weight.scales.nbytes == layout.nbytes(n, k)
    assert np.array_equal(bits(unpack(weight)), bits(values))


@pytest.mark.parametrize("kind", BLOCK_TYPES)
def test_no_two_elements_of_a_block_can_be_swapped_unseen(kind):
    span = BY_NAME[kind].elements
    columns = GOLDENS[f"{kind}_values"].reshape(-1, span).T
    assert len(np.unique(columns, axis=0)) == span


@pytest.mark.parametrize("kind", SUPPORTED)
def test_many_runs_equal_one_block_at_a_time(kind):
    blocks, values, (n, k) = golden(kind)
    times = 3 + 2 * (1 << 16) // k
    many = np.tile(blocks, (times, 1))
    assert np.array_equal(dequantize(kind, many, (n * times, k)), np.tile(values, (times, 1)))
    assert np.array_equal(unpack(repack(kind, many, n * times, k)), np.tile(values, (times, 1)))


def test_gpu_bytes_stay_within_the_promised_factors():
    for kind in SUPPORTED:
        stored = BY_NAME[kind]
        factor = LAYOUTS[kind].nbytes(512, 4096) / (512 * 4096 // stored.elements * stored.nbytes)
        promised = 1.6 if kind.endswith("K") or kind.startswith("Q5") else 1.0
        assert factor <= promised, (kind, factor)


def test_q4_0_block_by_hand():
    block = bytes([0x00, 0x38]) + bytes(0x10 * (15 - j) + j for j in range(16))  # d = 0.5
    values = [(j - 8) * 0.5 for j in range(16)] + [(15 - j - 8) * 0.5 for j in range(16)]
    assert dequantize("Q4_0", block, (1, 32)).tolist() == [values]
    weight = repack("Q4_0", block, 1, 32)
    assert [hex(word) for word in weight.codes[0]] == [
        "0x76543210",
        "0xfedcba98",
        "0x89abcdef",
        "0x1234567",
    ]
    assert weight.scales.tolist() == [0x3800]


def test_f16_scales_lie_two_a_word_across_rows():
    blocks = np.zeros((3, 34), np.uint8)
    blocks[:, :2] = np.array([0x3C01, 0x3C02, 0x3C03], "<u2").view(np.uint8).reshape(3, 2)
    blocks[:, 2:] = np.arange(96, dtype=np.uint8).reshape(3, 32) + 100
    weight = repack("Q8_0", blocks, 3, 32)
    assert weight.scales.tolist() == [0x3C023C01, 0x00003C03]
    assert weight.codes[1, 2] == int.from_bytes(bytes(range(140, 144)), "little")
    assert dequantize("Q8_0", blocks, (3, 32))[1, 8] == (140 - 256) * np.float32(1 + 2 / 1024)


def test_q4_1_records_hold_scale_low_and_minimum_high():
    block = np.array([0x3C05, 0xB807], "<u2").tobytes() + bytes(range(16))
    assert repack("Q4_1", block, 1, 32).scales.tolist() == [0xB8073C05]


def test_k_records_by_hand():
    head = np.array([0x3C00, 0x3800], "<u2").tobytes()  # d = 1, dmin = 0.5
    six = [0b01_000001, 0b10_000010, 0b11_000011, 0b00_000100]
    six += [0b11_000101, 0b10_000110, 0b01_000111, 0b00_001000, 0x9A, 0xBC, 0xDE, 0xF1]
    weight = repack("Q4_K", head + bytes(six) + bytes(range(128)), 1, 256)
    scales = [1, 2, 3, 4, 0x1A, 0x2C, 0x3E, 0x01]
    minima = [5, 6, 7, 8, 0x39, 0x2B, 0x1D, 0x0F]
    halves = [scale | minimum << 8 for scale, minimum in zip(scales, minima, strict=True)]
    words = [halves[j] | halves[j + 1] << 16 for j in range(0, 8, 2)]
    assert weight.scales.tolist() == [0x38003C00, *words]
    values = unpack(weight)[0]
    assert values[5] == 5 * 1 - 2.5 and values[32 + 17] == 1 * 2 - 3
    assert values[64 + 3] == (35 & 15) * 3 - 3.5


def test_q6_k_record_is_d_and_sixteen_signed_scales():
    scales = np.arange(-9, 7, dtype=np.int8)
    block = bytes(range(192)) + scales.tobytes() + bytes([0x01, 0x3C])
    weight = repack("Q6_K", block, 1, 256)
    assert weight.scales[0] == 0x3C01
    assert weight.scales[1:].view(np.int8).tolist() == scales.tolist()
    # Element 130: second half, first run: low nibble of ql[66], bits 0-1 of qh[34] = byte 162.
    code = (66 & 15 | (162 & 3) << 4) - 32
    assert weight.codes.view(np.int8)[0, 130] == code
    assert unpack(weight)[0, 130] == code * np.float32(1 + 1 / 1024) * scales[8]


def test_half_types_are_the_file_bytes_and_odd_rows_are_padded():
    for kind in ("F16", "BF16"):
        blocks, _, (n, k) = golden(kind)
        assert k % 2 == 1
        words = repack(kind, blocks, n, k).codes
        assert np.array_equal(words.view(np.uint8).reshape(n, -1)[:, : 2 * k], blocks)
        assert (words[:, -1] >> 16 == 0).all()


def test_bf16_special_values():
    halves = np.array([0x3F80, 0xC020, 0x7F80, 0xFF80, 0x7FC0], "<u2")
    values = dequantize("BF16", halves.tobytes(), (5,))
    assert values[:4].tolist() == [1.0, -2.5, np.inf, -np.inf] and np.isnan(values[4])


@pytest.mark.parametrize("k, group", [(64, 32), (96, 16), (40, 32), (7, 16), (33, 32)])
def test_q4gsw_in_the_packed_layout(k, group):
    weights = np.random.default_rng(k).standard_normal((5, k), dtype=np.float32)
    q = quantize_q4gsw(weights, group, scale_layout="row")
    weight = pack_q4gsw(q.packed, q.scales, k, group)
    assert weight.layout == Layout("u4", "f32", group)
    assert weight.codes.shape == (5, -(-k // 8))
    exact = dequantize_q4gsw(q.packed, q.scales, k, group, scale_layout="row")
    assert np.array_equal(bits(unpack(weight)), bits(exact))
    if k % 8 == 0:
        assert np.shares_memory(weight.codes, q.packed)


def test_other_types_are_refused_by_name():
    refused = {kind.name for kind in GGML_TYPES} - set(SUPPORTED)
    assert {"Q2_K", "IQ4_XS", "Q8_1", "I32"} <= refused
    for name in refused:
        with pytest.raises(UnsupportedModel, match=f"tensor type {name} .* Q4_K"):
            supported_type(name)
        with pytest.raises(UnsupportedModel, match=name):
            dequantize(name, b"", (0,))


def test_wrong_lengths_are_refused_with_both_numbers():
    with pytest.raises(ShapeError, match="takes 36 bytes, 35 were passed"):
        dequantize("Q4_0", bytes(35), (2, 32))
    with pytest.raises(ShapeError, match="rows of 48 elements are not whole blocks of 32"):
        repack("Q8_0", bytes(102), 2, 48)


@pytest.mark.parametrize("kind", BLOCK_TYPES)
def test_memory_beside_input_and_result_is_small(kind):
    blocks, _, (n, k) = golden(kind)
    times = (3 << 20) // (n * k)
    many = np.tile(blocks, (times, 1))
    tracemalloc.start()
    weight = repack(kind, many, n * times, k)
    beside = tracemalloc.get_traced_memory()[1] - weight.codes.nbytes - weight.scales.nbytes
    tracemalloc.stop()
    assert beside < 2 << 20
