"""The token loop in JavaScript: tokens, cache, context, cancelling, seeds, crossings."""

import numpy as np
import pytest

from hostile.test_template_bounds import ENDLESS
from tiny_model import END, SPECIAL, Forward, tiny_gguf
from webgpu_py.errors import ContextLength, IndexOutOfRange, WrongNumbers
from webgpu_py.tokenizer.bpe import _byte_letters

PROMPT = "Hello, tiny model; 41 tokens, and no more"


async def answers(data, requests, **options):
    """Load a model, run requests one after the other; what each gave, and what was left."""
    import webgpu_py as wg
    from webgpu_py.llm import LLM

    # The device of the operators' tests: what one model's kernels compiled, the next model has.
    if "_test_device_browser" not in wg.__dict__:
        wg._test_device_browser = await wg.request_device("browser")
    device = wg._test_device_browser
    llm = await LLM.load(data, device=device, **options)
    found = []
    try:
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
    finally:
        llm.close()
    left = device.bridge.stats()
    return found, memory, (left["buffers"], left["plans"])


@pytest.mark.parametrize(
    ("arch", "kind", "tied"),
    [("llama", "Q4_0", True), ("qwen2", "Q8_0", False), ("qwen3", "F16", True)],
)
def test_greedy_follows_the_float64_forward(gpu, arch, kind, tied):
    data = tiny_gguf(arch, kind, tied)
    greedy = {"prompt": PROMPT[:20], "options": {"max_tokens": 6, "top_logprobs": 3}}
    fast = {"prompt": PROMPT[:20], "options": {"max_tokens": 6}}
    found, memory, left = gpu.call(answers, data=data, requests=[greedy, fast])
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


def test_cache_cancel_seeds_and_lengths(gpu):
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
    found, _, _ = gpu.call(answers, data=data, requests=requests)
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


def test_a_float16_cache_serves_the_prefix_that_it_has(gpu):
    """A conversation that goes on, one that was stopped and another, as if each were the first."""
    whole = {"prompt": PROMPT, "options": {"max_tokens": 5}}
    longer = {"prompt": PROMPT + " And so on", "options": {"max_tokens": 4}}
    other = {"prompt": "Other", "options": {"max_tokens": 4}}
    requests = [whole, {**whole, "cancel_after": 1}, longer, other, longer, whole]
    data, options = tiny_gguf(), {"kv_cache_dtype": "float16"}
    found, memory, left = gpu.call(answers, data=data, requests=requests, **options)
    tokens = [f["tokens"] for f in found]
    assert tokens[2] == tokens[4] and tokens[0] == tokens[5]
    for k in (0, 2, 3):
        expected, gap = Forward(data).greedy(found[k]["prompt"], len(tokens[k]))
        assert gap > 1e-2
        assert tokens[k] == expected
    assert memory[0] == memory[1] and left == (0, 0)


async def left(data, prompt):
    """Answers after one that was left half read, was cancelled unread, or whose task was ended."""
    import asyncio

    import webgpu_py as wg

    device = await wg.request_device("browser")
    llm = await wg.LLM.load(data, device=device)
    found = []

    async def whole():
        stream = llm.generate(prompt, max_tokens=5)
        await asyncio.wait_for(stream.text(), 60)
        found.append((stream.tokens, stream.finish_reason))

    await whole()
    async for _ in llm.generate(prompt, max_tokens=40).pieces():
        break
    await whole()
    unread = llm.generate(prompt, max_tokens=40)
    unread.cancel()
    await whole()
    await unread.text()
    task = asyncio.ensure_future(llm.generate(prompt, max_tokens=40).text())
    await asyncio.sleep(0.03)
    task.cancel()
    await whole()
    llm.close()
    await device.close()
    return found, (unread.tokens, unread.finish_reason)


def test_an_answer_that_was_left_does_not_hold_up_the_next(gpu):
    found, unread = gpu.call(left, data=tiny_gguf(), prompt=PROMPT)
    assert len(found[0][0]) == 5
    assert found == [found[0]] * 4
    assert unread == ([], "cancelled")


@pytest.mark.parametrize(("prompt", "given"), [(5, 3), (7, 1)])
def test_a_full_context_ends_with_length(gpu, prompt, given):
    request = {"ids": list(range(65, 65 + prompt)), "options": {"max_tokens": 10}}
    (found,), _, _ = gpu.call(answers, data=tiny_gguf(), requests=[request], context=8)
    assert (len(found["tokens"]), found["reason"]) == (given, "length")


def test_prompts_that_cannot_be_answered(gpu):
    with pytest.raises(ContextLength, match="9 tokens"):
        gpu.call(answers, data=tiny_gguf(), requests=[{"ids": [65] * 9}], context=8)
    with pytest.raises(IndexOutOfRange, match="9999 at position 1"):
        gpu.call(answers, data=tiny_gguf(), requests=[{"ids": [65, 9999]}])


def test_a_damaged_model_is_told_instead_of_nonsense(gpu):
    with pytest.raises(WrongNumbers, match="No logit is a number"):
        gpu.call(answers, data=tiny_gguf(gain=np.nan), requests=[{"ids": [65, 66]}])


def test_text_of_bytes_cut_anywhere_and_stop_strings_across_tokens(gpu):
    """Every token of the tiny model is a byte: characters and stop strings span several."""
    silent = {END + k: -100 for k in range(len(SPECIAL))}
    sampled = {"temperature": 1.0, "seed": 3, "max_tokens": 40, "logit_bias": silent}
    request = {"prompt": "Ünï", "options": sampled}
    (whole,), _, _ = gpu.call(answers, data=tiny_gguf(), requests=[request])
    shown = [bytes([byte]) for byte in _byte_letters()] + [b""] * len(SPECIAL) + [b"th"]
    raw = b"".join(shown[t] for t in whole["tokens"])
    assert len(whole["tokens"]) == 40
    assert whole["text"] == raw.decode("utf-8", "replace")
    stop = whole["text"][7:10]
    stopped = {**request, "options": {**sampled, "stop": ("not there", stop)}}
    (cut,), _, _ = gpu.call(answers, data=tiny_gguf(), requests=[stopped])
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


def stopped_templates(gpu, names):
    found = gpu.call(rendered, templates={name: ENDLESS[name] for name in names})
    for name, (code, seconds, grown) in found.items():
        assert code in ("LimitExceeded", "FormatError"), name
        assert seconds < 60 and grown < 96 << 20, (name, seconds, grown)


def test_templates_without_end_are_stopped_in_the_browser_too(gpu):
    stopped_templates(gpu, ["loop", "recursive macro", "multiplied text", "joined", "ljust"])


@pytest.mark.slow
def test_every_template_without_end_is_stopped_in_the_browser_too(gpu):
    stopped_templates(gpu, ENDLESS)


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
def test_a_language_model_node_by_node(gpu):
    for nodes, text in gpu.call(debugged, data=tiny_gguf()):
        assert nodes > 10 and text == f"nodes examined: {nodes}, none is wrong"
