"""webgpu_py.repack: every stored type, bit for bit, at any alignment and in slices."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ops.opcase import Const, OpCase, check, check_all, run_all
from webgpu_py import DtypeError, ShapeError, UnsupportedModel
from webgpu_py.quant.ggml import BY_NAME, SUPPORTED
from webgpu_py.quant.layouts import LAYOUTS, PackedWeight
from webgpu_py.quant.repack import repack, unpack

GOLDENS = Path(__file__).parents[1] / "formats/goldens/gguf_blocks.npz"


def case(kind, rows, columns, limits=None):
    stored = BY_NAME[kind]
    rng = np.random.default_rng(rows + columns)
    count = rows * columns // stored.elements * stored.nbytes
    blocks = rng.integers(0, 256, count).astype(np.uint8)
    want = repack(kind, blocks, rows, columns)
    expected = [want.codes, want.scales] if want.scales.size else [want.codes]
    return OpCase("webgpu_py.repack", [Const(blocks), kind, rows, columns], expected, limits=limits)


def name(c):
    return f"{c.args[1]} {c.args[2:]} {c.limits or ''}"


def grid(most):
    return {"max_compute_workgroups_per_dimension": most}


def widest(width):
    return {"max_compute_invocations_per_workgroup": width}


def binding(nbytes):
    return {"max_storage_buffer_binding_size": nbytes}


BLOCKS = [k for k in SUPPORTED if BY_NAME[k].elements > 1]
SMALL = [k for k in BLOCKS if BY_NAME[k].elements == 32]
LARGE = [k for k in BLOCKS if BY_NAME[k].elements == 256]
CASES = [
    *(case(k, 3, n * BY_NAME[k].elements) for k in BLOCKS for n in (1, 2, 3, 5)),
    *(case(k, 1, n * BY_NAME[k].elements) for k in BLOCKS for n in (1, 2)),
    case("Q4_0", 64, 96),
    *(case(k, 65, 32, widest(w)) for k in ("Q4_0", "Q5_1") for w in (1, 32, 128)),
    *(case("Q6_K", 5, 512, widest(w)) for w in (2, 64)),
    # Three workgroups in a grid of 2 x 2, and five and seven, for which they get wider.
    case("Q4_0", 301, 32, grid(2)),
    case("Q8_0", 301, 32, grid(2)),
    case("Q6_K", 25, 512, grid(2)),
    # In pieces of 128 or 256 blocks, the last of which has an odd number.
    *(case(k, 301, 256, binding(1 << 15)) for k in LARGE),
    *(case(k, 301, 32, binding(4608)) for k in SMALL),
    # Only what is stored, or only the codes, are larger than the limit.
    case("Q4_0", 129, 32, binding(2304)),
    case("Q5_0", 129, 32, binding(4096)),
    *(case(k, 5, 7) for k in ("F16", "BF16", "F32")),
    case("F16", 3, 6),
    case("BF16", 300, 33, binding(16384)),
]


@pytest.mark.parametrize("c", CASES, ids=name)
def test_cpu(c):
    check(c)


def test_browser(gpu):
    check_all(CASES, gpu)


def test_values_are_those_of_the_gguf_package(gpu):
    cases, goldens = [], np.load(GOLDENS)
    for kind in BLOCKS:
        blocks, values = goldens[f"{kind}_blocks"].reshape(-1), goldens[f"{kind}_values"]
        cases.append(OpCase("webgpu_py.repack", [Const(blocks), kind, *values.shape], []))
    for c, [(codes, scales)] in zip(cases, run_all(cases, gpu), strict=True):
        kind, values = c.args[1], goldens[f"{c.args[1]}_values"]
        found = unpack(PackedWeight(LAYOUTS[kind], *values.shape, codes, scales))
        assert np.array_equal(found.view(np.uint32), values.view(np.uint32)), kind


def test_results_stay_from_run_to_run(gpu):
    cut = case("Q4_0", 301, 32, binding(4608))
    check(replace(cut, runs=2 * [({}, cut.expected)]), gpu)


@pytest.mark.parametrize(
    ("blocks", "kind", "rows", "columns", "error", "text"),
    [
        (np.zeros(18, np.uint8), "Q2_K", 1, 32, UnsupportedModel, "Q2_K"),
        (np.zeros(17, np.uint8), "Q4_0", 1, 32, ShapeError, "takes 18 bytes, blocks has 17"),
        (np.zeros(18, np.uint8), "Q4_0", 1, 31, ShapeError, "no matrix of Q4_0 blocks of 32"),
        (np.zeros(18, np.uint8), "Q4_0", 0, 32, ShapeError, "no matrix"),
        (np.zeros(18, np.int32), "Q4_0", 1, 32, DtypeError, "blocks is int32"),
    ],
)
def test_refused_before_any_buffer(blocks, kind, rows, columns, error, text):
    with pytest.raises(error, match=text) as caught:
        check(OpCase("webgpu_py.repack", [Const(blocks), kind, rows, columns], []))
    assert "[buffers created: 0]" in str(caught.value)
