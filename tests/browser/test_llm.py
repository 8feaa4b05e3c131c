"""The token loop in JavaScript: tokens, cache, context, cancelling, seeds, crossings."""

import numpy as np
import pytest

from tiny_model import END, Forward, tiny_gguf
from webgpu_py.errors import ContextLength, IndexOutOfRange

PROMPT = "Hello, tiny model; 41 tokens, and no more"


@pytest.fixture(scope="module")
def llm_gpu(browser, mounts, settings):
    from browser.harness.gpu import Gpu
    from webgpu_py.host.server import Server

    with Server(dict(mounts), headers=dict(settings.headers)) as server:
        gpu = Gpu(browser, server, packages=("tiktoken", "regex", "jinja2"))
        yield gpu
        gpu.close()


async def answers(data, requests, context=None):
    """Load a model, run requests one after the other; what each gave, and what was left."""
    import webgpu_py as wg
    from webgpu_py.llm import LLM

    device = await wg.request_device("browser")
    llm = await LLM.load(data, device=device, context=context)
    found = []
    for r in requests:
        prompt = r.get("ids") or llm.tokenize(r["prompt"])
        stream = llm.generate(prompt, **r.get("options", {}))
        before, pieces = device.bridge.crossings, 0
        async for _ in stream.pieces():
            pieces += 1
            if pieces == r.get("cancel_after"):
                stream.cancel()
                stream.cancel()
        found.append(
            {
                "prompt": prompt,
                "tokens": stream.tokens,
                "logprobs": stream.logprobs,
                "top": stream.top_logprobs,
                "reason": stream.finish_reason,
                "timings": stream.timings,
                "crossings": device.bridge.crossings - before,
            }
        )
    memory = llm.memory()["total"], device.bridge.stats()["buffer_nbytes"]
    llm.close()
    left = device.bridge.stats()
    await device.close()
    return found, memory, (left["buffers"], left["plans"])


@pytest.mark.parametrize(
    ("arch", "kind", "tied"),
    [("llama", "Q4_0", True), ("qwen2", "Q8_0", False), ("qwen3", "F16", True)],
)
def test_greedy_follows_the_float64_forward(llm_gpu, arch, kind, tied):
    data = tiny_gguf(arch, kind, tied)
    greedy = {"prompt": PROMPT[:20], "options": {"max_tokens": 6, "top_logprobs": 3}}
    fast = {"prompt": PROMPT[:20], "options": {"max_tokens": 6}}
    found, memory, left = llm_gpu.call(answers, data=data, requests=[greedy, fast])
    forward = Forward(data)
    expected, gap = forward.greedy(found[0]["prompt"], 6)
    assert gap > 1e-3, "this seed is a near tie, choose another"
    expected = expected[: expected.index(END)] if END in expected else expected
    for f in found:
        assert f["tokens"] == expected
        assert f["crossings"] == 0, "the loop went through the bridge"
    logits = forward(found[0]["prompt"])[-1]
    exact = np.sort(logits - logits.max() - np.log(np.exp(logits - logits.max()).sum()))[::-1]
    np.testing.assert_allclose([p for _, p in found[0]["top"][0]], exact[:3], atol=1e-4)
    assert found[1]["logprobs"][0] == pytest.approx(exact[0], abs=1e-4)
    assert memory[0] == memory[1]
    assert left == (0, 0)


def test_cache_cancel_seeds_and_lengths(llm_gpu):
    data = tiny_gguf()
    whole = {"prompt": PROMPT, "options": {"max_tokens": 5}}
    sampled = {"prompt": PROMPT, "options": {"max_tokens": 5, "temperature": 1.5, "seed": 7}}
    requests = [
        whole,
        {**whole, "cancel_after": 1},
        whole,
        {"prompt": PROMPT + " And so on", "options": {"max_tokens": 4}},
        {"prompt": "Other", "options": {"max_tokens": 4}},
        {"prompt": PROMPT + " And so on", "options": {"max_tokens": 4}},
        sampled,
        sampled,
        {**sampled, "options": {**sampled["options"], "seed": 8}},
    ]
    found, _, _ = llm_gpu.call(answers, data=data, requests=requests)
    tokens = [f["tokens"] for f in found]
    assert found[1]["reason"] == "cancelled"
    assert 1 <= len(tokens[1]) <= 3
    assert tokens[2] == tokens[0]
    assert tokens[3] == tokens[5]
    assert tokens[6] == tokens[7] != tokens[8]
    forward = Forward(data)
    for k in (0, 3, 4):
        expected, gap = forward.greedy(found[k]["prompt"], len(tokens[k]))
        assert gap > 1e-3
        assert tokens[k] == expected


@pytest.mark.parametrize(("prompt", "given"), [(5, 3), (7, 1)])
def test_a_full_context_ends_with_length(llm_gpu, prompt, given):
    request = {"ids": list(range(65, 65 + prompt)), "options": {"max_tokens": 10}}
    (found,), _, _ = llm_gpu.call(answers, data=tiny_gguf(), requests=[request], context=8)
    assert (len(found["tokens"]), found["reason"]) == (given, "length")


def test_prompts_that_cannot_be_answered(llm_gpu):
    with pytest.raises(ContextLength, match="9 tokens"):
        llm_gpu.call(answers, data=tiny_gguf(), requests=[{"ids": [65] * 9}], context=8)
    with pytest.raises(IndexOutOfRange, match="9999 at position 1"):
        llm_gpu.call(answers, data=tiny_gguf(), requests=[{"ids": [65, 9999]}])
