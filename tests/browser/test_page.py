"""The page: what it says where WebGPU is missing, how it starts, its policy and its worker."""

import re

import pytest

from browser.pages import CASES, STARTED_MS, Visit
from tiny_model import tiny_gguf
from webgpu_py.host.server import Server

MISSING = {
    "NoWebGPU": "Object.defineProperty(Navigator.prototype, 'gpu', {get: () => undefined})",
    "NoAdapter": "GPU.prototype.requestAdapter = async () => null",
    "InsecureContext": "Object.defineProperty(window, 'isSecureContext', {get: () => false})",
}
PROGRAM = "rms_norm/width_lt_wg/model.pte"


@pytest.fixture(scope="module")
def site(mounts, settings):
    with Server({**mounts, "/cases/": CASES}, headers=dict(settings.headers)) as running:
        yield running


@pytest.fixture
def visit(browser, site):
    opened = []

    def start(**context):
        opened.append(Visit(browser, site, **context))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


@pytest.fixture(scope="module")
def opened(browser, site):
    """A page that has opened a program; tests that leave it usable share it."""
    one = Visit(browser, site).goto(f"/?model=cases/{PROGRAM}")
    yield one
    one.close()


@pytest.mark.parametrize("code", MISSING)
def test_missing_webgpu_is_explained_before_any_download(visit, site, code):
    site.log.clear()
    one = visit()
    one.page.add_init_script(MISSING[code])
    one.goto("/", state="error")
    assert one.error == code
    alert = one.page.get_by_role("alert")
    assert alert.is_visible() and not one.by("progress").is_visible()
    others = [alert.inner_text() == text for text in seen_messages.values()]
    seen_messages[code] = alert.inner_text()
    assert not any(others) and len(alert.inner_text()) > 60
    assert not [r.path for r in site.log if "pyodide" in r.path or ".whl" in r.path]
    one.screenshot(f"error-{code}", 360)


seen_messages: dict[str, str] = {}


def test_ready_under_the_strict_policy(opened, site):
    assert "default-src 'none'" in site.headers["Content-Security-Policy"]
    assert opened.violations() == []
    assert not [line for line in opened.console if line.startswith("pageerror")]
    assert opened.by("adapter").is_visible() and len(opened.by("adapter").inner_text()) > 5
    assert "model.pte" in opened.by("model-picker").inner_text()


def test_nothing_is_asked_of_another_origin(opened):
    urls = opened.page.evaluate("performance.getEntriesByType('resource').map(e => e.name)")
    assert urls and all(u.startswith(opened.server.url) for u in urls)


def test_adapter_and_limits_are_shown_by_keyboard(opened):
    opened.by("adapter").focus()
    opened.page.keyboard.press("Enter")
    dialog = opened.page.get_by_role("dialog")
    assert "max buffer size" in dialog.inner_text()
    opened.page.keyboard.press("Escape")
    assert dialog.count() == 0


CONNECT = """
const { Connection } = await import('/connection.js');
const connection = window.connection ??= new Connection();
await connection.ready;
"""


def connected(body):
    return "async (url) => {" + CONNECT + body + "}"


@pytest.fixture(scope="module")
def workers(browser, site):
    """A page without a worker of its own, to start one in."""
    site.pages["/empty.html"] = b"<!doctype html>"
    one = Visit(browser, site)
    one.page.goto(site.url + "/empty.html")
    yield one
    one.close()


def test_an_aborted_call_rejects_with_the_reason(workers):
    told = workers.page.evaluate(
        connected("""
          const controller = new AbortController();
          const call = connection.call('open', {source: {url}}, {signal: controller.signal,
            onProgress: () => controller.abort(new Error('enough'))});
          const first = await call.catch((e) => e.message);
          const second = await connection.call('device', {}, {signal: controller.signal})
            .catch((e) => e.message);
          const works = (await connection.call('open', {source: {url}})).kind;
          return [first, second, works];
        """),
        f"{workers.server.url}/cases/{PROGRAM}",
    )
    assert told == ["enough", "enough", "program"]


def test_a_worker_that_dies_rejects_what_is_pending(workers):
    codes = workers.page.evaluate(
        connected("""
          delete window.connection;
          const pending = connection.call('open', {source: {url: location.origin + '/never'}});
          connection.worker.terminate();
          const first = await pending.catch((e) => e.code);
          return [first, await connection.call('device').catch((e) => e.code)];
        """)
    )
    assert codes == ["DeviceLost", "DeviceLost"]


def test_files_that_are_no_models_are_refused_and_another_can_be_chosen(opened, site):
    site.pages["/page.gguf"] = b"<!doctype html><title>not found</title>"
    site.pages["/noise.gguf"] = bytes(range(64))
    for path in 2 * ("page.gguf", "noise.gguf", "absent.gguf"):
        opened.by("model-picker").click()
        opened.page.get_by_label("An address").fill(f"{site.url}/{path}")
        opened.page.get_by_role("button", name="Load", exact=True).click()
        # The page is still in the last file's error state for a moment: wait for this file's name.
        opened.page.get_by_role("alert").filter(has_text=path).wait_for(timeout=STARTED_MS)
        opened.wait("error")
        assert opened.error == ("NetworkError" if path == "absent.gguf" else "FormatError")
        assert re.search(r"Choose another model", opened.page.get_by_role("alert").inner_text())
    opened.by("model-picker").click()
    opened.page.locator("#model-file").set_input_files(CASES / PROGRAM)
    opened.wait("ready")
    assert opened.by("graph").is_visible()


def test_an_address_that_the_policy_forbids_is_explained(opened):
    opened.by("model-picker").click()
    opened.page.get_by_label("An address").fill("https://example.com/model.gguf")
    opened.page.get_by_role("button", name="Load", exact=True).click()
    opened.wait("error")
    assert opened.error == "NetworkError"
    assert "connect-src" in opened.page.get_by_role("alert").inner_text()


@pytest.mark.slow
@pytest.mark.parametrize("room", [1_000, 10_000])
def test_a_browser_at_its_quota_still_answers(visit, site, room):
    site.pages["/tiny.gguf"] = tiny_gguf()
    assert len(site.pages["/tiny.gguf"]) > room
    one = visit()

    async def limit(**quota):
        session = await one.raw.context.new_cdp_session(one.raw)
        await session.send("Storage.overrideQuotaForOrigin", {"origin": site.url, **quota})

    one.browser.call(lambda: limit(quotaSize=room))
    try:
        one.goto("/?model=tiny.gguf")
        assert "not kept for the next time" in one.page.locator("#warning").inner_text()
        one.by("prompt").fill("Hello")
        one.by("send").click()
        one.page.locator(".after").wait_for(timeout=STARTED_MS)
        assert one.by("answer").inner_text()
    finally:
        one.browser.call(limit)
