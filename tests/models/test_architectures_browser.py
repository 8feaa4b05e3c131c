"""Every architecture in the browser: attention, rotation and token loop on the GPU."""

import inspect

import pytest

from models.test_architectures import CONTEXT, GOLDENS, NAMES, assert_follows, follow, golden

BODY = f"""
import webgpu_py as wg
from webgpu_py.llm import LLM

{inspect.getsource(follow)}

store = wg.__dict__
if "_test_device" not in store:
    store["_test_device"] = await wg.request_device("browser")
llm = await LLM.load(data, device=store["_test_device"], context=context, quantize=None)
found = await follow(llm, expected)
llm.close()
found
"""


@pytest.fixture(scope="module")
def llm_gpu(browser, mounts, settings):
    from webgpu_py.host.server import Server
    from webgpu_py.testing.gpu import Gpu

    with Server(dict(mounts), headers=dict(settings.headers)) as server:
        gpu = Gpu(browser, server, packages=("tiktoken", "regex", "jinja2"))
        yield gpu
        gpu.close()


@pytest.mark.parametrize("form", ["gguf", pytest.param("folder", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", NAMES)
def test_in_the_browser(llm_gpu, name, form):
    folder, expected = GOLDENS / name, golden(name)
    if form == "gguf":
        data = folder.with_suffix(".gguf").read_bytes()
    else:
        data = {path.name: path.read_bytes() for path in folder.iterdir()}
    found = llm_gpu.run(BODY, data=data, expected=expected, context=CONTEXT)
    assert_follows(found, expected, 1e-4)


async def look(data, ids):
    import webgpu_py as wg
    from webgpu_py.formats.gguf import read_gguf
    from webgpu_py.models.first_layer import build_first_layer, check_first_layer
    from webgpu_py.sources import BytesSource

    device, source = await wg.request_device("browser"), BytesSource(data)
    file = await read_gguf(source)
    layer = await build_first_layer(device, file, source)
    check = await check_first_layer(device, file, source, ids, await layer.run(ids))
    layer.close()
    await device.close()
    return check.max_abs_error / check.largest


@pytest.mark.parametrize("name", ["llama3", "gemma3", "phi3"])
def test_the_first_layer(llm_gpu, name):
    data = (GOLDENS / f"{name}.gguf").read_bytes()
    assert llm_gpu.call(look, data=data, ids=golden(name)["ids"]) < 1e-6
