"""`make soak`: loads, answers and runs by the thousands in one page, and what lives on afterwards.

`test_soak.py` does the same for a minute.
"""

import pytest

from browser.harness.heap import WorkerHeap
from tiny_model import tiny_gguf
from webgpu_py.host.server import Server
from webgpu_py.testing.gpu import Gpu

COUNTS = {"loads": 200, "generations": 2000, "runs": 10_000}
GROWTH = {
    "gpu_buffers": 0,
    "gpu_nbytes": 0,
    "plans": 0,
    "python_objects": 200,
    "wasm_nbytes": 0,
    "javascript_nbytes": 2 << 20,
}
"""What each may have grown by after the warm-up. A proxy that is kept shows in one of the heaps."""


@pytest.fixture(scope="module")
def soaking(browser, mounts, settings):
    with Server(dict(mounts), headers=dict(settings.headers)) as server:
        server.pages["/tiny.gguf"] = tiny_gguf()
        one = Gpu(browser, server, "/harness/faulty-half.js", ("tiktoken", "regex", "jinja2"))
        yield one
        one.close()


async def work(url, loads, generations, runs):
    """Load a model, answer, run a graph and free both, over and over; what lives afterwards."""
    import gc
    import sys

    import _webgpu_py_js as half
    import numpy as np

    import webgpu_py as wg
    from webgpu_py.bridge import heap_nbytes
    from webgpu_py.llm import LLM

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


def check_flat(gpu, counts):
    """Work a tenth to warm up, then the whole; nothing may have grown."""
    url = gpu.server.url + "/tiny.gguf"

    def measured(**some):
        found = gpu.call(work, url=url, timeout_s=3600, **some)
        return found | {"javascript_nbytes": heap.now()}

    with WorkerHeap(gpu.worker.thread, gpu.worker.page) as heap:
        before = measured(**{name: max(1, n // 10) for name, n in counts.items()})
        after = measured(**counts)
    print("\n" + ", ".join(f"{n} {name}" for name, n in counts.items()))
    for name, most in GROWTH.items():
        print(f"  {name:18} {before[name]:>12} before {after[name]:>12} after")
        assert after[name] - before[name] <= most, name
    assert after["gpu_buffers"] == after["plans"] == 0


def test_nothing_grows(soaking):
    check_flat(soaking, COUNTS)
