"""A page whose workers read files of a server with every kind of manners."""

import hashlib
import time
from pathlib import Path

import numpy as np

from browser.harness.faults import FaultServer
from browser.pages import Visit
from webgpu_py.assets import asset_path

CHUNK = 1 << 16
DATA = np.random.default_rng(4).integers(0, 256, 30 * CHUNK + 1234, np.uint8).tobytes()
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


class DownloadPage:
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

    def cut(self, share=0.4):
        """A load that ends with its server going down after a share of the file."""
        self.files.room = int(share * len(DATA))
        failed = self.load()["error"]
        assert failed["code"] == "NetworkError"
        assert self.url in failed["message"]
        # What the cut worker had asked for may still be on its way to the server.
        self.again()
        while self.files.active:
            time.sleep(0.01)
        self.files.room = None
        self.files.log.clear()
        return failed


def fault_server():
    harness = Path(__file__).parent / "harness"
    return FaultServer(
        folders={"/js/": asset_path("js")},
        pages={
            "/app.html": b"<!doctype html><title>app</title>",
            "/code-worker.js": (harness / "code-worker.js").read_bytes(),
        },
    )
