"""Functions of one and two tensors, element by element."""

import numpy as np
from hypothesis import strategies as st

from numerics.bound import EXACT, Row, Sample, near, share, ulps, ulps_by
from numerics.values import ANY, Floats, dims, ints
from ops.opcase import In

KEEPS = "NaN gives NaN, ±inf what float64 gives"
ANY_INT = "int32: any"


def one(values, *scalars, size=None):
    """A tensor of `values`, then scalars: numbers or strategies."""

    def sample(draw, op):
        x = values(draw, dims(draw))
        given = [draw(s) if isinstance(s, st.SearchStrategy) else s for s in scalars]
        measured = None if size is None else size(x.astype(np.float64), *given)
        return Sample([In("x", x), *given], measured)

    return sample


def or_int(sample, *scalars):
    """The sample, or one of int32."""

    def either(draw, op):
        if draw(st.booleans()):
            return sample(draw, op)
        given = [draw(s) for s in scalars]
        return Sample([In("x", ints(draw, dims(draw))), *given])

    return either


def pair_dims(draw):
    """Two shapes that broadcast."""
    whole = dims(draw)
    found = []
    for _ in range(2):
        cut = tuple(1 if draw(st.integers(0, 4)) == 0 else d for d in whole)
        found.append(cut[draw(st.integers(0, len(cut))) :] if draw(st.booleans()) else cut)
    return found


def two(a, b, *scalars, size=None, whole=None):
    """Two tensors that broadcast; `whole` makes them both int32, now and then."""

    def sample(draw, op):
        shapes = pair_dims(draw)
        given = [draw(s) for s in scalars]
        if whole is not None and draw(st.integers(0, 2)) == 0:
            arrays = [ints(draw, s) for s in shapes]
            return Sample([In("a", arrays[0]), In("b", arrays[1]), *whole(draw)], 0)
        arrays = [v(draw, s) for v, s in zip((a, b), shapes, strict=True)]
        measured = None if size is None else size(*(x.astype(np.float64) for x in arrays), *given)
        return Sample([In("a", arrays[0]), In("b", arrays[1]), *given], measured)

    return sample


def numbers(low=-8.0, high=8.0):
    return st.floats(low, high, width=32, allow_subnormal=False)


def bounds_of_clamp():
    return st.one_of(st.none(), numbers())


def none(draw):
    return []


def power_size(x, y):
    """Ulps of x^y: of a product of so many factors, or by exp2(y log2 x) with WGSL's bounds."""
    with np.errstate(all="ignore"):
        turns = abs(y * np.log2(abs(x)))
        general = 8 + 4 * abs(y) + 8 * np.nan_to_num(turns, nan=0, posinf=0)
    return np.where((y == np.floor(y)) & (abs(y) <= 64), abs(y) + 4, general)


def sum_size(a, b, alpha=1):
    return np.nan_to_num(abs(a) + abs(alpha * b), nan=0, posinf=0)


POW = Floats(-20, 20, special=(np.nan, np.inf, 0.0, 1.0, -1.0), denormal=False)
EXPONENTS = st.one_of(
    st.integers(-66, 66).map(float),
    st.sampled_from([0.0, 0.5, -0.5, 1.25, 2.75, np.inf, -np.inf, np.nan]),
    numbers(),
)
EXPONENT = Floats(
    -3, 5, special=(0.0, 1.0, 2.0, -1.0, 3.0, 0.5, 65.0, np.inf, -np.inf, np.nan), denormal=False
)
QUOTIENTS = Floats(-30, 30, special=(0.0, np.nan, np.inf, -np.inf), denormal=False)
DIVISORS = Floats(-126, 125, special=(np.nan, np.inf, 0.0))
TIMES_ALPHA = Floats(high=124)
ANGLES = Floats(-126, 127, special=(np.nan, 0.0))

ROWS = [
    Row(
        ("aten.abs.default", "aten.neg.default"),
        or_int(one(ANY)),
        EXACT,
        f"{ANY}; {ANY_INT}",
        KEEPS,
    ),
    Row(("aten.relu.default",), or_int(one(ANY)), EXACT, f"{ANY}; {ANY_INT}", KEEPS),
    Row(("aten.round.default",), one(ANY), EXACT, str(ANY), KEEPS),
    Row(
        ("aten.exp.default",),
        one(ANY, size=lambda x: 3 + 2 * np.nan_to_num(abs(x), nan=0, posinf=0)),
        ulps_by("3 + 2|x|"),
        str(ANY),
        KEEPS,
    ),
    Row(("aten.sqrt.default",), one(ANY), ulps(3), str(ANY), KEEPS + "; negative gives NaN"),
    Row(
        ("aten.rsqrt.default",),
        one(ANY),
        ulps(2),
        str(ANY),
        KEEPS + "; negative gives NaN, -0 gives -inf",
    ),
    Row(("aten.sin.default", "aten.cos.default"), one(ANGLES), near(2e-6), str(ANGLES), KEEPS),
    Row(("aten.tanh.default",), one(ANY), near(1e-6), str(ANY), KEEPS),
    Row(
        ("aten.sigmoid.default",),
        one(ANY, size=lambda x: 5 + 2 * np.minimum(np.nan_to_num(abs(x), nan=0), 100)),
        ulps_by("5 + 2|x|"),
        str(ANY),
        KEEPS,
    ),
    Row(
        ("aten.hardswish.default",),
        one(Floats(special=(np.nan, np.inf, -0.0))),
        ulps(3),
        "any, NaN, inf",
        "NaN gives NaN; -inf is not promised (PyTorch: NaN)",
    ),
    Row(
        ("aten.clamp.default", "aten.hardtanh.default"),
        or_int(
            one(ANY, bounds_of_clamp(), bounds_of_clamp()),
            st.integers(-9, 9),
            st.integers(-9, 9),
        ),
        EXACT,
        f"{ANY}; {ANY_INT}",
        "NaN stays; where the bounds are swapped the upper one wins",
    ),
    Row(
        ("aten.pow.Tensor_Scalar",),
        one(POW, EXPONENTS, size=power_size),
        ulps_by("|n| + 4 for whole |n| <= 64, else 8 + 4|y| + 8|y log2 x|"),
        str(POW),
        "as C's pow; x^0 is 1 for NaN too",
    ),
    Row(
        ("aten.leaky_relu.default",),
        one(ANY, numbers(0.0009765625, 1.0)),
        ulps(1),
        str(ANY),
        KEEPS,
    ),
    Row(
        ("aten.gelu.default",),
        one(
            Floats(special=(np.nan, np.inf, -0.0)),
            st.sampled_from(["none", "tanh"]),
            size=lambda x, _: np.nan_to_num(abs(x), nan=0, posinf=0),
        ),
        share(8, "|x|"),
        "any, NaN, inf",
        "NaN gives NaN; -inf is not promised (PyTorch: NaN)",
    ),
    Row(
        ("aten.add.Tensor", "aten.sub.Tensor"),
        two(
            ANY,
            TIMES_ALPHA,
            numbers(-4, 4),
            size=sum_size,
            whole=lambda draw: [draw(st.integers(-9, 9))],
        ),
        share(2, "|a| + |alpha b|"),
        f"{ANY}, alpha b within float32; {ANY_INT}",
        KEEPS + "; integers wrap",
    ),
    Row(
        ("aten.mul.Tensor",),
        two(ANY, ANY, whole=none),
        ulps(1),
        f"{ANY}; {ANY_INT}",
        KEEPS + "; integers wrap",
    ),
    Row(
        ("aten.div.Tensor",),
        two(ANY, DIVISORS, whole=none),
        ulps(2.5),
        f"a: {ANY}; b: {DIVISORS}; {ANY_INT}",
        KEEPS + "; x / 0 is ±inf, 0 / 0 NaN, of integers too",
    ),
    Row(
        ("aten.div.Tensor_mode",),
        two(
            QUOTIENTS,
            QUOTIENTS,
            st.sampled_from(["floor", "trunc"]),
            whole=lambda draw: [draw(st.sampled_from(["floor", "trunc"]))],
        ),
        EXACT,
        f"{QUOTIENTS}; {ANY_INT}",
        "the float32 quotient, floored or cut, as ExecuTorch has it: x / 0 and inf / 2 stay ±inf "
        "(PyTorch floors inf / 2 to NaN); an integer by 0 is 0",
    ),
    Row(
        ("aten.minimum.default",),
        two(ANY, ANY, whole=none),
        EXACT,
        f"{ANY}; {ANY_INT}",
        "NaN where either is",
    ),
    Row(
        ("aten.pow.Tensor_Tensor",),
        two(POW, EXPONENT, size=power_size, whole=none),
        ulps_by("|n| + 4 for whole |n| <= 64, else 8 + 4|y| + 8|y log2 x|"),
        f"a: {POW}; b: {EXPONENT}; {ANY_INT}",
        "as C's pow; integers wrap, to a negative power they are 0 or ±1",
    ),
]
