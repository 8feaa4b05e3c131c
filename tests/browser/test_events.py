"""Events: subscribed to in a page, told by JavaScript, heard in Python; nothing stays behind."""

import json

import pytest

from browser.client_page import run, served
from webgpu_py.assets import asset_path


@pytest.fixture(scope="module")
def scripted(browser, settings, request):
    mounts = {"/": asset_path("web"), "/js/": asset_path("js")}
    mounts["/worker.js"] = request.path.parent / "harness" / "fake-worker.js"
    yield from served(browser, mounts, settings)


def test_a_worker_tells_what_is_listened_to_and_no_more(scripted):
    found = run(
        scripted,
        """const heard = {a: [], b: [], c: []}, controller = new AbortController();
        const {signal} = controller, kept = new Set();
        const {addEventListener, removeEventListener} = signal;
        signal.addEventListener = (type, f) => {
          kept.add(f);
          addEventListener.call(signal, type, f);
        };
        signal.removeEventListener = (type, f) => {
          kept.delete(f);
          removeEventListener.call(signal, type, f);
        };
        const settled = (llm) => llm.tokenize('x').catch(() => {});
        const first = await client.load('models/a.gguf');
        const a = client.subscribe((e) => heard.a.push(e.facts.levels), {level: 'warning'});
        await settled(first);
        const b = client.subscribe((e) => heard.b.push(e.facts.levels), {signal});
        await settled(first);
        const second = await client.load('models/b.gguf');
        await settled(second);
        const c = client.subscribe((e) => heard.c.push(e.facts.levels), {level: 'debug'});
        await Promise.all([settled(first), settled(second)]);
        c();
        c();
        controller.abort();
        await settled(first);
        a();
        second.close();
        const levels = [], refused = [];
        first.connection.listen = (level) => levels.push(level);
        second.connection.listen = () => levels.push('closed');
        client.subscribe(() => {}, {level: 'debug'})();
        client.subscribe(() => {}, {signal});
        try { client.subscribe(() => {}, {level: 'all'}); } catch (e) { refused.push(e.message); }
        first.close();
        return {...heard, levels, kept: kept.size, refused};""",
    )
    # What each worker was told, as it tells back at level `info`.
    assert found["a"] == []
    assert found["b"][:2] == [["warning", "info"], ["info"]]
    assert found["c"] == found["b"][2:]
    # Two workers answer in either order.
    assert sorted(found["c"]) == [["info", "debug"], ["warning", "info", "debug"]]
    assert (found["levels"], found["kept"]) == (["debug", None], 0)
    assert found["refused"] == ['level is "all", must be one of debug, info, warning']


async def loss():
    """What the logger hears when a device is lost, and when one is closed."""
    import logging

    import webgpu_py as wg
    from webgpu_py.events import Forwarding

    sent = []
    forwarding = Forwarding(sent.append, "info")
    forwarding.start()
    closed = await wg.request_device("browser")
    await closed.close()
    device = await wg.request_device("browser")
    device.bridge._half.lose(device.bridge._device)
    session = wg.Graph()
    session.output("y", session.relu(session.input("x", (4,))))
    try:
        await session.build(device)
        code = None
    except wg.WebGPUPyError as error:
        code = error.code
    forwarding.stop()
    return code, sent, len(logging.getLogger("webgpu_py").handlers)


def test_a_lost_device_is_told_and_a_closed_one_is_not(gpu):
    code, sent, handlers = gpu.call(loss)
    records = [json.loads(text) for text in sent]
    lost = [r for r in records if r["event"] == "device.lost"]
    assert code == "DeviceLost" and handlers == 1 and len(lost) == 1
    assert lost[0]["level"] == "warning" and lost[0]["facts"]["reason"] == "destroyed"
