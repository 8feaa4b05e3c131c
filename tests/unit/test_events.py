"""Events: what an app hears of a model's life, no word of a prompt or an answer."""

import asyncio
import json
import logging
import re
from pathlib import Path

import pytest

from faults import FaultyBridge
from tiny_model import tiny_gguf
from webgpu_py.backends.cpu import CpuBridge
from webgpu_py.device import Device
from webgpu_py.errors import WebGPUPyError
from webgpu_py.events import EVENTS, Forwarding, heard, tell
from webgpu_py.llm import LLM

ROOT = Path(__file__).resolve().parents[2]


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
    # Every other number of tokens has kernels of its own.
    compiled = [r for r in records if r.event == "pipelines.compiled"]
    others = [r for r in records if r not in compiled]
    loading = ["weights.prepacked", "session.built", "model.loaded"]
    answering = ["answer.ended", "answer.failed"]
    assert [r.event for r in others] == [*loading, *answering, "device.restarted", *loading]
    # First the one that the weights wait for.
    assert records[0] is compiled[0] and compiled[0].facts["count"] == 1
    assert compiled[1].facts["count"] > 5
    for record in records:
        assert set(record.facts) == set(EVENTS[record.event])
    prepacked, built, loaded, ended, failed, *_ = others
    assert prepacked.facts["nbytes"] > 1000
    assert built.facts["nodes"] > built.facts["dispatches"] // 2 > 5
    assert built.facts["gpu_nbytes"] == loaded.facts["gpu_nbytes"]
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


def test_what_is_forwarded_and_that_nothing_is_left_of_it():
    logger = logging.getLogger("webgpu_py")
    logger.setLevel("ERROR")
    before = list(logger.handlers), logger.level
    sent = []
    forwarding = Forwarding(sent.append, "info")
    forwarding.start()
    tell("self_test.passed", {"ms": 1.5})
    tell("session.ran", {"ms": 2}, logging.DEBUG)
    heard("device.lost", "warning", '{"reason": "unknown", "message": "gone"}')
    logger.warning("a line that is no event")
    forwarding.stop()
    tell("self_test.passed", {"ms": 1.5})
    assert (list(logger.handlers), logger.level) == before
    passed, lost = map(json.loads, sent)
    assert passed.pop("time") > 1.7e12 and lost["level"] == "warning"
    assert passed == {"event": "self_test.passed", "level": "info", "facts": {"ms": 1.5}}
    assert lost["facts"] == {"reason": "unknown", "message": "gone"}


def test_one_catalogue_in_python_javascript_types_and_documents():
    told = set()
    for path in [*(ROOT / "webgpu_py").rglob("*.py"), *(ROOT / "webgpu_py/js").glob("*.js")]:
        told |= set(re.findall(r"\btell\(\s*['\"]([\w.]+)", path.read_text()))
    assert told == set(EVENTS)
    types = (ROOT / "web/client.d.ts").read_text()
    union = re.search(r"type EventName =(.*?);", types, re.S)[1]
    assert set(re.findall(r"'([\w.]+)'", union)) == set(EVENTS)
    rows = re.findall(
        r"^\| (`\w+[\w.`, ]*) \| \w+ \| (.*?) \|", (ROOT / "docs/errors.md").read_text(), re.M
    )
    table = {
        name: tuple(re.findall(r"`(\w+)`", facts))
        for names, facts in rows
        for name in re.findall(r"`([\w.]+)`", names)
    }
    assert table == EVENTS
