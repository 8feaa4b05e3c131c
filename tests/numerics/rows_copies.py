"""What moves or fills elements: every bit is kept."""

from math import prod

import numpy as np
from hypothesis import strategies as st

from numerics.bound import BITS, EXACT, Row, Sample, share
from numerics.rows_elementwise import pair_dims
from numerics.values import ANY, DTYPES, STORED, anything, bits, dims, edge, ints, rng_of
from ops.opcase import Const, In

MOVES = "any bits of any dtype"
KEPT = "every bit is kept: NaNs, denormals and words that look like NaNs of float16 too"


def move(arguments, least=0):
    """A tensor of any bits; `arguments(draw, shape)` are the others."""

    def sample(draw, op):
        shape = dims(draw, least)
        return Sample([In("x", anything(draw, shape)), *arguments(draw, shape)])

    return sample


def none(draw, shape):
    return []


def a_dim(draw, shape):
    return draw(st.integers(-len(shape), len(shape) - 1))


def some_dims(draw, shape):
    return draw(st.lists(st.integers(0, max(len(shape) - 1, 0)), unique=True, max_size=len(shape)))


def regrouped(draw, shape):
    """The same elements under other dims."""
    left, found = prod(shape), []
    while left > 1 and len(found) < 4:
        factors = [f for f in range(1, min(left, 64) + 1) if left % f == 0]
        found.append(draw(st.sampled_from(factors)))
        left //= found[-1]
    return [[*found, left]]


def squeezed(draw, op):
    shape = tuple(1 if draw(st.booleans()) else d for d in dims(draw, 1))
    return Sample([In("x", anything(draw, shape)), some_dims(draw, shape)])


def unsqueezed(draw, shape):
    return [draw(st.integers(-len(shape) - 1, len(shape)))]


def permuted(draw, shape):
    return [list(draw(st.permutations(range(len(shape)))))]


def expanded(draw, op):
    shape, _ = pair_dims(draw)
    sizes = [d if d > 1 else draw(st.integers(1, 5)) for d in shape]
    return Sample([In("x", anything(draw, shape)), [draw(st.integers(1, 3)), *sizes]])


def repeated(draw, shape):
    more = draw(st.integers(0, 1))
    return [[draw(st.integers(1, 3)) for _ in range(len(shape) + more)]]


def shuffled(draw, op):
    r = draw(st.integers(1, 3))
    shape = (draw(st.integers(1, 3)), r * r * draw(st.integers(1, 3)), edge(draw, 9), edge(draw, 9))
    return Sample([In("x", anything(draw, shape)), r])


def sliced(draw, shape):
    dim = a_dim(draw, shape)
    size = shape[dim]
    start = draw(st.integers(0, size - 1))
    return [dim, start, draw(st.integers(start + 1, size)), draw(st.integers(1, 4))]


def selected(draw, shape):
    dim = a_dim(draw, shape)
    return [dim, draw(st.integers(-shape[dim], shape[dim] - 1))]


def split(draw, shape):
    dim = a_dim(draw, shape)
    cuts = sorted(draw(st.sets(st.integers(1, max(shape[dim] - 1, 1)), max_size=3)))
    cuts = [c for c in cuts if c < shape[dim]]
    return [np.diff([0, *cuts, shape[dim]]).tolist(), dim]


def joined(draw, op):
    shape, dtype = dims(draw, 1, numel=600), draw(st.sampled_from(STORED))
    dim = a_dim(draw, shape)
    parts = []
    for n in range(draw(st.integers(1, 4))):
        one = list(shape)
        one[dim] = edge(draw, 17)
        parts.append(In(f"x{n}", bits(draw, tuple(one), dtype)))
    return Sample([parts, dim])


def padded(draw, op):
    shape = dims(draw, 1, numel=600)
    x = anything(draw, shape)
    value = draw(st.integers(0, 1)) if x.dtype != np.float32 else draw(st.floats(width=32))
    most = draw(st.integers(1, len(shape)))
    return Sample([In("x", x), [draw(st.integers(0, 4)) for _ in range(2 * most)], value])


def rows_of(draw, size, shape):
    return rng_of(draw).integers(0, size, shape).astype(np.int32)


def looked_up(draw, op):
    rows, width = edge(draw, 129), edge(draw, 65)
    table = anything(draw, (rows, width))
    return Sample([Const(table), In("indices", rows_of(draw, rows, dims(draw, 0, 2, 40)))])


def index_selected(draw, op):
    shape = dims(draw, 1)
    dim = a_dim(draw, shape)
    index = In("index", rows_of(draw, shape[dim], (edge(draw, 33),)))
    return Sample([In("x", anything(draw, shape)), dim, index])


def gathered(draw, op):
    shape = dims(draw, 1)
    dim = draw(st.integers(0, len(shape) - 1))
    cut = tuple(draw(st.integers(1, d)) if k != dim else edge(draw, 9) for k, d in enumerate(shape))
    return Sample(
        [In("x", anything(draw, shape)), dim, In("index", rows_of(draw, shape[dim], cut))]
    )


def indexed(draw, op):
    shape = dims(draw, 1, 3)
    which = draw(st.sets(st.integers(0, len(shape) - 1), min_size=1))
    many = (edge(draw, 9),)
    indices = [
        In(f"i{k}", rows_of(draw, shape[k], many)) if k in which else None
        for k in range(max(which) + 1)
    ]
    return Sample([In("x", anything(draw, shape)), indices])


def prepacked(draw, op):
    return Sample([Const(anything(draw, dims(draw)))])


def rows_joined(draw, op):
    dtype = draw(st.sampled_from(("float32", "int32", "uint32")))
    parts = [Const(bits(draw, (draw(st.integers(1, 4)), 64), dtype)) for _ in range(3)]
    return Sample([parts])


def cached(draw, op):
    rows, heads, width = edge(draw, 17), edge(draw, 3), edge(draw, 17)
    tokens = draw(st.integers(1, rows))
    value = In("value", ANY(draw, (1, tokens, heads, width)))
    cache = Const(bits(draw, (1, rows, heads, width), "float32"))
    return Sample([value, cache, draw(st.integers(0, rows - tokens))], outputs=(), mutated=(1,))


def filled(kinds):
    """full, scalar_tensor and the like: which arguments come first, and whether a value does."""

    def sample(draw, op):
        args = []
        if kinds == "size":
            args = [list(dims(draw, 1))]
        elif kinds == "x":
            args = [In("x", anything(draw, dims(draw)))]
        dtype = draw(st.sampled_from(DTYPES))
        if "zeros" not in op and "ones" not in op:
            floats = st.floats(width=32) if dtype == "float32" else st.integers(-300, 300)
            args.append(draw(floats))
        return Sample([*args, dtype])

    return sample


def priors(draw, op):
    shape = (edge(draw, 9), edge(draw, 33), edge(draw, 33))
    stride, offset = draw(st.sampled_from([1, 8, 0.3])), draw(st.sampled_from([0.5, 0, 0.1]))
    size = (np.indices(shape[1:]).reshape(2, -1).T[:, ::-1] + offset) * stride
    return Sample([In("x", ANY(draw, shape)), stride, offset], size)


def chosen(draw, op):
    (a, b), dtype = pair_dims(draw), draw(st.sampled_from(STORED))
    condition = ints(draw, np.broadcast_shapes(a, b), "bool")
    return Sample(
        [In("c", condition), In("a", bits(draw, a, dtype)), In("b", bits(draw, b, dtype))]
    )


FLAT = ("aten.clone.default", "aten.alias_copy.default", "dim_order_ops._clone_dim_order.default")
ROWS = [
    Row(ops, sample, BITS, MOVES, KEPT)
    for ops, sample in [
        (FLAT, move(none)),
        (("aten.view_copy.default",), move(regrouped)),
        (("aten.squeeze_copy.dims",), squeezed),
        (("aten.unsqueeze_copy.default",), move(unsqueezed)),
        (("aten.permute.default", "aten.permute_copy.default"), move(permuted)),
        (("aten.flip.default",), move(lambda draw, shape: [some_dims(draw, shape)])),
        (("aten.expand_copy.default",), expanded),
        (("aten.repeat.default",), move(repeated)),
        (("aten.pixel_shuffle.default",), shuffled),
        (("aten.slice_copy.Tensor",), move(sliced, 1)),
        (("aten.select_copy.int",), move(selected, 1)),
        (("aten.split_with_sizes_copy.default",), move(split, 1)),
        (("aten.cat.default",), joined),
        (("aten.constant_pad_nd.default",), padded),
        (("aten.embedding.default",), looked_up),
        (("aten.index_select.default",), index_selected),
        (("aten.gather.default",), gathered),
        (("aten.index.Tensor",), indexed),
        (("et_vk.prepack.default",), prepacked),
        (("webgpu_py.join_rows",), rows_joined),
        (("aten.where.self",), chosen),
    ]
] + [
    Row(("update_cache.default",), cached, EXACT, str(ANY), "NaN stays NaN"),
    *(
        Row(ops, filled(kind), EXACT, "any value of the dtype", "NaN, ±inf and denormals as given")
        for ops, kind in [
            (("aten.full.default", "aten.zeros.default", "aten.ones.default"), "size"),
            (("aten.full_like.default", "aten.zeros_like.default", "aten.ones_like.default"), "x"),
            (("aten.scalar_tensor.default",), ""),
        ]
    ),
    Row(
        ("et_vk.grid_priors.default",),
        priors,
        share(2, "the value"),
        "sizes up to 33",
        "none arise",
    ),
]
