"""A short soak, and models that share a device: one closed, eight at a time."""

import pytest

from leaks.soak import check_flat, check_workers, soaking, visited  # noqa: F401


@pytest.mark.slow
def test_nothing_grows_in_a_minute(soaking):  # noqa: F811
    check_flat(soaking, {"loads": 20, "generations": 100, "runs": 1000})


@pytest.mark.slow
def test_workers_come_and_go(visited):  # noqa: F811
    check_workers(visited, 3)


async def together(url, prompts):
    """Answers of a model a prompt, alone one after the other, all at once, and with one closed."""
    import asyncio

    import webgpu_py as wg
    from webgpu_py.llm import LLM

    device = await wg.request_device("browser")

    async def answer(llm, prompt):
        stream = llm.generate(prompt, max_tokens=5)
        await stream.text()
        return stream.tokens

    async def load():
        return await LLM.load(url, device=device, context=16)

    alone = []
    for prompt in prompts:
        llm = await load()
        alone.append(await answer(llm, prompt))
        llm.close()
    models = [await load() for _ in prompts]
    at_once = await asyncio.gather(*map(answer, models, prompts))
    # One goes in the middle of the others' answers.
    rest = [asyncio.ensure_future(answer(m, p)) for m, p in zip(models, prompts, strict=True)][1:]
    await asyncio.sleep(0)
    models[0].close()
    without_first = await asyncio.gather(*rest)
    for llm in models[1:]:
        llm.close()
    left = device.bridge.stats()["buffers"]
    await device.close()
    return alone, at_once, without_first, left


@pytest.mark.slow
def test_eight_models_on_one_device_answer_as_each_alone(soaking):  # noqa: F811
    prompts = ["Hi", "Ho", "One", "Two", "x", "yz", "Hello", "012345"]
    url = soaking.server.url + "/tiny.gguf"
    alone, at_once, without_first, left = soaking.call(together, url=url, prompts=prompts)
    assert len({tuple(tokens) for tokens in alone}) > 4
    assert at_once == alone and without_first == alone[1:] and left == 0
