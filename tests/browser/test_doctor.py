"""The doctor in a page: four situations, four pieces of advice, and the command line's report."""

import json

import pytest

from webgpu_py.host.cli import main


async def diagnoses():
    """The text of each situation: as it is, failing the self test, no adapter, no WebGPU."""
    import js
    from pyodide.ffi import create_proxy, to_js

    import webgpu_py as wg
    from webgpu_py.bridge import BrowserBridge

    said = {}

    async def ask(name):
        said[name] = []
        report = await wg.doctor(said[name].append)
        assert said[name] == [str(report)]

    def gpu(value):
        data = {"value": value, "configurable": True}
        js.Object.defineProperty(js.navigator, "gpu", to_js(data, dict_converter=to_object))

    to_object = js.Object.fromEntries
    await ask("software")

    async def wrong(self, plan, blob):
        result = bytearray(await run(self, plan, blob))
        if result:
            result[3] ^= 64
        return bytes(result)

    run = BrowserBridge.run
    BrowserBridge.run = wrong
    try:
        await ask("wrong numbers")
    finally:
        BrowserBridge.run = run

    async def request_adapter(options):
        return None

    real = js.navigator.gpu
    proxy = create_proxy(request_adapter)
    try:
        gpu(to_js({"requestAdapter": proxy}, dict_converter=to_object))
        await ask("no adapter")
        gpu(None)
        await ask("no webgpu")
    finally:
        gpu(real)
        proxy.destroy()
    return {name: texts[0] for name, texts in said.items()}


def test_four_situations_four_pieces_of_advice(gpu):
    said = gpu.call(diagnoses)
    print(said["software"])
    advice = {
        name: [line for line in text.splitlines() if line.startswith("advice")]
        for name, text in said.items()
    }
    assert [len(lines) for lines in advice.values()] == [1, 1, 1, 1]
    assert "computes in software" in advice["software"][0]
    assert "wrong numbers" in advice["wrong numbers"][0]
    assert "blocklisted" in advice["no adapter"][0]
    assert "has no WebGPU" in advice["no webgpu"][0]
    assert "usable     yes" in said["software"] and "passed in" in said["software"]
    for name, code in (
        ("wrong numbers", "WrongNumbers"),
        ("no adapter", "NoAdapter"),
        ("no webgpu", "NoWebGPU"),
    ):
        assert f"usable     no [{code}]" in said[name]
    for topic in ("browser", "page", "storage", "headers", "adapter", "features", "limits"):
        assert f"\n{topic} " in said["software"], topic
    assert "content-security-policy=" in said["software"]


@pytest.mark.slow
def test_the_command_line_asks_the_page(capsys):
    assert main(["doctor", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] and report["page"]["facts"]["adapter"]["software"]
    assert len(report["advice"]) == 1
