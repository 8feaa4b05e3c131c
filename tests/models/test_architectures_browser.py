"""Every architecture in the browser: attention, rotation and token loop on the GPU."""

import inspect
import json

import pytest

from models.test_architectures import (
    CONTEXT,
    FLOAT16_CACHE,
    GOLDENS,
    NAMES,
    assert_follows,
    cache_nbytes,
    follow,
    golden,
)
from webgpu_py.models.config import ModelConfig

BODY = f"""
import webgpu_py as wg
from webgpu_py.llm import LLM

{inspect.getsource(follow)}

if "_test_device_browser" not in wg.__dict__:
    wg._test_device_browser = await wg.request_device("browser")
llm = await LLM.load(data, device=wg._test_device_browser, context=context, **options)
found = *await follow(llm, expected), llm.memory()["state"]
llm.close()
found
"""


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("gemma2", "mistral")]


@pytest.mark.parametrize("form", ["gguf", pytest.param("folder", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", NAMES)
def test_in_the_browser(gpu, name, form):
    folder, expected = GOLDENS / name, golden(name)
    if form == "gguf":
        data = folder.with_suffix(".gguf").read_bytes()
    else:
        data = {path.name: path.read_bytes() for path in folder.iterdir()}
    *found, _ = followed(gpu, data, expected, quantize=None)
    assert_follows(found, expected, 1e-4)


def followed(gpu, data, expected, **options):
    return gpu.run(BODY, data=data, expected=expected, context=CONTEXT, options=options)


@pytest.mark.parametrize("name", [*SLOW, "gemma3"])
def test_a_float16_cache_in_the_browser(gpu, name):
    """Windows, head norms, capped scores: what the attention kernels have."""
    data, expected = (GOLDENS / f"{name}.gguf").read_bytes(), golden(name)
    *found, half = followed(gpu, data, expected, kv_cache_dtype="float16")
    assert_follows(found, expected, FLOAT16_CACHE)
    *_, whole = followed(gpu, data, expected)
    config = ModelConfig.from_hf(json.loads((GOLDENS / name / "config.json").read_text()))
    assert whole - half == cache_nbytes(config, 4) - cache_nbytes(config, 2)


async def look(data, ids):
    import webgpu_py as wg
    from webgpu_py.models.first_layer import build_first_layer, check_first_layer
    from webgpu_py.models.stored_model import gguf_model
    from webgpu_py.sources import BytesSource

    device = await wg.request_device("browser")
    stored = await gguf_model(BytesSource(data))
    layer = await build_first_layer(device, stored.config, stored.weights)
    found = await layer.run(ids)
    check = await check_first_layer(device, stored.config, stored.weights, ids, found)
    layer.close()
    await device.close()
    return check.max_abs_error / check.largest


@pytest.mark.parametrize("name", ["llama3", "gemma3", "phi3"])
def test_the_first_layer(gpu, name):
    data = (GOLDENS / f"{name}.gguf").read_bytes()
    assert gpu.call(look, data=data, ids=golden(name)["ids"]) < 1e-6
