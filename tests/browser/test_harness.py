"""The harness itself: values in and out, errors, strict CSP, adapter."""

import asyncio

import numpy as np
import pytest

from webgpu_py.errors import ShapeError


def test_adapter_is_there(gpu):
    assert gpu.adapter["limits"]["maxComputeInvocationsPerWorkgroup"] >= 256


def test_last_expression_comes_back(gpu):
    assert gpu.run("1 + 1") == 2


def test_arrays_both_ways(gpu):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)[:, ::2]
    out = gpu.run("{'y': x * s, 'dtypes': (str(x.dtype), n)}", x=x, s=np.float32(2), n=None)
    np.testing.assert_array_equal(out["y"], x * 2)
    assert out["dtypes"] == ("float32", None)


def test_top_level_await_and_functions(gpu):
    async def twice(a):
        import asyncio

        await asyncio.sleep(0)
        return a + a

    assert gpu.call(twice, a=21) == 42


def test_package_errors_keep_their_class(gpu):
    with pytest.raises(ShapeError, match="3 rows") as caught:
        gpu.run("from webgpu_py.errors import ShapeError\nraise ShapeError('3 rows')")
    assert caught.value.code == "ShapeError"
    assert "Traceback" in "".join(caught.value.__notes__)


def test_builtin_errors_keep_their_class(gpu):
    with pytest.raises(ZeroDivisionError):
        gpu.run("1 / 0")
    assert gpu.run("'still alive'") == "still alive"


def test_asyncio_stays_usable_beside_the_browser(gpu):
    async def nothing():
        return 1

    assert gpu.run("1") == asyncio.run(nothing())


def test_progress_names_every_stage_with_bytes(gpu):
    stages = [p["stage"] for p in gpu.progress]
    assert list(dict.fromkeys(stages)) == ["python", "packages", "webgpu_py", "ready"]
    assert max(p["loaded"] for p in gpu.progress if p["stage"] == "python") > 10_000_000


def test_a_shader_runs(gpu):
    code = """
    from js import navigator, Object
    adapter = await navigator.gpu.requestAdapter()
    device = await adapter.requestDevice()
    module = device.createShaderModule(code="@compute @workgroup_size(1) fn main() {}")
    info = await module.getCompilationInfo()
    len(info.messages)
    """
    assert gpu.run(code) == 0


def test_page_and_server(page, server):
    server.pages["/hello.html"] = b"<!doctype html><p id=p>hi</p>"
    page.goto(f"{server.url}/hello.html")
    assert page.locator("#p").inner_text() == "hi"
    assert server.log[0].path == "/hello.html"
