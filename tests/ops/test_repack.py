"""webgpu_py.repack: every stored type, bit for bit, at any alignment and in slices."""

import numpy as np
import pytest

from ops.opcase import Const, OpCase, check, check_all
from webgpu_py import DtypeError, ShapeError, UnsupportedModel
from webgpu_py.quant.ggml import BY_NAME, SUPPORTED
from webgpu_py.quant.repack import repack


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


BLOCKS = [k for k in SUPPORTED if BY_NAME[k].elements > 1]
CASES = [
    *(case(kind, 3, 3 * BY_NAME[kind].elements) for kind in BLOCKS),
    *(case(kind, 1, BY_NAME[kind].elements) for kind in BLOCKS),
    case("Q4_0", 64, 96),
    *(case("Q4_0", 65, 32, {"max_compute_invocations_per_workgroup": w}) for w in (1, 32, 128)),
    case("Q6_K", 5, 512, {"max_compute_workgroups_per_dimension": 4}),
    # 256 blocks and some in pieces of 128, which begin at all four alignments.
    *(
        case(kind, 300, BY_NAME[kind].elements, {"max_storage_buffer_binding_size": 1 << 16})
        for kind in ("Q4_K", "Q5_K", "Q6_K")
    ),
    *(
        case(kind, 700, 32, {"max_storage_buffer_binding_size": 8192})
        for kind in ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0")
    ),
    *(case(kind, 5, 7) for kind in ("F16", "BF16", "F32")),
    case("F16", 3, 6),
    case("BF16", 300, 33, {"max_storage_buffer_binding_size": 16384}),
]


@pytest.mark.parametrize("c", CASES, ids=name)
def test_cpu(c):
    check(c)


def test_browser(gpu):
    check_all(CASES, gpu)


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
