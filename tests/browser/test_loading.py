"""Models on their way into a page: kept, hashed, stopped, and past the heaps of both languages."""

import hashlib
import os
import shutil
import threading
import time

import pytest

from browser.harness.heap import WorkerHeap
from browser.pages import Visit
from gguf_writer import record
from tiny_model import HIDDEN, SPECIAL, tiny_gguf
from webgpu_py.host.server import Server
from webgpu_py.quant.ggml import BY_NAME

CONNECT = """async () => {
  const [client, protocol] = await Promise.all([import('/client.js'), import('/protocol.js')]);
  const packages = [...protocol.LANGUAGE_PACKAGES];
  const connection = new client.Connection({packages});
  Object.assign(window, {client, connection});
  window.load = (url, options) => client.load(url, {connection, ...options});
  window.greedy = (llm, prompt, more) => llm.generate(prompt, {max_tokens: 6, ...more});
  await connection.ready;
}"""
PROMPT = "Hello, tiny model"
LARGE = 64 << 20


@pytest.fixture(scope="module")
def site(mounts, settings, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    with Server({**mounts, "/tiny/": folder}, headers=dict(settings.headers)) as running:
        running.pages["/app.html"] = b"<!doctype html><title>an app</title>"
        running.folder = folder
        yield running


@pytest.fixture(scope="module")
def app(browser, site):
    """A page of an app, with one worker that all tests here use."""
    one = Visit(browser, site)
    one.page.goto(site.url + "/app.html")
    one.page.evaluate(CONNECT)
    yield one
    one.close()


def model(site, name, **what):
    data = tiny_gguf(**what)
    (site.folder / name).write_bytes(data)
    return data


def asked(site, name):
    return [r for r in site.log if r.path == f"/tiny/{name}"]


def run(app, body, argument=None):
    return app.page.evaluate(f"async (argument) => {{{body}}}", argument)


def test_the_second_load_needs_no_network_and_what_is_kept_can_be_removed(app, site):
    data = model(site, "kept.gguf")
    body = """
    const stages = [], answers = [];
    for (const round of [0, 1]) {
      const llm = await load('tiny/kept.gguf', {onProgress: (p) => stages.push([round, p.stage])});
      answers.push(await greedy(llm, argument).text());
    }
    const kept = await client.cached();
    await client.forget('tiny/kept.gguf');
    return {stages, answers, kept, left: (await client.cached()).length};"""
    site.log.clear()
    found = run(app, body, PROMPT)
    assert len(asked(site, "kept.gguf")) == 1
    assert [0, "download"] in found["stages"] and [1, "download"] not in found["stages"]
    assert found["answers"][0] == found["answers"][1] != ""
    (kept,) = found["kept"]
    assert (kept["complete"], kept["nbytes"]) == (True, len(data)) and found["left"] == 0


def test_a_file_downloads_while_python_starts(app, site):
    data = model(site, "ahead.gguf", seed=4)
    body = """
    const stages = [], url = 'tiny/ahead.gguf';
    const onProgress = ({stage, loaded, total}) => stages.push([stage, loaded, total]);
    const early = new client.Connection({packages: argument, ahead: url, onProgress});
    // Only the worker that starts no Python can have brought it by then.
    while (!(await client.cached()).some((one) => one.url.endsWith(url) && one.complete)) {
      await new Promise((wake) => setTimeout(wake, 10));
    }
    const onWarning = (text) => stages.push([text]);
    const llm = await client.load(url, {connection: early, onWarning});
    const answer = await greedy(llm, 'Hello').text();
    early.close();
    await client.forget(url);
    return {stages, answer};"""
    site.log.clear()
    found = run(app, body, ["tiktoken", "jinja2"])
    assert len(asked(site, "ahead.gguf")) == 1 and found["answer"]
    assert ["download", len(data), len(data)] in found["stages"]
    assert [s for s in found["stages"] if len(s) == 1] == []


def test_a_failure_ahead_is_told_by_the_load(app, site):
    body = """
    const early = new client.Connection({packages: argument, ahead: 'tiny/none.gguf'});
    const error = await client.load('tiny/none.gguf', {connection: early}).catch((e) => e);
    early.close();
    return [error.code, error.message];"""
    code, message = run(app, body, ["tiktoken", "jinja2"])
    assert code == "NetworkError" and "404" in message


def test_no_page_here_is_isolated(app):
    """What COOP and COEP headers would make of it, and no download or answer here needs."""
    assert run(app, "return crossOriginIsolated") is False


def test_a_hash_is_checked_and_a_wrong_content_is_not_kept(app, site):
    data = model(site, "hashed.gguf", seed=2)
    body = """
    const wrong = await load('tiny/hashed.gguf', {sha256: 'ab'.repeat(32)}).catch((e) => e);
    const kept = (await client.cached()).length;
    const llm = await load('tiny/hashed.gguf', {sha256: argument.toUpperCase()});
    await load('tiny/hashed.gguf', {sha256: argument});
    return {code: wrong.code, message: wrong.message, kept, layers: llm.info.layers};"""
    site.log.clear()
    digest = hashlib.sha256(data).hexdigest()
    found = run(app, body, digest)
    assert found["code"] == "FormatError" and digest in found["message"]
    assert (found["kept"], found["layers"]) == (0, 2)
    assert len(asked(site, "hashed.gguf")) == 2


def test_a_damaged_file_is_not_kept_and_a_mended_one_loads(app, site):
    data = model(site, "damaged.gguf", seed=3)
    (site.folder / "damaged.gguf").write_bytes(data[: len(data) - 500])
    body = """
    const error = await load('tiny/damaged.gguf').catch((e) => e);
    return [error.code, (await client.cached()).some(({url}) => url.includes('damaged'))];"""
    assert run(app, body) == ["FormatError", False]
    (site.folder / "damaged.gguf").write_bytes(data)
    assert run(app, "return (await load('tiny/damaged.gguf')).info.layers") == 2


@pytest.mark.slow
def test_a_file_that_changes_while_it_loads_is_loaded_anew(app, site):
    model(site, "changing.gguf", kind="F16", ffn=16_000, seed=5)
    model(site, "changed.gguf", kind="F16", ffn=16_000, seed=6)
    site.log.clear()

    def change():
        while not asked(site, "changing.gguf"):
            time.sleep(0.005)
        shutil.copy(site.folder / "changed.gguf", site.folder / "part")
        os.replace(site.folder / "part", site.folder / "changing.gguf")

    threading.Thread(target=change, daemon=True).start()
    body = """
    const answers = [];
    for (const name of ['changing', 'changed', 'changing']) {
      answers.push(await greedy(await load(`tiny/${name}.gguf`), argument).text());
    }
    return answers;"""
    first, *others = run(app, body, PROMPT)
    assert others == [first, first]


def test_what_cannot_run_is_refused_from_the_header(app, site):
    model(site, "strange.gguf", arch="strange", kind="F16", ffn=32_000)
    site.log.clear()
    body = "return await load('tiny/strange.gguf').catch((e) => [e.code, e.message])"
    code, message = run(app, body)
    assert code == "UnsupportedModel" and "strange" in message
    (request,) = asked(site, "strange.gguf")
    assert request.headers["Range"] == f"bytes=0-{(2 << 20) - 1}"


def test_a_model_that_does_not_fit_is_refused_from_the_header(app, site):
    """Its embedding is twice the largest binding: a file of gigabytes, of which one chunk comes."""
    limits = "return (await navigator.gpu.requestAdapter()).limits.maxStorageBufferBindingSize"
    room = run(app, limits)
    data = model(site, "huge.gguf", kind="F16")
    vocabulary, f16 = 256 + len(SPECIAL) + 1, BY_NAME["F16"].id
    rows, end = room // HIDDEN, -(-len(data) // 32) * 32
    small = record("token_embd.weight", (vocabulary, HIDDEN), f16, 0)
    assert small in data
    with (site.folder / "huge.gguf").open("wb") as file:
        file.write(data.replace(small, record("token_embd.weight", (rows, HIDDEN), f16, end)))
        file.truncate(2 * end + 2 * rows * HIDDEN)
    site.log.clear()
    body = "return await load('tiny/huge.gguf').catch((e) => [e.code, e.message])"
    code, message = run(app, body)
    assert code == "LimitExceeded"
    assert "token_embd.weight" in message
    assert f"of {2 * rows * HIDDEN} bytes" in message and f"allows {room};" in message
    (request,) = asked(site, "huge.gguf")
    assert request.headers["Range"] == f"bytes=0-{(2 << 20) - 1}"


def test_cancelling_a_download_and_an_answer_leaves_the_next_as_if_fresh(app, site):
    model(site, "large.gguf", kind="F16", ffn=16_000, seed=4)
    body = """
    const stop = (signal, when) => {
      return {signal, onProgress: ({stage}) => stage === when && signal.stop()};
    };
    const controller = (reason) => {
      const made = new AbortController();
      made.signal.stop = () => made.abort(reason);
      return made;
    };
    const reasons = [];
    for (const stage of ['download', 'weights']) {
      const {signal} = controller(`at ${stage}`);
      reasons.push(await load('tiny/large.gguf', stop(signal, stage)).catch((e) => e));
    }
    const llm = await load('tiny/large.gguf');
    const tokens = async (signal, after) => {
      const stream = greedy(llm, argument, {max_tokens: 12, signal});
      try {
        for await (const piece of stream.pieces()) {
          if (stream.tokens.length >= after) for (const _ of [0, 1]) signal?.stop();
        }
      } catch (error) {
        reasons.push(error);
      }
      return [...stream.tokens];
    };
    const fresh = await tokens();
    const cut = [];
    for (const after of [0, 1, 5]) {
      const {signal} = controller(`after ${after}`);
      const answer = tokens(signal, after || Infinity);
      if (!after) signal.stop();
      cut.push(await answer, await tokens());
    }
    return {reasons, fresh, cut};"""
    found = run(app, body, PROMPT)
    assert found["reasons"] == ["at download", "at weights", "after 0", "after 1", "after 5"]
    fresh, cut = found["fresh"], found["cut"]
    assert len(fresh) == 12
    for after, stopped in zip((0, 1, 5), cut[::2], strict=True):
        assert after <= len(stopped) <= after + 2
        assert stopped == fresh[: len(stopped)]
    assert cut[1::2] == [fresh] * 3


def test_weights_pass_by_both_heaps(app, site, browser):
    """Ten times the weights need no more of Python's heap, and little of JavaScript's."""
    model(site, "one.gguf", kind="F16", ffn=10_400)
    data = model(site, "ten.gguf", kind="F16", ffn=104_000)
    assert len(data) > LARGE
    body = """
    const llm = await load(argument);
    const {gpu, wasm_nbytes} = await llm.memory();
    return [wasm_nbytes, gpu.weights];"""
    before, small = run(app, body, "tiny/one.gguf")
    with WorkerHeap(browser, app.raw) as heap:
        start = heap.now()
        after, weights = run(app, body, "tiny/ten.gguf")
        peak = heap.peak()
    print("python", before, after, "javascript", start, peak, "gpu", small, weights)
    assert after <= 1.2 * before + (1 << 20)
    assert peak - start < 64 << 20
    assert weights < 1.05 * len(data)
