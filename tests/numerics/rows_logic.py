"""Comparisons, logic, bits and conversions between dtypes."""

import numpy as np
from hypothesis import strategies as st

from numerics.bound import BITS, EXACT, Row, Sample
from numerics.rows_elementwise import pair_dims
from numerics.values import ANY, DTYPES, bits, dims, ints, rng_of
from ops.opcase import In

RELATIONS = ("eq", "ne", "lt", "le", "gt", "ge")


def compared(draw, op):
    """Tensors of any kinds, equal numbers among them."""
    a, b = (number(draw, shape) for shape in pair_dims(draw))
    if a.shape == b.shape and draw(st.booleans()):
        with np.errstate(invalid="ignore"):
            b = np.where(rng_of(draw).random(a.shape) < 0.5, a, b.astype(a.dtype))
    return Sample([In("a", a), In("b", b)])


def number(draw, shape):
    """A tensor of any dtype's numbers."""
    dtype = draw(st.sampled_from(DTYPES))
    return ANY(draw, shape) if dtype == "float32" else ints(draw, shape, dtype)


def compared_scalar(draw, op):
    x = number(draw, dims(draw))
    own = st.just(x.reshape(-1)[0].item())
    extra = st.floats(width=32, allow_nan=x.dtype == np.float32)
    return Sample([In("x", x), draw(st.one_of(own, extra, st.integers(-9, 9)))])


def logical(draw, op):
    if op == "aten.logical_not.default":
        return Sample([In("x", number(draw, dims(draw)))])
    return compared(draw, op)


def bitwise(draw, op):
    dtype = draw(st.sampled_from(("bool", "uint8", "int8", "int32")))
    if op == "aten.bitwise_not.default":
        return Sample([In("x", bits(draw, dims(draw), dtype))])
    a, b = (bits(draw, s, dtype) for s in pair_dims(draw))
    return Sample([In("a", a), In("b", b)])


def cast(draw, op):
    return Sample([In("x", number(draw, dims(draw))), draw(st.sampled_from(DTYPES))])


ROWS = [
    Row(
        tuple(f"aten.{r}.Tensor" for r in RELATIONS),
        compared,
        EXACT,
        f"{ANY}; any of every other dtype",
        "NaN is unequal to all and in no order; a denormal may equal 0",
    ),
    Row(
        tuple(f"aten.{r}.Scalar" for r in RELATIONS),
        compared_scalar,
        EXACT,
        f"{ANY}; any of every other dtype",
        "as with tensors; integers see the scalar exactly",
    ),
    Row(
        ("aten.logical_and.default", "aten.logical_or.default", "aten.logical_not.default"),
        logical,
        EXACT,
        f"{ANY}; any of every other dtype",
        "NaN and denormals are true",
    ),
    Row(
        ("aten.bitwise_and.Tensor", "aten.bitwise_or.Tensor", "aten.bitwise_not.default"),
        bitwise,
        BITS,
        "any bits of integers and bool",
        "none arise",
    ),
    Row(
        ("aten._to_copy.default", "dim_order_ops._to_dim_order_copy.default"),
        cast,
        EXACT,
        f"{ANY}; any of every other dtype",
        "to int32: cut toward 0, saturating, NaN is 0; to a byte: that, wrapping; int32 to "
        "float32: to the nearest",
    ),
]
