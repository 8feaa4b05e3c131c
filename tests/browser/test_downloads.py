"""Downloads: by ranges, resumed, kept, checked, over servers that behave in every way they do."""

import hashlib
import itertools
import time
from pathlib import Path

import numpy as np
import pytest

from browser.harness.faults import FaultServer
from browser.pages import Visit
from webgpu_py.assets import asset_path

CHUNK = 1 << 16
DATA = np.random.default_rng(4).integers(0, 256, 30 * CHUNK + 1234, np.uint8).tobytes()
OTHER = DATA[::-1]
START = """
window.workers = [];
window.inside ??= (which, code, argument) => new Promise((resolve) => {
  const worker = workers[which] ??= new Worker('/code-worker.js', {type: 'module'});
  const id = Math.random();
  worker.addEventListener('message', function heard({data}) {
    if (data.id !== id) return;
    worker.removeEventListener('message', heard);
    resolve(data);
  });
  worker.postMessage({id, code, argument});
});
"""
LOAD = """
const warnings = [], progress = [];
const options = {chunkNbytes: 1 << 16, retryMs: [5, 10, 20], onWarning: (w) => warnings.push(w),
  onProgress: (p) => progress.push(p), ...argument.options};
const source = await half.cachedSource(argument.url, options);
source.fetchAll();
const bytes = new Uint8Array(source.nbytes);
for (let at = 0; at < bytes.length; at += 100_000) {
  bytes.set(await source.read(at, Math.min(100_000, bytes.length - at)), at);
}
source.close();
const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
return {sha256: [...digest].map((b) => b.toString(16).padStart(2, '0')).join(''), warnings,
        progress: progress.at(-1)};
"""


class Page:
    """A page with workers; `load` reads a file to its end there. Every test has its own address."""

    def __init__(self, browser, site, files):
        self.site, self.files = site, files
        self.visit = Visit(browser, site)
        self.visit.page.add_init_script(START)
        self.again()

    def fresh(self, path):
        self.files.restart({path: DATA})
        self.path, self.url = path, self.files.url + path
        return self

    @property
    def data(self):
        return self.files.files[self.path]

    @data.setter
    def data(self, data):
        self.files.files[self.path] = data

    def run(self, code, which=0, **argument):
        argument["url"] = self.url
        return self.visit.page.evaluate(
            "([which, code, argument]) => inside(which, code, argument)", [which, code, argument]
        )

    def load(self, which=0, **options):
        return self.run(LOAD, which=which, options=options)

    def loaded(self, **options):
        found = self.load(**options)
        assert "error" not in found, found
        assert found["value"]["sha256"] == hashlib.sha256(self.data).hexdigest()
        return found["value"]

    def asks_nothing(self):
        """The next load is from what is kept."""
        self.files.log.clear()
        self.loaded()
        return self.files.log == []

    def kept(self):
        """What the cache says of this test's address."""
        found = self.run("return (await half.cached()).filter(({url}) => url === argument.url)")
        return found["value"]

    def again(self):
        """The page anew, as after a restart of the browser: its workers are gone."""
        self.visit.page.goto(self.site.url + "/app.html")


def fault_server():
    harness = Path(__file__).parent / "harness"
    return FaultServer(
        folders={"/js/": asset_path("js")},
        pages={
            "/app.html": b"<!doctype html><title>app</title>",
            "/code-worker.js": (harness / "code-worker.js").read_bytes(),
        },
    )


@pytest.fixture(scope="module")
def own(browser):
    with fault_server() as site:
        one = Page(browser, site, site)
        yield one
        one.visit.close()


@pytest.fixture(scope="module")
def foreign(browser):
    with fault_server() as site, fault_server() as files:
        one = Page(browser, site, files)
        yield one
        one.visit.close()


COUNT = itertools.count()


@pytest.fixture
def page(own):
    """A page whose file is its own server's."""
    return own.fresh(f"/model-{next(COUNT)}")


@pytest.fixture
def across(foreign):
    """A page whose file is another origin's."""
    return foreign.fresh(f"/model-{next(COUNT)}")


def test_a_second_load_asks_the_network_for_nothing(page):
    found = page.loaded()
    assert found["warnings"] == []
    assert found["progress"] == {"loaded": len(DATA), "total": len(DATA)}
    (kept,) = page.kept()
    assert kept["complete"] and kept["saved"] > 1e12
    assert kept["stored"] == kept["nbytes"] == len(DATA)
    asked = page.files.asked()
    assert None not in asked and len(asked) == len(set(asked)) > 5
    page.files.log.clear()
    page.loaded()
    page.again()
    page.files.room = 0
    page.loaded()
    assert page.files.log == []


def test_only_chunks_that_are_asked_for_come_until_all_are_over_several_connections(page):
    code = """
    const source = await half.cachedSource(argument.url, {chunkNbytes: 1 << 16});
    const part = await source.read(5 * 65536 + 7, 65536);
    source.close();
    return [...part.slice(0, 8)];
    """
    assert page.run(code)["value"] == list(DATA[5 * CHUNK + 7 : 5 * CHUNK + 15])
    asked = page.files.asked()
    assert asked == [f"bytes={i * CHUNK}-{(i + 1) * CHUNK - 1}" for i in (0, 5, 6)]
    page.files.delay_s = 0.005
    page.loaded()
    assert 3 <= page.files.most_active <= 6


def cut(page, share=0.4):
    """A load that ends with its server going down after a share of the file."""
    page.files.room = int(share * len(DATA))
    failed = page.load()["error"]
    assert failed["code"] == "NetworkError"
    assert page.url in failed["message"]
    page.files.room = None
    page.files.log.clear()
    page.again()
    return failed


def test_a_cut_download_goes_on(page):
    message = cut(page)["message"]
    assert f"of {len(DATA)} bytes are here" in message and "kept" in message
    page.loaded()
    asked = [w.removeprefix("bytes=").split("-") for w in page.files.asked()]
    assert min(int(start) for start, _ in asked) > 0
    assert sum(int(end) + 1 - int(start) for start, end in asked) < 0.8 * len(DATA)


def test_a_cut_download_of_a_server_without_ranges_starts_over(page):
    cut(page)
    page.files.ranges = False
    page.loaded()
    assert len(page.files.log) == 1


def test_a_wrong_range_is_not_appended(page):
    cut(page)
    page.files.shift = 7
    page.loaded()
    assert page.files.asked()[-1] is None


@pytest.mark.parametrize("size", ["same", "shorter"])
def test_another_version_of_the_file_starts_over(page, size):
    cut(page)
    data = OTHER if size == "same" else OTHER[: 3 * CHUNK + 5]
    page.data, page.files.etag = data, '"two"'
    page.loaded()
    assert page.asks_nothing()


def test_across_origins_nothing_is_appended_without_a_readable_version(across):
    across.files.exposed = False
    cut(across)
    across.data = OTHER
    across.loaded()
    assert across.files.asked()[-1] is None
    assert across.asks_nothing()


def test_across_origins_with_exposed_headers_it_goes_on(across):
    cut(across)
    across.loaded()
    assert None not in across.files.asked()
    assert "bytes=0-65535" not in across.files.asked()


def test_a_network_that_comes_and_goes(page):
    page.files.cuts = [70_000, 10, 0, 200_000, 65_536, 0, 3, 90_000]
    page.files.statuses = [200, 503, 200, 429, 500]
    assert page.loaded()["warnings"] == []


@pytest.mark.slow
@pytest.mark.parametrize("manner", [{"ranges": False}, {"shift": 7}])
def test_a_server_that_changes_its_manners_in_the_middle(page, manner):
    def change(_):
        if len(page.files.log) == 3:
            page.files.cuts = [10, 70_000]
            for name, value in manner.items():
                setattr(page.files, name, value)

    page.files.on_sent = change
    page.loaded()


def test_a_cut_stream_of_unknown_version_is_told_and_another_load_is_right(across):
    across.files.exposed, across.files.cuts = False, [CHUNK, 900_000]
    failed = across.load()["error"]
    assert (failed["code"], failed["restart"]) == ("NetworkError", True)
    across.loaded()


def test_a_change_while_it_is_read_is_told_and_another_load_is_right(page):
    def change(_):
        if sum(1 for _ in page.files.log) > 2:
            page.data, page.files.etag = OTHER, '"two"'

    page.files.on_sent = change
    failed = page.load()["error"]
    assert (failed["code"], failed["restart"]) == ("NetworkError", True)
    page.files.on_sent = None
    page.loaded()


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("text/html; charset=utf-8", b"<p>sign in</p>"),
        ("application/octet-stream", b"\n<!DOCTYPE html><title>404</title>"),
    ],
)
@pytest.mark.parametrize("ranges", [True, False])
def test_a_web_page_is_refused_and_not_kept(page, content_type, body, ranges):
    page.data, page.files.content_type = body, content_type
    page.files.ranges = ranges
    failed = page.load()["error"]
    assert failed["code"] == "FormatError"
    assert body.decode()[:9].strip() in failed["message"]
    assert page.kept() == []
    page.data, page.files.content_type = DATA, "application/octet-stream"
    page.loaded()


@pytest.mark.slow
def test_a_login_page_does_not_cost_what_has_arrived(page):
    cut(page)
    page.files.content_type = "text/html"
    assert page.load()["error"]["code"] == "FormatError"
    page.files.content_type = "application/octet-stream"
    page.files.log.clear()
    page.loaded()
    assert "bytes=0-65535" not in page.files.asked()


@pytest.mark.slow
@pytest.mark.parametrize("status", [403, 404])
def test_a_refusal_is_told_at_once(page, status):
    page.files.statuses = [status] * 9
    failed = page.load()["error"]
    assert failed["code"] == "NetworkError" and f"answered {status}" in failed["message"]
    assert len(page.files.log) == 1


def test_bodies_of_unknown_length(page):
    page.files.ranges, page.files.lengths = False, False
    page.loaded()
    assert page.asks_nothing()


NO_FILES = (
    "navigator.storage.getDirectory = () => Promise.reject(new DOMException('x', 'SecurityError'));"
)
NO_CACHES = "Object.defineProperty(self, 'caches', {get: () => undefined});"


@pytest.mark.parametrize("missing", [NO_FILES, NO_FILES + NO_CACHES])
def test_without_private_files_in_the_cache_api_and_without_that_in_memory(page, missing):
    page.again()
    page.run(missing)
    assert page.loaded()["warnings"] == []
    assert page.asks_nothing()
    page.again()
    page.run(missing)
    assert page.asks_nothing() == ("caches" not in missing)
    page.again()


def test_a_full_browser_still_loads_and_warns_once(page):
    full = """
      const {prototype} = FileSystemSyncAccessHandle;
      const write = prototype.write;
      let count = 0;
      prototype.write = function (...args) {
        if (++count > 9) throw new DOMException('no room', 'QuotaExceededError');
        return write.apply(this, args);
      };"""
    page.run(full)
    (warning,) = page.loaded()["warnings"]
    assert "not kept" in warning and "no room" in warning
    page.again()
    page.loaded()


@pytest.mark.slow
def test_a_browser_at_its_real_quota_still_loads(page, browser):
    async def limit(**quota):
        session = await page.visit.raw.context.new_cdp_session(page.visit.raw)
        await session.send("Storage.overrideQuotaForOrigin", {"origin": page.site.url, **quota})

    browser.call(lambda: limit(quotaSize=100_000))
    try:
        (warning,) = page.loaded()["warnings"]
        assert "not kept" in warning and "quota" in warning
        assert not any(kept["complete"] for kept in page.kept())
    finally:
        browser.call(limit)


def test_what_has_no_room_is_not_begun_to_be_kept(page):
    page.run("navigator.storage.estimate = async () => ({quota: 3_000_000, usage: 2_500_000})")
    (warning,) = page.loaded()["warnings"]
    assert str(len(DATA)) in warning and "500000" in warning
    assert page.kept() == []
    page.again()


def test_two_workers_at_once_download_once(page):
    page.files.delay_s = 0.001
    found = page.visit.page.evaluate(
        "([code, argument]) => Promise.all([1, 2].map((k) => inside(k, code, argument)))",
        [LOAD, {"url": page.url, "options": {}}],
    )
    assert [f["value"]["sha256"] for f in found] == [hashlib.sha256(DATA).hexdigest()] * 2
    assert sorted(len(f["value"]["warnings"]) for f in found) == [0, 1]
    asked = page.files.asked()
    assert len(asked) == len(set(asked))


@pytest.mark.slow
def test_a_worker_that_dies_leaves_the_download_to_the_next(page):
    page.files.delay_s = 0.01
    deadline = time.monotonic() + 20
    page.visit.page.evaluate(
        "([code, argument]) => void inside(3, code, argument)",
        [LOAD, {"url": page.url, "options": {}}],
    )
    while len(page.files.log) < 6:
        assert time.monotonic() < deadline
        page.visit.page.wait_for_timeout(20)
    page.visit.page.evaluate("workers[3].terminate()")
    page.files.delay_s = 0
    assert page.load()["value"]["sha256"] == hashlib.sha256(DATA).hexdigest()


@pytest.mark.slow
def test_a_chunk_that_was_written_in_part_is_fetched_again(page):
    cut(page)
    damage = """
    const root = await navigator.storage.getDirectory();
    const folder = await root.getDirectoryHandle('webgpu_py');
    for await (const entry of folder.values()) {
      const manifest = await (await (await entry.getFileHandle('manifest')).getFile()).text();
      if (JSON.parse(manifest).url !== argument.url) continue;
      for await (const name of entry.keys()) {
        if (name === 'manifest') continue;
        const file = await (await entry.getFileHandle(name)).createSyncAccessHandle();
        file.truncate(1000 * (Number(name) % 2));
        file.close();
      }
    }"""
    assert "error" not in page.run(damage)
    page.loaded()
    assert "bytes=0-65535" in page.files.asked()


def test_an_aborted_download_rejects_with_the_reason_and_goes_on_later(page):
    page.files.delay_s = 0.005
    code = """
    const controller = new AbortController();
    const seen = [];
    const source = await half.cachedSource(argument.url, {chunkNbytes: 1 << 16,
      signal: controller.signal, onProgress: ({loaded}) => {
        seen.push(loaded);
        if (loaded > 400_000) controller.abort('my reason');
      }});
    source.fetchAll();
    const reads = [20, 24, 28].map((i) => source.read(i * 65536, 65536).catch((e) => e));
    const one = (await Promise.all(reads)).find((found) => !(found instanceof Uint8Array));
    const two = await source.read(26 * 65536, 10).catch((e) => e);
    const {signal} = controller;
    const three = await half.cachedSource(argument.url, {signal}).catch((e) => e);
    return [one, two, three, seen.at(-1)];"""
    *reasons, loaded = page.run(code)["value"]
    assert reasons == ["my reason"] * 3
    assert loaded < 0.6 * len(DATA)
    page.files.delay_s = 0
    page.files.log.clear()
    page.loaded()
    assert "bytes=0-65535" not in page.files.asked()


def test_what_is_kept_can_be_listed_and_forgotten(page):
    page.loaded()
    assert len(page.kept()) == 1
    page.run("await half.forget(argument.url + '#part')")
    assert page.kept() == []
    page.files.log.clear()
    page.loaded()
    assert page.files.log


@pytest.mark.slow
def test_reads_outside_of_the_file_are_refused(page):
    code = """const source = await half.cachedSource(argument.url, {chunkNbytes: 1 << 16});
    try { return await source.read(source.nbytes - 3, 4); } finally { source.close(); }"""
    assert page.run(code)["error"]["code"] == "FormatError"
