"""openai.js and chat.completions as an app of OpenAI's client uses them, over a scripted worker."""

from browser.client_page import run


def test_completions_in_the_shape_of_openai(scripted):
    found = run(
        scripted,
        """const {default: OpenAI} = await import('/openai.js');
        const openai = new OpenAI({apiKey: 'ignored'});
        const model = 'models/a.gguf';
        const messages = [{role: 'user', content: 'say: a b'}];
        const chunks = [];
        const stream = await openai.chat.completions.create(
          {model, messages, stream: true, stream_options: {include_usage: true}});
        for await (const chunk of stream) chunks.push(chunk);
        const whole = await openai.chat.completions.create(
          {model, messages, max_tokens: 9, stop: null, logprobs: true, top_logprobs: 2});
        const refused = [];
        for (const more of [{audio: {}}, {n: 2}, {response_format: {type: 'json_object'}}]) {
          refused.push(await openai.chat.completions.create({model, messages, ...more})
            .catch((e) => [e.code, e.message]));
        }
        const ask = (text, more) => openai.chat.completions.create(
          {model, messages: [{role: 'developer', content: text}], temperature: 1, ...more});
        const seeds = [];
        for (const more of [{}, {}, {seed: 5}]) {
          seeds.push((await ask('x', more)).choices[0].message.content);
        }
        const slow = await ask('slow', {stream: true});
        let count = 0;
        for await (const chunk of slow) if (++count === 3) slow.controller.abort();
        const reason = await ask('slow', {stream: true}).then(async (stream) => {
          for await (const chunk of stream) break;
          return 'left';
        });
        const signal = AbortSignal.timeout(100);
        const timeout = await openai.chat.completions.create(
          {model, messages: [{role: 'user', content: 'slow'}]}, {signal}).catch((e) => e.name);
        await openai.close();
        return {chunks, whole, refused, seeds, count, reason, timeout};""",
    )
    chunks = found["chunks"]
    assert {c["object"] for c in chunks} == {"chat.completion.chunk"}
    assert len({c["id"] for c in chunks}) == 1
    deltas = [c["choices"][0]["delta"] for c in chunks if c["choices"]]
    assert deltas[0]["role"] == "assistant"
    assert "".join(d.get("content", "") for d in deltas) == "a b"
    reasons = [c["choices"][0]["finish_reason"] for c in chunks if c["choices"]]
    assert reasons[-1] == "stop" and set(reasons[:-1]) == {None}
    assert chunks[-1]["usage"] == {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    choice = found["whole"]["choices"][0]
    assert choice["message"] == {"role": "assistant", "content": "a b"}
    first, second = choice["logprobs"]["content"]
    assert [first["token"], second["token"]] == ["a", " b"]
    assert (second["logprob"], second["bytes"]) == (-0.5, [32, 98])
    assert [(o["token"], o["bytes"]) for o in first["top_logprobs"]] == [
        ("x", [120]),
        ("\ufffd", None),
    ]
    for (code, message), name in zip(
        found["refused"], ("audio", "n=2", "response_format"), strict=True
    ):
        assert code == "FeatureMissing" and name in message
    one, two, three = found["seeds"]
    assert one != two and "seed 5" in three
    assert 3 <= found["count"] <= 5
    assert (found["reason"], found["timeout"]) == ("left", "TimeoutError")
