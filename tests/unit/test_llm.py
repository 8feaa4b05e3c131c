"""Language models on the NumPy device: architectures, cache, context, stopping."""

import asyncio
import hashlib

import numpy as np
import pytest

import webgpu_py
from tiny_model import CONTEXT, END, Forward, tiny_gguf
from webgpu_py import request_device
from webgpu_py.errors import (
    ContextLength,
    FeatureMissing,
    FormatError,
    IndexOutOfRange,
    UnsupportedModel,
    WrongNumbers,
)
from webgpu_py.llm import LLM
from webgpu_py.sources import FileSource

PROMPT = "Hello, tiny model"


def run(coroutine):
    return asyncio.run(coroutine)


async def loaded(data, **options):
    return await LLM.load(data, device=await request_device("cpu"), **options)


@pytest.mark.parametrize("kind", ["F32", "F16", "Q8_0", "Q4_0"])
@pytest.mark.parametrize(
    ("arch", "tied"), [("llama", True), ("llama", False), ("qwen2", True), ("qwen3", False)]
)
def test_greedy_follows_the_float64_forward(arch, tied, kind):
    data = tiny_gguf(arch, kind, tied)

    async def check():
        llm = await loaded(data)
        ids = llm.tokenize(PROMPT)
        stream = llm.generate(ids, max_tokens=6, top_logprobs=2)
        await stream.text()
        llm.close()
        return ids, stream

    ids, stream = run(check())
    forward = Forward(data)
    expected, gap = forward.greedy(ids, 6)
    assert gap > 1e-3, "this seed is a near tie, choose another"
    end = expected.index(END) if END in expected else 6
    assert stream.tokens == expected[:end]
    logits = forward(ids)[-1]
    exact = logits - logits.max() - np.log(np.exp(logits - logits.max()).sum())
    first = stream.top_logprobs[0]
    np.testing.assert_allclose([p for _, p in first], np.sort(exact)[::-1][:2], atol=1e-4)
    assert stream.logprobs[0] == pytest.approx(exact.max(), abs=1e-4)


def test_a_conversation_computes_only_what_is_new():
    async def check():
        llm = await loaded(tiny_gguf())
        ids = llm.tokenize(PROMPT)
        first = llm.generate(ids, max_tokens=3)
        await first.text()
        longer = [*ids, *first.tokens, *llm.tokenize(" more")]
        counted = []
        original = llm.session.run

        async def counting(**inputs):
            counted.append(len(inputs["ids"]))
            return await original(**inputs)

        llm.session.run = counting
        again = llm.generate(longer, max_tokens=2)
        await again.text()
        fresh = await loaded(tiny_gguf())
        alone = fresh.generate(longer, max_tokens=2)
        await alone.text()
        return counted[0], again.tokens, alone.tokens, len(longer) - len(ids) - 2

    counted, again, alone, new = run(check())
    assert counted == new
    assert again == alone


@pytest.mark.parametrize(("prompt", "given"), [(5, 3), (7, 1)])
def test_a_full_context_ends_with_length(prompt, given):
    async def check():
        llm = await loaded(tiny_gguf(), context=8)
        stream = llm.generate(list(range(65, 65 + prompt)), max_tokens=10)
        await stream.text()
        return stream

    stream = run(check())
    assert (len(stream.tokens), stream.finish_reason) == (given, "length")


def test_a_prompt_that_does_not_fit_is_refused_before_any_run():
    async def check():
        llm = await loaded(tiny_gguf(), context=8)
        llm.session.run = None
        await llm.generate([65] * 9).text()

    with pytest.raises(ContextLength, match="9 tokens"):
        run(check())
    with pytest.raises(ContextLength, match=f"allows 2 to {CONTEXT}"):
        run(loaded(tiny_gguf(), context=CONTEXT + 1))


def test_cancel_then_the_same_prompt_gives_the_same_tokens():
    async def check():
        llm = await loaded(tiny_gguf())
        ids = llm.tokenize(PROMPT)
        whole = llm.generate(ids, max_tokens=5)
        await whole.text()
        cut = llm.generate(ids, max_tokens=5)
        async for _ in cut.pieces():
            llm.cancel()
            llm.cancel()
        again = llm.generate(ids, max_tokens=5)
        await again.text()
        return whole, cut, again

    whole, cut, again = run(check())
    assert cut.finish_reason == "cancelled"
    assert len(cut.tokens) <= 2
    assert again.tokens == whole.tokens


def test_chat_goes_through_the_models_template_and_a_missing_one_is_named():
    async def check():
        llm = await loaded(tiny_gguf())
        text = llm.render([{"role": "user", "content": "hi"}])
        stream = llm.chat([{"role": "user", "content": "hi"}], max_tokens=2)
        await stream.text()
        llm._template = None
        with pytest.raises(FormatError, match="no chat template"):
            llm.chat([{"role": "user", "content": "hi"}])
        return text, stream

    text, stream = run(check())
    assert text == "<|user|>hi<|assistant|>"
    assert len(stream.tokens) == 2


def test_answers_side_by_side_and_left_half_read_are_as_each_alone():
    prompts = [PROMPT, PROMPT + " and more", "Another"]

    async def check():
        llm = await loaded(tiny_gguf())
        alone = []
        for prompt in prompts:
            stream = llm.generate(prompt, max_tokens=5)
            await stream.text()
            alone.append(stream.tokens)
        streams = [llm.generate(prompt, max_tokens=5) for prompt in prompts]
        await asyncio.gather(*(stream.text() for stream in streams))
        assert [stream.tokens for stream in streams] == alone
        unread = llm.generate(PROMPT)
        unread.cancel()
        assert await unread.text() == "" and unread.finish_reason == "cancelled"
        assert unread.timings == {"first_token_ms": 0, "prefill_tps": 0, "decode_tps": 0}
        for prompt, tokens in zip(prompts, alone, strict=True):
            async for _ in llm.generate(PROMPT, max_tokens=5).pieces():
                break
            stream = llm.generate(prompt, max_tokens=5)
            await stream.text()
            assert stream.tokens == tokens
        llm.close()

    run(check())


def test_what_a_chat_takes_of_messages_and_variables():
    """Parts of text, calls of tools, the template's own names; what is no text is named."""

    async def check():
        llm = await loaded(tiny_gguf())
        parts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
        text = llm.render([{"role": "user", "content": parts}])
        assert text == "<|user|>one\ntwo<|assistant|>"
        llm._template = "{{ messages[0].role }}{% if enable_thinking is false %} quick{% endif %}"
        assert llm.render([{"role": "user", "content": "x"}], enable_thinking=False) == "user quick"
        stream = llm.chat(
            [{"role": "user", "content": "x"}],
            chat_template_kwargs={"enable_thinking": False},
            max_tokens=None,
        )
        assert stream.prompt_tokens == llm.tokenize("user quick")
        data = [{"role": "tool", "content": ["clear", 3]}]
        assert llm.render([*data, {"role": "user", "content": "x"}]) == "tool"
        calls = [{"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}]
        assert llm.render(calls) == "assistant"
        picture = [{"type": "image_url", "image_url": {"url": "x"}}]
        for messages, kind, words in (
            ([{"role": "user", "content": picture}], FeatureMissing, "message 0 .* 'image_url'"),
            ([{"role": "user", "content": [3]}], FeatureMissing, "'int'"),
            ([{"content": "x"}], FormatError, "message 0 is .* role"),
            ([{"role": "user"}], FormatError, r"message 0 \(user\) has no content"),
            ([], FormatError, "no messages"),
        ):
            with pytest.raises(kind, match=words):
                llm.render(messages)
        with pytest.raises(FeatureMissing, match="n: no option"):
            llm.chat([{"role": "user", "content": "x"}], n=2)
        with pytest.raises(IndexOutOfRange, match="logit_bias for token id 9999"):
            llm.generate("x", logit_bias={9999: 1})
        llm.close()

    run(check())


def test_sampling_is_repeatable_by_seed_and_varies_with_it():
    async def check():
        llm = await loaded(tiny_gguf())
        found = []
        for seed in (1, 1, 2):
            stream = llm.generate(PROMPT, max_tokens=6, temperature=1.5, seed=seed)
            await stream.text()
            found.append(stream.tokens)
        return found

    first, again, other = run(check())
    assert first == again
    assert first != other


def test_a_damaged_model_is_told_instead_of_nonsense():
    async def check():
        llm = await loaded(tiny_gguf(gain=np.nan))
        with pytest.raises(WrongNumbers, match="no logit is a number"):
            await llm.generate("Hello", max_tokens=3).text()
        llm.close()

    run(check())


def test_unknown_models_are_refused_by_name_from_the_header():
    with pytest.raises(UnsupportedModel, match="'mamba' is not supported"):
        run(loaded(tiny_gguf("mamba")))


def test_the_package_offers_it_and_a_device_is_found():
    async def check():
        llm = await webgpu_py.LLM.load(tiny_gguf())
        text = await llm.generate(PROMPT, max_tokens=1).text()
        return llm.device.kind, text

    kind, text = run(check())
    assert kind == "cpu"
    assert text


def test_everything_is_freed():
    async def check():
        device = await request_device("cpu")
        llm = await LLM.load(tiny_gguf(), device=device)
        await llm.generate(PROMPT, max_tokens=2).text()
        llm.close()
        return device.bridge.stats()

    assert run(check())["buffer_nbytes"] == 0


def test_a_hash_of_the_file_is_checked():
    data = tiny_gguf()
    llm = run(loaded(data, sha256=hashlib.sha256(data).hexdigest()))
    assert llm.context == CONTEXT
    with pytest.raises(FormatError, match="was expected"):
        run(loaded(data, sha256="0" * 64))


@pytest.mark.parametrize(
    ("data", "context", "error"),
    [
        (tiny_gguf()[:-500], None, FormatError),
        (tiny_gguf("mamba"), None, UnsupportedModel),
        (tiny_gguf(), CONTEXT + 1, ContextLength),
        (tiny_gguf(), None, None),
    ],
)
def test_files_are_closed_when_loading_fails_and_with_the_model(
    tmp_path, monkeypatch, data, context, error
):
    path = tmp_path / "model.gguf"
    path.write_bytes(data)
    closed = []
    close = FileSource.close
    monkeypatch.setattr(FileSource, "close", lambda s: (close(s), closed.append(s.name)))
    if error:
        with pytest.raises(error):
            run(loaded(path, context=context))
    else:
        llm = run(loaded(path))
        assert not closed
        llm.close()
    assert closed == ["model.gguf"]
