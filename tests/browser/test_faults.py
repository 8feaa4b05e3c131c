"""Faults in the browser: every call fails once, the GPU process dies, what was lost comes back."""

from collections import Counter

import pytest

from browser.pages import Visit
from tiny_model import tiny_gguf
from webgpu_py.host.browser_thread import BrowserThread
from webgpu_py.host.server import Server
from webgpu_py.testing.gpu import Gpu

PACKAGES = ("tiktoken", "regex", "jinja2")
KINDS = {
    "createBuffer",
    "createShaderModule",
    "createComputePipelineAsync",
    "createBindGroup",
    "writeBuffer",
    "submit",
    "mapAsync",
}


@pytest.fixture(scope="module")
def faulty(browser, mounts, settings):
    with Server(dict(mounts), headers=dict(settings.headers)) as server:
        server.pages["/tiny.gguf"] = tiny_gguf()
        gpu = Gpu(browser, server, "/harness/faulty-half.js", PACKAGES)
        yield gpu
        gpu.close()


async def sweep(url, loss, first, step):
    """Fail calls first, first + step ... of a load and an answer; what became of each.

    Returns {failed call: {outcome: how often}}, and the number of calls of a run without a fault.
    """
    import asyncio

    import _webgpu_py_js as half

    import webgpu_py as wg
    from webgpu_py.llm import LLM

    device = await wg.request_device("browser")

    async def answer(llm):
        stream = llm.generate("Hi", max_tokens=3)
        await stream.text()
        return stream.tokens

    async def load():
        return await LLM.load(url, device=device, context=8)

    def nothing_left(at):
        stats, alive = device.bridge.stats(), half.alive().to_py()
        assert (stats["buffers"], stats["plans"], alive) == (0, 0, [0, 0]), (at, stats, alive)

    async def once(at, expected):
        await half.forget(url)
        # Asked for again, and compiled no second time: the browser still has them.
        device._pipelines.clear()
        half.arm(at, loss)
        llm, outcome = None, "right all the same"
        try:
            llm = await load()
            tokens = await answer(llm)
            assert tokens == (expected or tokens), (at, tokens, expected)
        except wg.WebGPUPyError as error:
            outcome = error.code
        calls, failed = half.fired().to_py()
        half.arm(0, False)
        if llm is None:
            nothing_left(at)
            await device.restart()
            llm = await load()
        elif outcome != "right all the same":
            await llm.restart()
        tokens = await answer(llm)
        assert tokens == (expected or tokens), (at, failed, outcome)
        llm.close()
        nothing_left(at)
        return failed, outcome, calls, tokens

    _, outcome, calls, expected = await once(0, None)
    assert outcome == "right all the same"
    found = {}
    for at in range(first, calls + 1, step):
        failed, outcome, _, _ = await asyncio.wait_for(once(at, expected), 60)
        if failed:
            of = found.setdefault(failed, {})
            of[outcome] = of.get(outcome, 0) + 1
    await device.close()
    return found, calls


def swept(faulty, **which):
    url = faulty.server.url + "/tiny.gguf"
    found, calls = faulty.call(sweep, url=url, timeout_s=900, **which)
    heard = Counter()
    for outcomes in found.values():
        heard.update(outcomes)
    print(f"\n{calls} calls of a load and an answer, {sum(heard.values())} failed; what was heard:")
    for name, outcomes in sorted(found.items()):
        print(f"  {name:28}", ", ".join(f"{k} {n}" for k, n in outcomes.items()))
    return found, heard, calls


@pytest.mark.slow
@pytest.mark.parametrize("half", [0, 1])
def test_every_call_of_a_load_and_an_answer_fails_once(faulty, half):
    found, heard, calls = swept(faulty, loss=False, first=1 + half, step=2)
    assert set(found) >= KINDS
    # Only what is kept in the browser may fail unheard.
    for name in KINDS:
        assert "right all the same" not in found[name], name
    assert sum(heard.values()) > 0.45 * calls


@pytest.mark.slow
def test_the_device_is_lost_all_along_a_load_and_an_answer(faulty):
    """At every eleventh call, as each compiles all kernels anew; CPython loses it at every one."""
    _, heard, calls = swept(faulty, loss=True, first=5, step=11)
    assert set(heard) == {"DeviceLost"}
    assert heard["DeviceLost"] > calls / 12


async def not_granted():
    import _webgpu_py_js as half

    import webgpu_py as wg

    found = []
    for at in range(1, 4):
        half.arm(at, False)
        try:
            await (await wg.request_device("browser")).close()
            found.append("granted")
        except wg.WebGPUPyError as error:
            found.append(error.code)
    half.arm(0, False)
    return found


@pytest.mark.slow
def test_a_device_that_is_not_granted(faulty):
    # One request for an adapter may come to nothing, it is asked for again.
    assert faulty.call(not_granted) == ["granted", "granted", "NoAdapter"]


CONNECT = """async () => {
  const client = await import('/client.js');
  window.llm = await client.load('tiny.gguf');
  window.greedy = async () => {
    const stream = llm.generate('Hello, tiny', {max_tokens: 12});
    await stream.text();
    return stream.tokens;
  };
  return await greedy();
}"""
TIMED = "Promise.race([%s, new Promise((_, no) => setTimeout(no, 60000, new Error('hangs')))])"


@pytest.fixture
def mortal(mounts, settings):
    """A page in a browser of the test's own, whose GPU process may be killed."""
    with BrowserThread(settings) as thread, Server(dict(mounts)) as server:
        server.headers.update(settings.headers)
        server.pages.update({"/tiny.gguf": tiny_gguf(), "/app.html": b"<!doctype html>"})
        one = Visit(thread, server)
        one.page.goto(server.url + "/app.html")
        yield one
        one.close()


@pytest.mark.slow
def test_a_dead_gpu_process_is_a_lost_device_and_restart_gives_the_same_tokens(mortal):
    expected = mortal.page.evaluate(CONNECT)
    mortal.page.evaluate(
        "() => { window.ended = (async () => { for (;;) await greedy(); })().catch((e) => e.code) }"
    )

    async def crash():
        session = await mortal.browser.browser.new_browser_cdp_session()
        await session.send("Browser.crashGpuProcess")

    mortal.browser.call(crash, 30)
    assert mortal.page.evaluate(TIMED % "ended") == "DeviceLost"
    mortal.server.log.clear()
    mortal.page.evaluate(TIMED % "llm.restart()")
    assert mortal.page.evaluate(TIMED % "greedy()") == expected
    assert "/tiny.gguf" not in {r.path for r in mortal.server.log}
    # The worker's end is the same to the app.
    mortal.page.evaluate("llm.connection.worker.terminate()")
    assert mortal.page.evaluate(TIMED % "greedy().catch((e) => e.code)") == "DeviceLost"
    mortal.page.evaluate(TIMED % "llm.restart()")
    assert mortal.page.evaluate(TIMED % "greedy()") == expected
