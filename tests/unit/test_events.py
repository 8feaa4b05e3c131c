"""Events: what an app hears of a model's life, no word of a prompt or an answer."""

import asyncio
import logging

import pytest

from faults import FaultyBridge
from tiny_model import tiny_gguf
from webgpu_py.backends.cpu import CpuBridge
from webgpu_py.device import Device
from webgpu_py.errors import WebGPUPyError
from webgpu_py.llm import LLM


@pytest.fixture(autouse=True)
def unheard(monkeypatch):
    """No listener that another test has left."""
    logger = logging.getLogger("webgpu_py")
    monkeypatch.setattr(logger, "handlers", [logging.NullHandler()])
    monkeypatch.setattr(logger, "level", logging.NOTSET)


def test_a_models_life_in_events(caplog):
    caplog.set_level(logging.INFO, "webgpu_py")

    async def reopen():
        return CpuBridge()

    async def life():
        bridge = FaultyBridge()
        llm = await LLM.load(tiny_gguf(), device=Device(bridge, reopen))
        await llm.generate("Hello there", max_tokens=2).text()
        bridge.lost = True
        with pytest.raises(WebGPUPyError):
            await llm.generate("Hello there", max_tokens=2).text()
        await llm.restart()
        llm.close()

    asyncio.run(life())
    records = [r for r in caplog.records if r.name == "webgpu_py"]
    names = ["model.loaded", "answer.ended", "answer.failed", "device.restarted", "model.loaded"]
    assert [r.event for r in records] == names
    loaded, ended, failed, *_ = records
    assert loaded.facts["architecture"] == "llama" and loaded.facts["gpu_nbytes"] > 0
    assert (ended.facts["why"], ended.facts["tokens"]) == ("length", 2)
    assert (failed.levelname, failed.facts) == ("WARNING", {"code": "DeviceLost"})
    assert "tokens=2" in ended.getMessage()
    assert "Hello" not in caplog.text


def test_nobody_listens_nothing_is_printed(capfd):
    async def failing():
        bridge = FaultyBridge()
        llm = await LLM.load(tiny_gguf(), device=Device(bridge))
        bridge.lost = True
        with pytest.raises(WebGPUPyError):
            await llm.generate("Hello", max_tokens=2).text()

    asyncio.run(failing())
    assert capfd.readouterr() == ("", "")
