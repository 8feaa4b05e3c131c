"""Operators of a user's own: declared, checked, run; and what each slip is called."""

import asyncio

import numpy as np
import pytest

import pte_writer as w
import webgpu_py as wg
from webgpu_py.graph.custom import CustomKernel
from webgpu_py.graph.kernel import Kernel

SCALED = """//! lib: grid
struct Params {
    numel: u32,
    by: f32, // what to multiply with
}
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(10) var<uniform> params: Params;

@compute @workgroup_size(wg_size)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = linear_index(id, groups);
    if (i < params.numel) {
        y[i] = x[i] * params.by;
    }
}
"""


def declare(signature="test.scaled(x, by=2.0) -> y", wgsl=SCALED, rule=None):
    def scaled(x, by):
        return wg.Launch(x.shape, {"numel": x.numel, "by": by})

    return wg.kernel(signature, wgsl)(rule or scaled)


def built(kind="cpu", args=(3.0,), dtype="float32", **limits):
    async def body():
        g = wg.Graph()
        g.output("y", g.call("test.scaled", g.input("x", (wg.dim("n", max=5), 4), dtype), *args))
        return await g.build(await wg.request_device(kind), limits or None)

    return asyncio.run(body())


def test_it_runs_on_the_cpu_device_with_live_shapes_and_defaults():
    made = declare()

    @made.reference
    def scaled(x, by):
        return x.astype(np.float64) * by

    assert isinstance(made, CustomKernel) and made.name == "test.scaled"
    assert "test.scaled" in wg.operator_names()
    x = np.arange(12, dtype=np.float32).reshape(3, 4) / 7
    out = asyncio.run(built().run(x=x))
    np.testing.assert_array_equal(out["y"], (x.astype(np.float64) * 3).astype(np.float32))
    out = asyncio.run(built(args=()).run(x=x[:2]))
    np.testing.assert_array_equal(out["y"], x[:2] * 2)


def test_without_a_reference_the_cpu_device_says_so():
    declare()
    session = built()
    with pytest.raises(wg.UnsupportedOperator, match=r"no NumPy reference.*@<kernel>\.reference"):
        asyncio.run(session.run(x=np.zeros((1, 4), np.float32)))


def lowered(session):
    return next(iter(session._residence.variants.values())).lowered.dispatches


def test_a_call_is_one_dispatch_of_as_many_workgroups_as_there_is_work():
    declare()
    (d,) = lowered(built())
    assert d.grid == (1, 1, 1) and dict(d.constants) == {"wg_size": 64.0}
    assert isinstance(d.kernel, Kernel) and np.frombuffer(d.params[:4], "<u4")[0] == 20
    assert np.frombuffer(d.params[4:8], "<f4")[0] == 3
    limits = {"max_compute_workgroup_size_x": 4, "max_compute_workgroups_per_dimension": 3}
    (d,) = lowered(built(**limits))
    assert d.grid == (3, 2, 1)


def test_threads_groups_and_overrides_are_the_rules():
    wgsl = SCALED.replace("@compute", "override turn: u32 = 0u;\n@compute")

    def rule(x, by):
        return wg.Launch(
            x.shape, {"numel": 1, "by": by}, threads=x.shape[0], constants={"turn": 5, "wg_size": 2}
        )

    declare(wgsl=wgsl, rule=rule)
    (d,) = lowered(built())
    assert d.grid == (3, 1, 1) and dict(d.constants) == {"turn": 5.0, "wg_size": 2.0}
    declare(rule=lambda x, by: wg.Launch(x.shape, {"numel": 1, "by": by}, groups=x.shape))
    assert lowered(built())[0].grid == (5, 4, 1)


def test_declaring_again_replaces_the_kernel_for_graphs_built_later():
    declare()
    before = lowered(built())[0].kernel
    declare(wgsl=SCALED.replace("x[i] *", "x[i] +"))
    after = lowered(built())[0].kernel
    assert before.name == after.name and before.wgsl != after.wgsl


def test_several_results_optional_and_written_arguments():
    wgsl = """
    @group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
    @group(0) @binding(1) var<storage, read> bias: array<f32>;
    @group(0) @binding(2) var<storage, read_write> count: array<atomic<i32>>;
    @group(0) @binding(3) var<storage, read_write> low: array<vec2f>;
    @group(0) @binding(4) var<storage, read_write> high: array<u32>;
    @compute @workgroup_size(8, 4u)
    fn main() {}
    """

    @wg.kernel("test.split(x, count!, bias=None) -> [low, high]", wgsl)
    def split(x, count, bias):
        assert bias is None
        return wg.Launch({"low": x.shape[1:], "high": (3,)}, threads=65)

    @split.reference
    def _(x, count, bias):
        count += 1
        return x[0] + 0.5, np.array([7, 8, 9])

    async def body():
        g = wg.Graph()
        count = g.input("count", (2,), "int32")
        low, high = g.call("test.split", g.input("x", (2, 4)), count)
        for name, value in (("low", low), ("high", high), ("count_", count)):
            g.output(name, value)
        session = await g.build(await wg.request_device("cpu"))
        assert lowered(session)[0].grid == (3, 1, 1)
        assert [low.dtype, high.dtype] == ["float32", "uint32"]
        x = np.arange(8, dtype=np.float32).reshape(2, 4)
        return await session.run(x=x, count=np.array([4, 6], np.int32))

    out = asyncio.run(body())
    np.testing.assert_array_equal(out["low"], [0.5, 1.5, 2.5, 3.5])
    np.testing.assert_array_equal(out["high"], [7, 8, 9])
    np.testing.assert_array_equal(out["count_"], [5, 7])


Y = "@group(0) @binding(1) var<storage, read_write> y: array<f32>;"


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ("fn main", "fn mian", 10, "the entry point here is 'mian'"),
        ("@compute", "// @compute", 1, "there is none"),
        ("read> x", "read> z", 6, r"binding 'z' is neither an argument \(x, by\) nor a result"),
        ("read> x", "read_write> x", 6, "'x' is read_write here.*only reads it"),
        ("read_write> y", "read> y", 7, "'y' is read here.*writes it"),
        ("@group(0) @binding(1)", "@group(1) @binding(1)", 7, "all bindings are in group 0"),
        ("@binding(1)", "@binding(0)", 7, "binding 0 of 'y' is that of 'x'"),
        ("x: array<f32>", "x: array<f16>", 6, "'x' is array<f16>"),
        ("x: array<f32>", "x: f32", 6, "'x' is f32"),
        (Y, "", 1, "no `var<storage, read_write>` is named as the result 'y'"),
        ("by: f32", "by: vec2<f32>", 4, "field 'by' is vec2<f32>"),
        ("by: f32", "by: mat4x4<f32>", 4, "field 'by' is mat4x4<f32>"),
        ("struct Params", "struct Parameters", 8, "there is no `struct Params"),
        ("params: Params", "params: Other", 8, "uniform 'params' is Other, must be Params"),
        ("@workgroup_size(wg_size)", "@workgroup_size(side)", 10, "must be numbers, or `wg_size`"),
        ("lib: grid", "lib: gird", 1, "gird"),
        (
            "lib: grid",
            "lib: grid, fault\n@group(0) @binding(12) var<uniform> p: Params;",
            2,
            "12 is",
        ),
    ],
)
def test_a_slip_in_the_wgsl_is_named_with_its_line(old, new, line, says):
    assert SCALED.count(old) == 1 or old in ("@compute",)
    with pytest.raises(wg.FormatError, match=says) as raised:
        declare(wgsl=SCALED.replace(old, new))
    assert str(raised.value).startswith(f"test.scaled.wgsl:{line}: ")


def test_params_need_a_uniform():
    wgsl = SCALED.replace("@group(0) @binding(10) var<uniform> params: Params;", "")
    with pytest.raises(wg.FormatError, match=r"scaled\.wgsl:2: Params needs"):
        declare(wgsl=wgsl)


@pytest.mark.parametrize(
    ("launch", "kind", "says"),
    [
        (
            lambda x: wg.Launch(x.shape, {"numel": 1}),
            wg.FormatError,
            r"'by' \(test.scaled.wgsl:4\)",
        ),
        (
            lambda x: wg.Launch(x.shape, {"numel": 1, "by": 1, "bye": 2}),
            wg.FormatError,
            r"no Params field 'bye'; it has \['by', 'numel'\]",
        ),
        (
            lambda x: wg.Launch(x.shape, {"numel": 1, "by": 1}, constants={"size": 2}),
            wg.FormatError,
            r"no override 'size'; it has \['wg_size'\]",
        ),
        (lambda x: x.shape, wg.ShapeError, r"must be a webgpu_py\.Launch"),
        (lambda x: x.shape[7], wg.ShapeError, r"refuses \{'x': \(5, 4\)\}: IndexError"),
        (
            lambda x: wg.Launch((0, 4), {"numel": 1, "by": 1}),
            wg.ShapeError,
            r"y \[0, 4\], dims must be positive",
        ),
        (
            lambda x: wg.Launch({"z": x.shape}, {"numel": 1, "by": 1}),
            wg.ShapeError,
            r"shapes of \['z'\], results are \['y'\]",
        ),
        (
            lambda x: wg.Launch(x.shape, {"numel": 1, "by": 1}, threads=4, groups=1),
            wg.ShapeError,
            "both threads and groups",
        ),
        (
            lambda x: wg.Launch(x.shape, {"numel": -1, "by": 1}),
            wg.LimitExceeded,
            "numel is -1, which has no 32-bit form",
        ),
    ],
)
def test_a_slip_in_the_rule_is_named_with_its_call(launch, kind, says):
    declare(rule=lambda x, by: launch(x))
    with pytest.raises(kind, match=says) as raised:
        built()
    assert "test.scaled" in str(raised.value)


def test_arguments_are_checked_as_those_of_the_packages_operators():
    declare()
    with pytest.raises(wg.DtypeError, match="x is int32, must be float32"):
        built(dtype="int32")
    with pytest.raises(wg.ShapeError, match="at most 2 arguments, got 3"):
        built(args=(1.0, 2.0))
    g = wg.Graph()
    with pytest.raises(wg.UnsupportedOperator, match="by is a SymInt"):
        g.call("test.scaled", g.input("x", (4,)), g.symint("n"))
    with pytest.raises(wg.FormatError, match="by is a tensor"):
        g.call("test.scaled", g.input("z", (4,)), g.input("w", (4,)))
    assert len(g.ir.nodes) == 0


@pytest.mark.parametrize(
    ("signature", "kind", "says"),
    [
        ("test.scaled(x, by=2.0)", wg.FormatError, r"write 'my\.op"),
        ("test.scaled(x, by=two) -> y", wg.FormatError, r"write 'my\.op"),
        ("test.scaled(x, by=2.0) -> symint y", wg.FormatError, "results are tensors"),
        ("test.scaled(x, by=2.0, live=None) -> y", wg.FormatError, "the session's own"),
        ("test.scaled(x, factor=2.0) -> y", wg.FormatError, r"takes \(x, by\), must take"),
        ("scaled(x, by=2.0) -> y", wg.UnsupportedOperator, "has a namespace"),
        ("aten.mul.Tensor(x, by=2.0) -> y", wg.UnsupportedOperator, "has a namespace"),
    ],
)
def test_a_slip_in_the_signature_is_named(signature, kind, says):
    with pytest.raises(kind, match=says):
        declare(signature)


def test_more_workgroups_than_a_dimension_has_need_an_index_that_folds():
    wgsl = SCALED.replace("//! lib: grid", "").replace(
        "@workgroup_size(wg_size)", "@workgroup_size(2)"
    )
    declare(wgsl=wgsl.replace("linear_index(id, groups)", "id.x"))
    assert lowered(built())[0].grid == (10, 1, 1)
    with pytest.raises(wg.LimitExceeded, match=r"10 workgroups, allowed are 9.*lib: grid"):
        built(max_compute_workgroups_per_dimension=9)
    with pytest.raises(
        wg.LimitExceeded, match="a workgroup of 2 invocations, this device allows 1"
    ):
        built(max_compute_invocations_per_workgroup=1)


def test_helpers_of_the_package_stay_what_they_are():
    declare("test.sigmoid(x, by=2.0) -> y")
    g = wg.Graph()
    g.sigmoid(g.input("x", (4,)))
    assert g.ir.nodes[0].op == "aten.sigmoid.default"


def test_a_program_may_call_what_the_user_declared():
    values = [w.vk_tensor("float32", [2, 3]), w.vk_double(3.0), w.vk_tensor("float32", [2, 3])]
    blob = w.vk_blob(values, [("aten.scaled_anew.default", [0, 1, 2])], [0], [2])
    ports = [w.tensor("float32", [2, 3]), w.tensor("float32", [2, 3], planned=True)]
    plan = w.plan(ports, [w.delegate_call(0, [0, 1])], [0], [1], delegates=[w.delegate(0)])
    data = w.pte([plan], segments=[blob])
    x = np.arange(6, dtype=np.float32).reshape(2, 3)

    async def run():
        program = await wg.load(data, device=await wg.request_device("cpu"))
        return await program.forward(x)

    with pytest.raises(wg.UnsupportedOperator, match=r"aten\.scaled_anew\.default"):
        asyncio.run(run())
    declare("aten.scaled_anew.default(x, by) -> y").reference(lambda x, by: x * by)
    np.testing.assert_array_equal(asyncio.run(run()), 3 * x)
