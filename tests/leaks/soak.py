"""`make soak`: loads, answers and runs by the thousands, workers by the dozen; what lives on.

`test_soak.py` does the same for a minute.
"""

import pytest

from browser.harness.heap import WorkerHeap
from browser.pages import Visit
from tiny_model import tiny_gguf
from webgpu_py.host.server import Server
from webgpu_py.testing.gpu import Gpu

COUNTS = {"loads": 200, "generations": 2000, "runs": 10_000}
GROWTH = {
    "gpu_buffers": 0,
    "gpu_nbytes": 0,
    "plans": 0,
    "python_objects": 200,
    "python_proxies": 0,
    "javascript_proxies": 0,
    "listeners": 0,
    "wasm_nbytes": 0,
    "javascript_nbytes": 2 << 20,
}
"""What each may have grown by after the warm-up.

Python proxies are JavaScript's handles of Python's objects, JavaScript proxies the reverse.
"""

PAGES = 12
PAGE_GROWTH = {"workers": 0, "listeners": 0, "locks": 0, "javascript_nbytes": 1 << 20}


@pytest.fixture(scope="module")
def soaking(browser, mounts, settings):
    with Server(dict(mounts), headers=dict(settings.headers)) as server:
        server.pages["/tiny.gguf"] = tiny_gguf()
        one = Gpu(browser, server, "/harness/census-half.js", ("tiktoken", "regex", "jinja2"))
        yield one
        one.close()


async def work(url, loads, generations, runs):
    """Load a model, answer, run a graph and free both, over and over; what lives afterwards."""
    import gc
    import sys

    import _webgpu_py_js as half
    import numpy as np
    import pyodide_js

    import webgpu_py as wg
    from webgpu_py.bridge import heap_nbytes
    from webgpu_py.llm import LLM

    half.watchProxies(pyodide_js._module)
    store = sys.modules[wg.__name__].__dict__
    device = store.get("_soak_device")
    if device is None:
        device = store["_soak_device"] = await wg.request_device("browser")
    first = None
    for load in range(loads):
        llm = await LLM.load(url, device=device, context=8)
        for _ in range(generations // loads):
            stream = llm.generate("Hi", max_tokens=2)
            await stream.text()
            first = first or stream.tokens
            assert stream.tokens == first, (load, stream.tokens, first)
        g = wg.Graph()
        g.output("y", g.add(g.input("x", (wg.dim("n", max=64),)), g.constant(np.float32([1]))))
        session = await g.build(device)
        for run in range(runs // loads):
            x = np.full(run % 64 + 1, load, np.float32)
            assert ((await session.run(x=x))["y"] == load + 1).all()
        session.close()
        llm.close()
    gc.collect()
    stats, (buffers, nbytes) = device.bridge.stats(), half.alive().to_py()
    return {
        "gpu_buffers": buffers,
        "gpu_nbytes": nbytes,
        "plans": stats["plans"],
        "python_objects": len(gc.get_objects()),
        "wasm_nbytes": heap_nbytes(),
    }


def census():
    """Proxies and listeners that are alive."""
    import gc

    import _webgpu_py_js as half

    gc.collect()
    return half.census().to_py()


def check_flat(gpu, counts):
    """Work a tenth to warm up, then the whole; nothing may have grown."""
    url = gpu.server.url + "/tiny.gguf"

    def measured(**some):
        found = gpu.call(work, url=url, timeout_s=3600, **some)
        # Proxies go with one collection of garbage, what they hold with the next.
        for _ in range(2):
            nbytes = heap.now()
            alive = gpu.call(census)
        return found | alive | {"javascript_nbytes": nbytes}

    with WorkerHeap(gpu.worker.thread, gpu.worker.page) as heap:
        before = measured(**{name: max(1, n // 10) for name, n in counts.items()})
        after = measured(**counts)
    compare(", ".join(f"{n} {name}" for name, n in counts.items()), GROWTH, before, after)
    assert after["gpu_buffers"] == after["plans"] == 0


def compare(title, growth, before, after):
    """The table, and whether something has grown by more than it may."""
    print("\n" + title)
    for name in growth:
        print(f"  {name:18} {before[name]:>12} before {after[name]:>12} after")
    grown = {name: after[name] - before[name] for name in growth}
    assert not [name for name, most in growth.items() if grown[name] > most], grown


CYCLE = """async (cycles) => {
  const {listeners} = window.counting ??= await import('/harness/listeners.js');
  const client = await import('/client.js');
  for (let i = 0; i < cycles; i++) {
    const stop = client.subscribe(() => {});
    const signal = (window.lasting ??= new AbortController()).signal;
    const llm = await client.load('/tiny.gguf', {context: 8, signal, onProgress: () => {}});
    await llm.generate('Hi', {max_tokens: 2, signal}).text();
    llm.close();
    stop();
  }
  // A worker that was ended lets go of its locks a moment later.
  await new Promise((resolve) => setTimeout(resolve, 500));
  const {held, pending} = await navigator.locks.query();
  return {listeners: listeners(), locks: held.length + pending.length};
}"""


def check_workers(visit, pages):
    """Load a model into a worker of its own and end it, over and over in one page."""

    async def heap():
        session = await visit.raw.context.new_cdp_session(visit.raw)
        await session.send("HeapProfiler.enable")
        await session.send("HeapProfiler.collectGarbage")
        found = await session.send("Runtime.getHeapUsage")
        await session.detach()
        return found["usedSize"]

    def measured(cycles):
        visit.page.evaluate(CYCLE, cycles)
        nbytes = visit.browser.call(heap)
        return {
            **visit.page.evaluate(CYCLE, 0),
            "workers": len(visit.raw.workers),
            "javascript_nbytes": nbytes,
        }

    before, after = measured(1), measured(pages)
    compare(f"{pages} workers, each with a model", PAGE_GROWTH, before, after)
    assert after["workers"] == 0


@pytest.fixture
def visited(browser, soaking):
    visit = Visit(browser, soaking.server)
    soaking.server.pages["/app.html"] = b"<!doctype html><title>an app</title>"
    visit.page.goto(soaking.server.url + "/app.html")
    yield visit
    visit.close()


def test_nothing_grows(soaking):
    check_flat(soaking, COUNTS)


def test_workers_come_and_go(visited):
    check_workers(visited, PAGES)
