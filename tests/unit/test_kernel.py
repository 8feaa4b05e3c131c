"""The kernels' interface, as parsed from their WGSL."""

import re

import pytest

from webgpu_py.assets import list_assets
from webgpu_py.errors import LimitExceeded
from webgpu_py.graph.kernel import baked, load_kernel, parse_kernel

KERNELS = [
    name.removeprefix("wgsl/").removesuffix(".wgsl")
    for name in list_assets("wgsl")
    if not name.startswith("wgsl/lib/")
]


def test_layout_follows_wgsl():
    kernel = parse_kernel(
        "k",
        """
        struct Params { a: u32, // a comment: u32,
            b: f32, v: vec4<u32>, c: i32, w: array<vec4<f32>, 2> }
        @group(0) @binding(3) var<storage, read> x: array<f32>;
        @group(0) @binding(10) var<uniform> params: Params;
        override wg_size: u32 = 1u;
        """,
    )
    assert [(f.name, f.offset, f.code, f.count) for f in kernel.fields] == [
        ("a", 0, "I", 1),
        ("b", 4, "f", 1),
        ("v", 16, "I", 4),
        ("c", 32, "i", 1),
        ("w", 48, "f", 8),
    ]
    assert kernel.params_nbytes == 80
    assert [(b.name, b.number, b.access) for b in kernel.bindings] == [
        ("x", 3, "read"),
        ("params", 10, "uniform"),
    ]
    assert kernel.overrides == {"wg_size"}
    with pytest.raises(KeyError, match="Params"):
        kernel.pack({"a": 1})


@pytest.mark.parametrize("name", KERNELS)
def test_house_rules(name):
    kernel = load_kernel(name)
    storage = [b for b in kernel.bindings if b.access != "uniform"]
    assert len(storage) <= 8, "more storage bindings than every device has"
    numbers = [b.number for b in kernel.bindings]
    assert len(set(numbers)) == len(numbers)
    assert "arrayLength" not in kernel.wgsl
    for word in ("requires ", "ptr<workgroup", "diagnostic(", "bitcast<vec2<f16>>"):
        assert word not in kernel.wgsl, f"{word!r} is not portable"
    base = not name.endswith(("_f16", "_subgroup", "_matrix", "_int8", "_dot"))
    if base:
        assert "enable " not in kernel.wgsl
        assert not re.search(r"\bsubgroup[A-Z]", kernel.wgsl)
    assert "@workgroup_size(" in kernel.wgsl


def test_baked_params_are_constants_of_the_text():
    kernel = load_kernel("rms_norm")
    made = baked(kernel, {"rows": 3, "width": 2**31, "eps": 0.1}, (5, 7, 1))
    assert "const params = Params(3u, 2147483648u, 0.10000000149011612f);" in made.wgsl
    assert "group.y * 5u" in made.wgsl and "groups.x" not in made.wgsl
    assert "var<uniform>" not in made.wgsl
    assert [b.name for b in made.bindings] == ["x", "weight", "y"]
    assert (made.fields, made.params_nbytes, made.overrides) == ((), 0, kernel.overrides)
    assert baked(kernel, {"rows": 3, "width": 2**31, "eps": 0.1}, (5, 7, 1)) == made


def test_what_cannot_be_baked():
    with pytest.raises(KeyError, match="has vectors among its Params"):
        baked(load_kernel("attention_decode"), {}, (1, 1, 1))
    with pytest.raises(LimitExceeded, match="rows is -1"):
        baked(load_kernel("rms_norm"), {"rows": -1, "width": 1, "eps": 0.0}, (1, 1, 1))
