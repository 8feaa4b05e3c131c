"""Conversions between dtypes: every pair, edge sizes, saturation, live shapes, errors."""

import numpy as np
import pytest

from ops.opcase import In, OpCase, check, check_all
from webgpu_py import DtypeError

TO_COPY = "aten._to_copy.default"
CODES = {"uint8": 0, "int8": 1, "int32": 3, "float32": 6, "bool": 11}
NUMBERS = [0, 1, -1, 2, 127, -128, 200, 255, 256, -300, 70000, -70001, 3, 5, 9]


def values(dtype, n):
    whole = np.resize(np.array(NUMBERS), n)
    if dtype == "float32":
        return (whole + np.where(whole > 0, 0.75, -0.25)).astype(np.float32)
    return whole != 0 if dtype == "bool" else whole.astype(dtype)


def converted(x, dtype):
    """One element after the other, in Python's own integers."""
    found = []
    for v in x.ravel():
        if dtype == "float32":
            found.append(float(v))
        elif dtype == "bool":
            found.append(v != 0)
        else:
            bits = {"uint8": 8, "int8": 8, "int32": 32}[dtype]
            whole = int(v) % 2**bits
            found.append(
                whole - 2**bits if dtype != "uint8" and whole >= 2 ** (bits - 1) else whole
            )
    return np.array(found, dtype).reshape(x.shape)


def case(source, target, n, name=TO_COPY, limits=None):
    x = values(source, n)
    return OpCase(name, [In("x", x), CODES[target]], [converted(x, target)], limits=limits)


def special():
    x = np.array([np.nan, np.inf, -np.inf, 3e9, -3e9, 2147483520, 0.0, -0.0, 1e-40], np.float32)
    whole = [0, 2**31 - 1, -(2**31), 2**31 - 1, -(2**31), 2147483520, 0, 0, 0]
    truth = [True, True, True, True, True, True, False, False, True]
    return [
        OpCase(TO_COPY, [In("x", x), "int32"], [np.array(whole, np.int32)]),
        OpCase(TO_COPY, [In("x", x), "bool"], [np.array(truth)]),
    ]


def live_case():
    runs = [
        ({"x": values("bool", n)}, [converted(values("bool", n), "float32")]) for n in (1, 9, 2)
    ]
    first = values("bool", 5)
    return OpCase(TO_COPY, [In("x", first, (9,)), "float32"], [converted(first, "float32")], runs)


CASES = [
    *(case(a, b, len(NUMBERS)) for a in CODES for b in CODES),
    *(case("int32", "float32", n) for n in (1, 63, 64, 65, 257)),
    *(case("bool", "float32", n) for n in (1, 4, 5, 67)),
    case("float32", "int8", 5, "dim_order_ops._to_dim_order_copy.default"),
    case("int32", "float32", 6000, limits={"max_compute_workgroups_per_dimension": 4}),
    *(
        case("float32", "uint8", 131, limits={"max_compute_invocations_per_workgroup": w})
        for w in (1, 32, 64, 128)
    ),
    *special(),
    live_case(),
]


@pytest.mark.parametrize("c", CASES, ids=str)
def test_cpu(c):
    check(c)


def test_browser(gpu):
    check_all(CASES, gpu)


@pytest.mark.parametrize(
    ("x", "dtype", "text"),
    [
        (np.zeros(3, np.uint32), "float32", "x is uint32"),
        (np.zeros(3, np.float32), 15, "dtype is 15"),
        (np.zeros(3, np.float32), "complex64", "dtype is 'complex64'"),
    ],
)
def test_refused_before_any_buffer(x, dtype, text):
    with pytest.raises(DtypeError, match=text) as caught:
        check(OpCase(TO_COPY, [In("x", x), dtype], []))
    assert "[buffers created: 0]" in str(caught.value)
