"""Kernels found by trying, in the browser: the same answers, remembered for the next visit."""

from ops.routes import hardware_routes
from tiny_model import tiny_gguf


async def tuned_graph():
    """Outputs before and after, what was found, and what a device opened later knows."""
    import numpy as np

    import webgpu_py
    import webgpu_py as wg
    from webgpu_py.quant.q4gsw import quantize_q4gsw
    from webgpu_py.remembered import keep

    device = webgpu_py._test_device_browser
    rng = np.random.default_rng(3)
    weight = quantize_q4gsw(rng.standard_normal((192, 512)).astype(np.float32))
    g = wg.Graph()
    x = g.input("x", (wg.dim("m", max=40), 512))
    codes, scales = g.constant(weight.packed), g.constant(weight.scales)
    g.output("y", g.call("et_vk.linear_q4gsw.default", x, codes, scales, 32))
    session = await g.build(device)
    found, outputs = [], []
    for rows in (1, 40):
        x = rng.standard_normal((rows, 512)).astype(np.float32)
        before = await session.run(x=x)
        found += await session.autotune(x=(rows, 512))
        outputs.append((before["y"], (await session.run(x=x))["y"]))
    session.close()
    later = await wg.request_device("browser")
    assert later.choices.found == {}, "these are the software adapter's"
    later.bridge.info["software"] = False
    await later.recall_choices()
    known = later.choices.found
    await later.close()
    mine = device.choices.found.copy()
    device.choices.found.clear()
    await keep(device, "choices", "{}")
    return [(t.case, t.way, t.ratio) for t in found], outputs, mine, known


def test_a_graph_gives_the_same_and_the_next_visit_knows(gpu):
    with hardware_routes(gpu):
        found, outputs, mine, known = gpu.call(tuned_graph)
    assert [case.rpartition(" ")[2] for case, _, _ in found] == ["1", "64"]
    for case, way, ratio in found:
        print(f"{case}: {way}, {ratio:.2f}")
        assert (ratio > 1.0) is (mine.get(case) == way)
    for before, after in outputs:
        assert abs(before - after).max() <= 2e-6 * abs(before).max()
    assert known == mine


async def tuned_model(data):
    """Tokens before and after, in between two, and what is left on the device."""
    import webgpu_py
    import webgpu_py as wg
    from webgpu_py.remembered import keep

    device = webgpu_py._test_device_browser
    held = device.bridge.stats()
    llm = await wg.LLM.load(data, device=device)

    async def answer():
        stream = llm.generate("Hello there", max_tokens=6)
        await stream.text()
        return stream.tokens

    before = await answer()
    tuned = await llm.autotune()
    after = await answer()
    llm.close()
    device.choices.found.clear()
    await keep(device, "choices", "{}")
    left = device.bridge.stats()
    return before, after, len(tuned), [left[k] - held[k] for k in ("buffers", "plans")]


def test_a_model_says_the_same(gpu):
    with hardware_routes(gpu):
        before, after, count, left = gpu.call(tuned_model, data=tiny_gguf(ffn=1024))
    assert before == after and count > 0
    assert left == [0, 0]
