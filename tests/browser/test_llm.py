"""The token loop in JavaScript: tokens, cache, context, cancelling, seeds, crossings."""

import numpy as np
import pytest

from hostile.test_template_bounds import ENDLESS
from tiny_model import END, SPECIAL, Forward, tiny_gguf
from webgpu_py.errors import ContextLength, IndexOutOfRange
from webgpu_py.tokenizer.bpe import _byte_letters

PROMPT = "Hello, tiny model; 41 tokens, and no more"


@pytest.fixture(scope="module")
def llm_gpu(browser, mounts, settings):
    from webgpu_py.host.server import Server
    from webgpu_py.testing.gpu import Gpu

    with Server(dict(mounts), headers=dict(settings.headers)) as server:
        gpu = Gpu(browser, server, packages=("tiktoken", "regex", "jinja2"))
        yield gpu
        gpu.close()


async def answers(data, requests, **options):
    """Load a model, run requests one after the other; what each gave, and what was left."""
    import webgpu_py as wg
    from webgpu_py.llm import LLM

    device = await wg.request_device("browser")
    llm = await LLM.load(data, device=device, **options)
    found = []
    for r in requests:
        prompt = r.get("ids") or llm.tokenize(r["prompt"])
        stream = llm.generate(prompt, **r.get("options", {}))
        before, pieces, text = device.bridge.crossings, 0, ""
        async for piece in stream.pieces():
            pieces += 1
            text += piece.text
            if pieces == r.get("cancel_after"):
                stream.cancel()
                stream.cancel()
        found.append(
            {
                "prompt": prompt,
                "tokens": stream.tokens,
                "text": text,
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


def test_a_float16_cache_serves_the_prefix_that_it_has(llm_gpu):
    """A conversation that goes on, one that was stopped and another, as if each were the first."""
    whole = {"prompt": PROMPT, "options": {"max_tokens": 5}}
    longer = {"prompt": PROMPT + " And so on", "options": {"max_tokens": 4}}
    other = {"prompt": "Other", "options": {"max_tokens": 4}}
    requests = [whole, {**whole, "cancel_after": 1}, longer, other, longer, whole]
    data, options = tiny_gguf(), {"kv_cache_dtype": "float16"}
    found, memory, left = llm_gpu.call(answers, data=data, requests=requests, **options)
    tokens = [f["tokens"] for f in found]
    assert tokens[2] == tokens[4] and tokens[0] == tokens[5]
    for k in (0, 2, 3):
        expected, gap = Forward(data).greedy(found[k]["prompt"], len(tokens[k]))
        assert gap > 1e-2
        assert tokens[k] == expected
    assert memory[0] == memory[1] and left == (0, 0)


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


def test_text_of_bytes_cut_anywhere_and_stop_strings_across_tokens(llm_gpu):
    """Every token of the tiny model is a byte: characters and stop strings span several."""
    silent = {END + k: -100 for k in range(len(SPECIAL))}
    sampled = {"temperature": 1.0, "seed": 3, "max_tokens": 40, "logit_bias": silent}
    request = {"prompt": "Ünï", "options": sampled}
    (whole,), _, _ = llm_gpu.call(answers, data=tiny_gguf(), requests=[request])
    shown = [bytes([byte]) for byte in _byte_letters()] + [b""] * len(SPECIAL) + [b"th"]
    raw = b"".join(shown[t] for t in whole["tokens"])
    assert len(whole["tokens"]) == 40
    assert whole["text"] == raw.decode("utf-8", "replace")
    stop = whole["text"][7:10]
    stopped = {**request, "options": {**sampled, "stop": ("not there", stop)}}
    (cut,), _, _ = llm_gpu.call(answers, data=tiny_gguf(), requests=[stopped])
    assert cut["text"] == whole["text"][: whole["text"].index(stop)]
    assert cut["reason"] == "stop"
    assert cut["tokens"] == whole["tokens"][: len(cut["tokens"])]


async def rendered(templates):
    """What becomes of each template: its error's code, seconds, and growth of wasm memory."""
    import time

    from webgpu_py.bridge import heap_nbytes
    from webgpu_py.errors import WebGPUPyError
    from webgpu_py.tokenizer.template import ChatTemplate

    found = {}
    for name, template in templates.items():
        before, start, code = heap_nbytes(), time.monotonic(), None
        try:
            ChatTemplate(template).render([{"role": "user", "content": "Hello"}])
        except WebGPUPyError as error:
            code = error.code
        found[name] = code, time.monotonic() - start, heap_nbytes() - before
    return found


def stopped_templates(llm_gpu, names):
    found = llm_gpu.call(rendered, templates={name: ENDLESS[name] for name in names})
    for name, (code, seconds, grown) in found.items():
        assert code in ("LimitExceeded", "FormatError"), name
        assert seconds < 60 and grown < 96 << 20, (name, seconds, grown)


def test_templates_without_end_are_stopped_in_the_browser_too(llm_gpu):
    stopped_templates(llm_gpu, ["loop", "recursive macro", "multiplied text", "joined", "ljust"])


@pytest.mark.slow
def test_every_template_without_end_is_stopped_in_the_browser_too(llm_gpu):
    stopped_templates(llm_gpu, ENDLESS)


async def debugged(data):
    """Every node of a language model's prefill and of a decode step."""
    import numpy as np

    import webgpu_py as wg
    from webgpu_py.generation import GenerationOptions
    from webgpu_py.llm import LLM

    device = await wg.request_device("browser")
    llm = await LLM.load(data, device=device, context=16)
    vocabulary = llm.config.vocab_size
    given = {
        "counts": np.zeros(vocabulary, np.int32),
        "bias": np.zeros(vocabulary, np.float32),
        "settings": GenerationOptions().settings(),
    }
    found = []
    for ids, position in ((np.arange(1, 6, dtype=np.int32), 0), (np.int32([7]), 5)):
        one = await llm.session.debug(ids=ids, position=position, last=len(ids) - 1, **given)
        found.append((one.nodes, str(one)))
    llm.close()
    await device.close()
    return found


@pytest.mark.slow
def test_a_language_model_node_by_node(llm_gpu):
    for nodes, text in llm_gpu.call(debugged, data=tiny_gguf()):
        assert nodes > 10 and text == f"{nodes} nodes examined, none is wrong"
