"""client.js as an app uses it: over a scripted worker, and once over Python."""

import json
import re

import numpy as np
import pytest

from browser.client_page import run
from browser.pages import CASES, Visit
from webgpu_py.assets import asset_text
from webgpu_py.events import EVENTS


def test_what_autotune_found(scripted):
    found = run(
        scripted,
        """const llm = await client.load('models/a.gguf');
        const tuned = await llm.autotune();
        llm.close();
        return tuned;""",
    )
    assert found == [{"case": "linear", "way": "packed_gemv lanes=8", "ratio": 1.25}]


def test_three_lines(scripted):
    text = run(
        scripted,
        """const llm = await client.load('models/a.gguf');
        let text = '';
        for await (const t of llm.chat([{role: 'user', content: 'hi'}])) text += t;
        llm.close();
        return text;""",
    )
    assert "You said “hi”" in text


def test_progress_info_and_facts_of_an_answer(scripted):
    found = run(
        scripted,
        """const stages = new Set();
        const llm = await client.load('models/a.gguf', {onProgress: (p) => stages.add(p.stage)});
        const stream = llm.chat([{role: 'user', content: 'say: one two'}]);
        const text = await stream.text();
        const {finishReason, promptTokens, tokens, timings} = stream;
        const memory = await llm.memory(), device = await llm.device();
        llm.close();
        return {stages: [...stages], text, finishReason, promptTokens, tokens, timings,
                layers: llm.info.layers, memory, vendor: device.info.vendor};""",
    )
    assert found["stages"] == ["python", "weights"]
    assert (found["text"], found["finishReason"], found["promptTokens"]) == ("one two", "stop", 10)
    assert found["tokens"] == [0, 1] and found["timings"]["decode_tps"] == 30
    assert found["layers"] == 30 and found["memory"]["gpu"]["total"] == 131e6
    assert found["vendor"] == "acme"


def test_one_signal_ends_an_answer_with_its_reason(scripted):
    found = run(
        scripted,
        """const controller = new AbortController();
        const llm = await client.load('models/a.gguf', {signal: controller.signal});
        const got = [];
        let reason;
        try {
          const stream = llm.chat([{role: 'user', content: 'slow'}], {signal: controller.signal});
          for await (const t of stream) if (got.push(t) === 3) controller.abort('my reason');
        } catch (error) { reason = error; }
        const again = await llm.chat([{role: 'user', content: 'x'}], {signal: controller.signal})
          .text().catch((e) => e);
        const fresh = await llm.chat([{role: 'user', content: 'say: fresh'}]).text();
        llm.close();
        return {count: got.length, reason, again, fresh};""",
    )
    assert 3 <= found["count"] <= 5
    assert found["reason"] == found["again"] == "my reason"
    assert found["fresh"] == "fresh"


def test_leaving_the_loop_cancels(scripted):
    found = run(
        scripted,
        """const llm = await client.load('models/a.gguf');
        const sent = [];
        const post = llm.connection.worker.postMessage.bind(llm.connection.worker);
        llm.connection.worker.postMessage = (m) => (sent.push(m.kind), post(m));
        for await (const t of llm.chat([{role: 'user', content: 'slow'}])) break;
        const fresh = await llm.chat([{role: 'user', content: 'say: fresh'}]).text();
        llm.close();
        return [sent, fresh];""",
    )
    assert found == [["call", "cancel", "call"], "fresh"]


def test_a_download_is_aborted_with_the_reason(scripted):
    found = run(
        scripted,
        """const controller = new AbortController();
        const seen = [];
        const one = await client.load('models/large.gguf', {signal: controller.signal,
          onProgress: ({stage}) => stage === 'weights' && controller.abort('enough')})
          .catch((e) => e);
        const two = await client.load('models/a.gguf', {signal: AbortSignal.abort('before')})
          .catch((e) => e);
        return [one, two];""",
    )
    assert found == ["enough", "before"]


def test_errors_carry_their_code(scripted):
    codes = run(
        scripted,
        """const code = (promise) => promise.then(() => null, (e) =>
          [e.code, e instanceof client.WebGPUPyError, e.message.length > 10]);
        const llm = await client.load('models/a.gguf');
        const broken = await code(client.load('models/broken.gguf'));
        const full = await code(llm.chat([{role: 'user', content: 'fail ContextLength'}]).text());
        const pending = code(llm.chat([{role: 'user', content: 'slow'}]).text());
        setTimeout(() => llm.connection.worker.terminate(), 50);
        return [broken, full, await pending, await code(llm.memory())];""",
    )
    assert codes == [
        ["FormatError", True, True],
        ["ContextLength", True, True],
        ["DeviceLost", True, True],
        ["DeviceLost", True, True],
    ]


def test_restart_opens_the_same_again_in_place(scripted):
    found = run(
        scripted,
        """const stages = new Set();
        const llm = await client.load('models/a.gguf', {context: 99});
        const first = llm.connection, ask = {role: 'user', content: 'say: still here'};
        setTimeout(() => first.worker.terminate(), 50);
        const lost = await llm.chat([{role: 'user', content: 'slow'}]).text().catch((e) => e.code);
        await llm.restart({onProgress: ({stage}) => stages.add(stage)});
        const second = llm.connection, text = await llm.chat([ask]).text();
        await llm.restart();
        const kept = llm.connection === second, again = await llm.chat([ask]).text();
        llm.close();
        return {lost, stages: [...stages], text, again, kept, new: first !== second};""",
    )
    assert found == {
        "lost": "DeviceLost",
        "stages": ["python", "weights"],
        "text": "still here",
        "again": "still here",
        "kept": True,
        "new": True,
    }


def test_missing_webgpu_rejects_before_a_worker_starts(browser, scripted):
    one = Visit(browser, scripted.server)
    try:
        one.page.add_init_script(
            "Object.defineProperty(Navigator.prototype, 'gpu', {get: () => undefined})"
        )
        one.page.goto(scripted.server.url + "/app.html")
        scripted.server.log.clear()
        body = "return client.load('models/a.gguf').catch((e) => e.code)"
        assert run(one, body) == "NoWebGPU"
        assert not [r for r in scripted.server.log if "worker" in r.path]
    finally:
        one.close()


def test_every_message_survives_the_structured_clone(scripted):
    """Both directions of everything the protocol lists, as the page and the worker check them."""
    assert run(
        scripted,
        """const p = await import('/protocol.js');
        const error = p.errorRecord(new p.WebGPUPyError('ShapeError', 'x'));
        const progress = {stage: 'weights', loaded: 1, total: 2};
        const array = {dtype: 'int32', shape: [2], data: new Int32Array(2)};
        const toWorker = [{kind: 'start', version: 1, packages: ['a'], lock: 'l'},
          ...p.METHODS.map((method) => ({kind: 'call', id: 1, method, args: {inputs: [array]}})),
          {kind: 'fetch', id: 1, url: 'x'}, {kind: 'cancel', id: 1},
          {kind: 'listen', level: 'info'}, {kind: 'listen', level: null}];
        const toPage = [{kind: 'ready', info: {}}, {kind: 'failed', error},
          {kind: 'progress', id: 0, progress}, {kind: 'warning', id: 1, message: 'x'},
          {kind: 'event', id: 1, event: {text: 'x'}},
          {kind: 'happened', record: {event: 'device.lost', level: 'warning', facts: {}, time: 1}},
          {kind: 'result', id: 1, value: array}, {kind: 'error', id: 1, error}];
        const garbage = [null, 1, 'start', {}, {kind: 'call', id: 1, method: 'eval'},
          {kind: 'constructor'}, {kind: 'listen', level: 'all'}, {kind: 'happened', record: null},
          {kind: 'call', id: -1, method: 'run'}];
        return toWorker.every((m) => p.messageToWorker(structuredClone(m)))
          && toPage.every((m) => p.messageToPage(structuredClone(m)))
          && garbage.every((m) => !p.messageToWorker(m) && !p.messageToPage(m));""",
    )


def test_types_name_what_the_modules_export(scripted):
    for name in ("client", "openai"):
        exported = scripted.page.evaluate(
            f"import('/{name}.js').then((m) => Object.keys(m).filter((k) => k !== 'Stream'))"
        )
        declared = asset_text(f"web/{name}.d.ts")
        for export in exported:
            word = "default class" if export == "default" else export
            assert re.search(rf"export (class|function|{word})", declared), export
            assert word in declared, export


def test_a_program_runs_on_arrays(real):
    case = CASES / "rms_norm/width_lt_wg"
    manifest = json.loads((case / "manifest.json").read_text())
    given = np.fromfile(case / "in0.bin", np.float32)
    wanted = np.fromfile(case / "golden0.bin", np.float32)
    found = run(
        real,
        """const heard = [], loud = [];
        const stop = client.subscribe((e) => heard.push(e), {level: 'debug'});
        client.subscribe((e) => loud.push(e), {level: 'warning'});
        const program = await client.load('cases/rms_norm/width_lt_wg/model.pte?secret=1');
        const [port] = program.info.methods[0].inputs;
        const input = {dtype: 'float32', shape: port.dims, data: new Float32Array(argument)};
        const [output] = await program.run([input]);
        stop();
        await program.run([input]);
        const code = await program.run([]).catch((e) => e.code);
        const memory = await program.memory();
        program.close();
        return {output: [...output.data], shape: output.shape, code, memory, heard, loud};""",
        given.tolist(),
    )
    np.testing.assert_allclose(found["output"], wanted, rtol=1e-4, atol=1e-5)
    assert np.prod(found["shape"]) == wanted.size, manifest
    assert found["code"] == "ShapeError"
    assert found["memory"]["gpu"]["total"] > 0 and found["memory"]["wasm_nbytes"] > 1e6
    names = [e["event"] for e in found["heard"]]
    # The device may have been tested before it was opened, with kernels of this program.
    after = [n for n in names[names.index("device.opened") + 1 :] if n != "pipelines.compiled"]
    assert after == ["weights.prepacked", "session.built", "session.ran"] and found["loud"] == []
    assert names[:2] == ["download.started", "download.ended"]
    for event in found["heard"]:
        assert set(event["facts"]) == set(EVENTS[event["event"]]) and event["time"] > 1.7e12
    [ended] = [e["facts"] for e in found["heard"] if e["event"] == "download.ended"]
    assert ended["url"] == real.server.url + "/cases/rms_norm/width_lt_wg/model.pte"
    assert ended["nbytes"] == ended["fetched"] == (case / "model.pte").stat().st_size


SIGMOID = """
        const g = new client.Graph();
        const x = g.input('x', [client.dim('n', 16), 8]);
        g.output('y', g.call('aten.sigmoid.default', x));
"""


def sigmoid(x):
    return 1 / (1 + np.exp(-np.asarray(x, np.float64)))


def test_a_graph_runs_on_typed_arrays_that_may_move(real):
    found = run(
        real,
        SIGMOID
        + """
        const session = await client.build(g);
        const given = client.array(new Float32Array(argument), [3, 8]);
        const kept = await session.run({x: given});
        const left = given.data.length;
        const {text, fault, nodes} = await session.debug({x: given});
        const moved = await session.run({x: given}, {transfer: true});
        const gone = given.data.length;
        const code = (p) => p.then(() => null, (e) => e.code);
        const again = await session.run({x: given}).catch((e) => e.message);
        const errors = [await code(session.run({x: client.array(new Float32Array(7))})),
          await code(client.build(new client.Graph(), {connection: session.connection}))];
        let shape;
        try { client.array(new Float32Array(7), [2, 4]); } catch (e) { shape = e.code; }
        session.close();
        return {kept: [...kept.y.data], moved: [...moved.y.data], shape: moved.y.shape,
                debugged: [text, fault, nodes], left, gone, again, errors: [...errors, shape],
                info: session.info};""",
        list(np.linspace(-4, 4, 24)),
    )
    for name in ("kept", "moved"):
        np.testing.assert_allclose(found[name], sigmoid(np.linspace(-4, 4, 24)), rtol=1e-5)
    assert (found["left"], found["gone"], found["shape"]) == (24, 0, [3, 8])
    assert "moved by an earlier run" in found["again"]
    assert found["debugged"] == ["nodes examined: 1, none is wrong", None, 1]
    assert found["errors"] == ["ShapeError", "ShapeError", "ShapeError"]
    assert found["info"]["inputs"] == [{"name": "x", "dtype": "float32", "dims": [16, 8]}]


@pytest.mark.slow
def test_a_device_of_the_apps_own_on_its_own_thread(real):
    found = run(
        real,
        SIGMOID
        + """
        const adapter = await navigator.gpu.requestAdapter();
        const gpuDevice = await adapter.requestDevice({label: 'mine'});
        const before = window.fetch;
        const session = await client.build(g, {gpuDevice});
        const out = await session.run({x: client.array(new Float32Array(argument), [2, 8])});
        const {limits} = await session.device();
        session.close();
        const after = await session.run({}).catch((e) => e.code);
        const alive = await Promise.race([gpuDevice.lost.then(() => false),
          new Promise((resolve) => setTimeout(resolve, 100, true))]);
        gpuDevice.destroy();
        return {y: [...out.y.data], bindings: limits.max_storage_buffers_per_shader_stage,
                after, alive, restored: before === window.fetch};""",
        list(np.linspace(-3, 3, 16)),
    )
    np.testing.assert_allclose(found["y"], sigmoid(np.linspace(-3, 3, 16)), rtol=1e-5)
    # A device that asked for nothing has WebGPU's default limits, not the adapter's.
    assert found["bindings"] == 8
    assert (found["after"], found["alive"], found["restored"]) == ("DeviceLost", True, True)


def test_a_worker_of_another_origin_is_refused_with_advice(scripted):
    found = run(
        scripted,
        """const at = (options) => client.load('models/a.gguf', options)
          .then((llm) => llm.close(), (e) => [e.code, e.message]);
        return [await at({baseURL: 'https://cdn.example/webgpu-py'}), await at({baseURL: '/'})];""",
    )
    (code, message), fine = found
    assert code == "NetworkError" and fine is None
    assert "https://cdn.example/webgpu-py/worker.js" in message and "baseURL" in message
