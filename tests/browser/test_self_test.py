"""The self test in the browser: what it costs, that it is remembered, and a GPU that fails it."""

import pytest

from browser.pages import Visit
from tiny_model import tiny_gguf
from webgpu_py.assets import asset_path
from webgpu_py.errors import FeatureMissing
from webgpu_py.host.server import Server
from webgpu_py.ops.packed_kernels import INTEGER_DOT


async def runs_seen():
    """Runs of three requests for a device: as it comes, forgotten by Python, and a fresh test."""
    import time

    import webgpu_py as wg
    from webgpu_py import self_test

    device = await wg.request_device("browser")
    found = []
    for forget in (False, True):
        if forget:
            self_test._passed.clear()
        before = device.bridge.stats()["runs"]
        await (await wg.request_device("browser")).close()
        found.append(device.bridge.stats()["runs"] - before)
    before, start = device.bridge.stats(), time.perf_counter()
    await self_test.self_test(device)
    seconds, after = time.perf_counter() - start, device.bridge.stats()
    await device.close()
    left = {k: after[k] - before[k] for k in ("buffers", "buffer_nbytes", "plans", "runs")}
    return found, left, seconds


def test_it_runs_once_and_leaves_nothing(gpu):
    found, left, seconds = gpu.call(runs_seen)
    print(f"self test: {1e3 * seconds:.0f} ms")
    assert found == [0, 0]
    assert left == {"buffers": 0, "buffer_nbytes": 0, "plans": 0, "runs": 3}


async def remembered_topics():
    """What is recalled of two topics, and of one by a device with other features."""
    import webgpu_py as wg
    from webgpu_py.remembered import keep, recall

    device = await wg.request_device("browser")
    other = await wg.request_device("browser", features=[])
    await keep(device, "one", "1")
    await keep(device, "another", "")
    found = [await recall(device, topic) for topic in ("one", "another", "third")]
    found.append(await recall(other, "one"))
    await device.close()
    await other.close()
    return found


def test_what_is_remembered_is_kept_by_topic_and_adapter(gpu):
    assert gpu.call(remembered_topics) == ["1", "", None, None]


async def features_of(names):
    import webgpu_py as wg

    device = await wg.request_device(features=names)
    found = sorted(device.features)
    await device.close()
    return found


def test_the_caller_says_which_features_are_used(gpu):
    assert gpu.call(features_of, names=["subgroups"]) == ["subgroups"]
    assert gpu.call(features_of, names=[]) == []
    assert gpu.call(features_of, names=[INTEGER_DOT]) == [INTEGER_DOT], "WGSL's own, not a device's"
    with pytest.raises(FeatureMissing, match="shader-f61 are none that kernels use"):
        gpu.call(features_of, names=["shader-f61"])


@pytest.fixture
def wrong(browser, mounts, settings, request):
    """A page on a GPU whose results have a wrong bit."""
    js = asset_path("js")
    mounts = {**mounts, "/js/whole.js": js / "bridge.js"}
    mounts["/js/bridge.js"] = request.path.parent / "harness" / "wrong-half.js"
    with Server(mounts, headers=dict(settings.headers)) as server:
        server.pages["/tiny.gguf"] = tiny_gguf()
        one = Visit(browser, server)
        yield one
        one.close()


@pytest.mark.slow
def test_the_page_does_without_a_gpu_that_fails_it_and_says_why(wrong):
    wrong.goto("/?model=tiny.gguf")
    warning = wrong.page.locator("#warning").inner_text()
    assert "computes wrong numbers" in warning and "self test, rows, run 1 of 3" in warning
    assert "NumPy" in wrong.by("adapter").inner_text()
