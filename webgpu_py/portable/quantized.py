"""Quantized tensors: integers `q` that stand for `(q - zero_point) * scale`.

Rounding is to even, after a product with the float32 inverse of the scale, as ExecuTorch does.
Schemas begin with the tensor and its scales and zero points; `quant_min`, `quant_max` clamp.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ShapeError
from .indexing import checked
from .kernel import Array, Out, Result, kernel

_SMALLEST_SCALE = 6.1e-5


def _quantized(x: Array, scale: Any, zero: Any, low: int, high: int) -> Result:
    inverse = np.float32(1) / np.asarray(scale, np.float32)
    rounded = np.rint(x.astype(np.float32) * inverse) + np.asarray(zero, np.float64)
    return np.clip(rounded, low, high).astype(np.int64)


def _dequantized(q: Array, scale: Any, zero: Any) -> Result:
    offset = np.int64(0) if zero is None else np.asarray(zero).astype(np.int64)
    return (q.astype(np.int64) - offset).astype(np.float32) * np.asarray(scale, np.float32)


@kernel(
    "quantized_decomposed::quantize_per_tensor.out",
    "quantized_decomposed::quantize_per_tensor.Tensor_out",
)
def quantize_per_tensor(x: Array, scale: Any, zero: Any, low: int, high: int, dtype: int) -> Result:
    """One scale and zero point."""
    return _quantized(x, np.reshape(scale, ()), np.reshape(zero, ()), low, high)


@kernel(
    "quantized_decomposed::dequantize_per_tensor.out",
    "quantized_decomposed::dequantize_per_tensor.Tensor_out",
)
def dequantize_per_tensor(
    q: Array, scale: Any, zero: Any, low: int, high: int, dtype: int, out_dtype: int | None
) -> Result:
    """One scale and zero point."""
    return _dequantized(q, np.reshape(scale, ()), np.reshape(zero, ()))


def _along(vector: Array | None, x: Array, axis: int) -> Array | None:
    """A vector of one entry a slice of dimension `axis`, shaped to broadcast."""
    if vector is None:
        return None
    shape = [1] * x.ndim
    shape[axis] = x.shape[axis]
    return vector.reshape(shape)


@kernel("quantized_decomposed::quantize_per_channel.out")
def quantize_per_channel(
    x: Array, scales: Array, zeros: Array, axis: int, low: int, high: int, dtype: int
) -> Result:
    """A scale and zero point for each slice of dimension `axis`."""
    return _quantized(x, _along(scales, x, axis), _along(zeros, x, axis), low, high)


@kernel("quantized_decomposed::dequantize_per_channel.out")
def dequantize_per_channel(
    q: Array,
    scales: Array,
    zeros: Array | None,
    axis: int,
    low: int,
    high: int,
    dtype: int,
    out_dtype: int | None,
) -> Result:
    """A scale and zero point for each slice of dimension `axis`."""
    return _dequantized(q, _along(scales, q, axis), _along(zeros, q, axis))


def _per_token(vector: Array, x: Array) -> Result:
    """One entry for each row of the last dimension."""
    return vector.reshape(*x.shape[:-1], 1)


@kernel("quantized_decomposed::quantize_per_token.out")
def quantize_per_token(
    x: Array, scales: Array, zeros: Array, low: int, high: int, dtype: int
) -> Result:
    """A scale and zero point for each row."""
    return _quantized(x, _per_token(scales, x), _per_token(zeros, x), low, high)


@kernel("quantized_decomposed::dequantize_per_token.out")
def dequantize_per_token(
    q: Array, scales: Array, zeros: Array, low: int, high: int, dtype: int, out_dtype: int
) -> Result:
    """A scale and zero point for each row."""
    return _dequantized(q, _per_token(scales, q), _per_token(zeros, q))


def _chosen(low: Array, high: Array, quant_min: int, quant_max: int) -> tuple[Result, Result]:
    """Scale and zero point so that `low` to `high`, and 0, are representable.

    The zero point is taken from the end of the range at which it is off by less.
    """
    bottom = np.minimum(low.astype(np.float32), np.float32(0)).astype(np.float64)
    top = np.maximum(high.astype(np.float32), np.float32(0)).astype(np.float64)
    scale = (top - bottom) / (quant_max - quant_min)
    scale = np.where((scale.astype(np.float32) == 0) | ~np.isfinite(1 / scale), 0.1, scale)
    small = scale < _SMALLEST_SCALE
    # A scale that small is replaced, and the range grows with it.
    grown = np.where(small, _SMALLEST_SCALE / scale, 1.0)
    scale, bottom, top = scale * grown, bottom * grown, top * grown
    from_low, from_high = quant_min - bottom / scale, quant_max - top / scale
    off_low = abs(quant_min) + np.abs(bottom / scale)
    off_high = abs(quant_max) + np.abs(top / scale)
    zero = np.rint(np.clip(np.where(off_low < off_high, from_low, from_high), quant_min, quant_max))
    return scale, zero.astype(np.int64)


@kernel("quantized_decomposed::choose_qparams.Tensor_out", outs=2)
def choose_qparams(x: Array, low: int, high: int, eps: float, dtype: int) -> tuple[Result, Result]:
    """Scale and zero point for the whole tensor."""
    scale, zero = _chosen(x.min(), x.max(), low, high)
    return scale.reshape(1), zero.reshape(1)


@kernel("quantized_decomposed::choose_qparams_per_token_asymmetric.out", outs=2)
def choose_qparams_per_token(x: Array, dtype: int) -> tuple[Result, Result]:
    """Scale and zero point for each row, for int8."""
    return _chosen(x.min(axis=-1, keepdims=True), x.max(axis=-1, keepdims=True), -128, 127)


def _embedded(
    weight: Array, bits: int, scales: Array, zeros: Array | None, indices: Array, out: Out
) -> Result:
    """Rows `indices`, dequantized; scales [rows] or [rows, groups]."""
    out.check((*indices.shape, weight.shape[-1] * 8 // bits))
    picked = checked(indices, len(weight))
    rows = _unpacked(weight[picked], bits).astype(np.float32)
    factors = scales.reshape(len(weight), -1)[picked]
    width, groups = rows.shape[-1], factors.shape[-1]
    if width % groups:
        raise ShapeError(f"rows of {width} in {groups} groups")
    parts = rows.reshape(*rows.shape[:-1], groups, width // groups)
    if zeros is not None:
        parts = parts - zeros.reshape(len(weight), -1)[picked][..., None].astype(np.float32)
    return (parts * factors[..., None].astype(np.float32)).reshape(rows.shape)


def _unpacked(packed: Array, bits: int) -> Array:
    """Codes of packed bytes: 4 bits high nibble first, 2 bits lowest first; the middle is 0."""
    if bits == 8:
        return packed
    shifts = np.array([4, 0] if bits == 4 else [0, 2, 4, 6], np.uint8)
    codes = (packed.view(np.uint8)[..., None] >> shifts) & np.uint8(2**bits - 1)
    signed: Array = codes.reshape(*packed.shape[:-1], -1).astype(np.int32) - 2 ** (bits - 1)
    return signed


def _embedding(name: str, bits: int) -> None:
    @kernel(f"quantized_decomposed::{name}.out")
    def plain(
        weight: Array,
        scales: Array,
        zeros: Array | None,
        low: int,
        high: int,
        indices: Array,
        *,
        out: Out,
    ) -> Result:
        return _embedded(weight, bits, scales, zeros, indices, out)

    @kernel(f"quantized_decomposed::{name}.dtype_out")
    def with_dtype(
        weight: Array,
        scales: Array,
        zeros: Array | None,
        low: int,
        high: int,
        indices: Array,
        dtype: int | None,
        *,
        out: Out,
    ) -> Result:
        return _embedded(weight, bits, scales, zeros, indices, out)


_embedding("embedding_byte", 8)
_embedding("embedding_4bit", 4)
_embedding("embedding_2bit", 2)
