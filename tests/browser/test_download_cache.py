"""What the browser keeps of a download: where, for whom, and when there is no room for it."""

import hashlib
import time

import pytest

from browser.download_page import DATA, LOAD

NO_FILES = (
    "navigator.storage.getDirectory = () => Promise.reject(new DOMException('x', 'SecurityError'));"
)
NO_CACHES = "Object.defineProperty(self, 'caches', {get: () => undefined});"


def test_a_second_load_asks_the_network_for_nothing(download):
    found = download.loaded()
    assert found["warnings"] == []
    assert found["progress"] == {"loaded": len(DATA), "total": len(DATA)}
    (kept,) = download.kept()
    assert kept["complete"] and kept["saved"] > 1e12
    assert kept["stored"] == kept["nbytes"] == len(DATA)
    asked = download.files.asked()
    assert None not in asked and len(asked) == len(set(asked)) > 5
    download.files.log.clear()
    download.loaded()
    download.again()
    download.files.room = 0
    download.loaded()
    assert download.files.log == []


@pytest.mark.parametrize("missing", [NO_FILES, NO_FILES + NO_CACHES])
def test_without_private_files_in_the_cache_api_and_without_that_in_memory(download, missing):
    download.again()
    download.run(missing)
    assert download.loaded()["warnings"] == []
    assert download.asks_nothing()
    download.again()
    download.run(missing)
    assert download.asks_nothing() == ("caches" not in missing)
    download.again()


def test_a_full_browser_still_loads_and_warns_once(download):
    full = """
      const {prototype} = FileSystemSyncAccessHandle;
      const write = prototype.write;
      let count = 0;
      prototype.write = function (...args) {
        if (++count > 9) throw new DOMException('no room', 'QuotaExceededError');
        return write.apply(this, args);
      };"""
    download.run(full)
    (warning,) = download.loaded()["warnings"]
    assert "not kept" in warning and "no room" in warning
    download.again()
    download.loaded()


@pytest.mark.slow
def test_a_browser_at_its_real_quota_still_loads(download, browser):
    async def limit(**quota):
        session = await download.visit.raw.context.new_cdp_session(download.visit.raw)
        await session.send("Storage.overrideQuotaForOrigin", {"origin": download.site.url, **quota})

    browser.call(lambda: limit(quotaSize=100_000))
    try:
        (warning,) = download.loaded()["warnings"]
        assert "not kept" in warning and "quota" in warning
        assert not any(kept["complete"] for kept in download.kept())
    finally:
        browser.call(limit)


def test_a_file_refused_while_it_arrives_leaves_nothing_and_may_be_asked_for_again(
    download,
):
    download.data = DATA[:200_000]
    refuse = """
      const warnings = [];
      for (let i = 0; i < 40; i++) {
        const options = {chunkNbytes: 1 << 16, onWarning: (w) => warnings.push(w)};
        const source = await half.cachedSource(argument.url, options);
        if (i % 2) source.fetchAll();
        await source.read(i % 3 ? 0 : 190_000, 64);
        // Every other one is asked for again before the last is gone.
        const gone = source.discard();
        if (i % 4 < 2) await gone;
        else gone.catch((error) => warnings.push(error.message));
      }
      return warnings;"""
    found = download.run(refuse)
    waits = "another page or worker is downloading this file; waiting for it"
    assert "error" not in found, found
    assert [w for w in found["value"] if waits not in w] == []
    assert download.loaded()["warnings"] == []


def test_what_has_no_room_is_not_begun_to_be_kept(download):
    download.run("navigator.storage.estimate = async () => ({quota: 3_000_000, usage: 2_500_000})")
    (warning,) = download.loaded()["warnings"]
    assert str(len(DATA)) in warning and "500000" in warning
    assert download.kept() == []
    download.again()


def test_two_workers_at_once_download_once(download):
    download.files.delay_s = 0.001
    found = download.visit.page.evaluate(
        "([code, argument]) => Promise.all([1, 2].map((k) => inside(k, code, argument)))",
        [LOAD, {"url": download.url, "options": {}}],
    )
    assert [f["value"]["sha256"] for f in found] == [hashlib.sha256(DATA).hexdigest()] * 2
    assert sorted(len(f["value"]["warnings"]) for f in found) == [0, 1]
    asked = download.files.asked()
    assert len(asked) == len(set(asked))


@pytest.mark.slow
def test_a_worker_that_dies_leaves_the_download_to_the_next(download):
    download.files.delay_s = 0.01
    deadline = time.monotonic() + 20
    download.visit.page.evaluate(
        "([code, argument]) => void inside(3, code, argument)",
        [LOAD, {"url": download.url, "options": {}}],
    )
    while len(download.files.log) < 6:
        assert time.monotonic() < deadline
        download.visit.page.wait_for_timeout(20)
    download.visit.page.evaluate("workers[3].terminate()")
    download.files.delay_s = 0
    assert download.load()["value"]["sha256"] == hashlib.sha256(DATA).hexdigest()


@pytest.mark.slow
def test_a_chunk_that_was_written_in_part_is_fetched_again(download):
    download.cut()
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
    assert "error" not in download.run(damage)
    download.loaded()
    assert "bytes=0-65535" in download.files.asked()


def test_what_is_kept_can_be_listed_and_forgotten(download):
    download.loaded()
    assert len(download.kept()) == 1
    download.run("await half.forget(argument.url + '#part')")
    assert download.kept() == []
    download.files.log.clear()
    download.loaded()
    assert download.files.log


CROWD = """
const {writableStore} = await import('/js/stores.js');
const store = await writableStore();
const bytes = new Uint8Array(2 << 20).map((_, i) => i * 7);
let read = 0;
async function round(key) {
  const there = new Map(Array.from({length: 40}, (_, i) => [i, Promise.withResolvers()]));
  const names = [...there.keys()];
  const writer = async () => {
    for (let i = names.shift(); i !== undefined; i = names.shift()) {
      await store.put(key, String(i), bytes.slice());
      there.get(i).resolve();
    }
  };
  const reader = async () => {
    const part = new Uint8Array(300_000);
    for (const [i, {promise}] of there) {
      await promise;
      for (let from = 0; from < 1_600_000; from += 400_000) {
        if (await store.read(key, String(i), from, part) && part[1] === bytes[from + 1]) read++;
      }
    }
  };
  await Promise.all([writer(), writer(), writer(), writer(), reader(), reader()]);
  await store.remove(key);
}
const rounds = async () => {
  for (let i = 0; i < argument.rounds; i++) await round(`crowd ${i}`);
};
const late = new Promise((resolve) => setTimeout(resolve, 60_000));
await Promise.race([rounds(), late]);
return read;
"""


def test_files_that_are_written_and_read_at_once_all_open(download):
    # The copies are garbage, which is collected while files are being opened.
    rounds = 8
    assert download.run(CROWD, rounds=rounds)["value"] == rounds * 40 * 2 * 4
