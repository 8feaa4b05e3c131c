"""Every portable operator against PyTorch, as recorded by `goldens/make_portable.py`."""

import base64
import json
from pathlib import Path

import numpy as np
import pytest

from webgpu_py.portable import FAMILIES, find_kernel
from webgpu_py.portable.dtypes import store
from webgpu_py.portable.kernel import KERNELS, Out

CASES = json.loads((Path(__file__).parent / "goldens" / "portable.json").read_text())

TOLERANCE = {"float16": 2e-3, "bfloat16": 1e-2, "float32": 3e-6, "float64": 1e-6}


def decode(value):
    if isinstance(value, list):
        return [decode(v) for v in value]
    if not isinstance(value, dict):
        return value
    if "float" in value:
        return float(value["float"])
    raw = base64.b64decode(value["data"])
    if value["dtype"] == "bfloat16":
        bits = np.frombuffer(raw, "<u2").astype(np.uint32) << 16
        return bits.view(np.float32).reshape(value["shape"])
    return np.frombuffer(raw, value["dtype"]).reshape(value["shape"])


def names(case):
    return case["op"].replace("::", ".")


@pytest.mark.parametrize(
    "case", [pytest.param(c, id=f"{i}-{names(c)}") for i, c in enumerate(CASES)]
)
def test_same_as_pytorch(case):
    kernel, args = find_kernel(case["op"]), decode(case["args"])
    assert kernel is not None
    assert kernel.arity == len(args)
    before = json.dumps(case["args"])
    expected = decode(case["results"])
    outs = [Out(d, e.shape) for d, e in zip(case["outs"], expected, strict=True)]
    results = kernel(args, outs)
    if kernel.outs in (0, 1):
        results = [results]
    assert len(results) == len(expected)
    for result, golden, out in zip(results, expected, outs, strict=True):
        stored = store(result, out.dtype)
        assert stored.shape == golden.shape
        assert stored.dtype == golden.dtype
        if golden.dtype.kind == "f":
            limit = TOLERANCE[out.dtype]
            np.testing.assert_allclose(stored, golden, rtol=limit, atol=limit, equal_nan=True)
        else:
            np.testing.assert_array_equal(stored, golden)
    assert json.dumps(case["args"]) == before


def test_every_kernel_is_tried_and_found_where_the_index_says():
    for family, operators in FAMILIES.items():
        for operator in operators.split():
            assert find_kernel(f"aten::{operator}") is None or operator.endswith("_")
        found = {n for n, k in KERNELS.items() if k.function.__module__.endswith(f".{family}")}
        if family != "symbolic":
            bare = {n.partition("::")[2].partition(".")[0] for n in found}
            assert bare == set(operators.split())
    # Without a CPU form to record, or random in content.
    unrecorded = {n for n in KERNELS if n.startswith(("executorch_prim::", "et_copy::"))}
    unrecorded |= {"aten::sym_size.int", "aten::sym_numel", "aten::_local_scalar_dense"}
    unrecorded |= {"aten::empty.out", "dim_order_ops::_empty_dim_order.out"}
    assert set(KERNELS) - unrecorded == {case["op"] for case in CASES}
