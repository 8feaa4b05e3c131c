"""A model that was closed and dropped is gone at once: no cycle waits for the garbage collector."""

import asyncio
import gc
import weakref

import pytest

from tiny_folder import files
from tiny_model import tiny_gguf
from webgpu_py.backends.cpu import CpuBridge
from webgpu_py.device import Device
from webgpu_py.llm import LLM


@pytest.mark.parametrize("source", [tiny_gguf(), files()], ids=["GGUF", "folder"])
def test_a_dropped_model_leaves_no_garbage(source):
    async def body():
        llm = await LLM.load(source, device=Device(CpuBridge()), context=16)
        await llm.generate("Hi there", max_tokens=2).text()
        llm.close()
        return [weakref.ref(o) for o in (llm, llm.session, llm.tokenizer)]

    asyncio.run(body())  # what modules make once
    gc.collect()
    gc.disable()
    try:
        left = asyncio.run(body())
        assert [ref() for ref in left] == [None] * 3
    finally:
        gc.enable()
