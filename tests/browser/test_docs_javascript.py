"""The documents' JavaScript, block by block as a reader would put it into a page, over Python."""

import hashlib
import re

import pytest

import tiny_folder
from browser.pages import CASES, STARTED_MS, Visit
from tiny_model import tiny_gguf
from unit.test_docs import FENCE, PAGES, name
from webgpu_py.host.server import Server

pytestmark = pytest.mark.slow

MODEL = tiny_gguf()
SHA256 = hashlib.sha256(MODEL).hexdigest()
HUB = "https://example.org/SmolLM2-135M-Instruct/"
PAGE = b"""<!doctype html>
<script type="importmap">{"imports": {"webgpu-py": "/client.js"}}</script>
<script type="module" src="/reader.js"></script>
<script type="module" src="/block.js"></script>
"""
READER = f"""
// What a page has before it takes a block over: names of its own, and what earlier blocks imported.
import {{ load }} from '/client.js';
const messages = [{{ role: 'user', content: 'Hello!' }}];
const show = (...what) => console.log(...what);
const {{ signal }} = new AbortController();
const url = '/model.gguf', sha256 = '{SHA256}';
const onProgress = show;
Object.assign(window, {{ load, messages, show, signal, url, sha256, onProgress }});
"""


def scripts(path):
    for block in FENCE.finditer(path.read_text()):
        if block["reason"]:
            continue
        if block["language"] == "js":
            yield block["text"]
        if block["language"] == "html":
            yield from re.findall(r'<script type="module">(.*?)</script>', block["text"], re.S)


@pytest.fixture(scope="module")
def site(mounts):
    with Server({**mounts, "/model.pte": CASES / "own/recipe/model.pte"}) as running:
        running.pages["/page.html"] = PAGE
        running.pages["/reader.js"] = READER.encode()
        for address in ("/model.gguf", "/models/model.gguf"):
            running.pages[address] = MODEL
        running.pages["/models/SmolLM2-135M-Instruct.Q4_1.gguf"] = MODEL
        yield running


@pytest.mark.parametrize("path", [p for p in PAGES if any(scripts(p))], ids=name)
def test_it_runs(path, browser, site):
    files = tiny_folder.files()

    async def hub(route):
        body = files.get(route.request.url.removeprefix(HUB))
        headers = {"Access-Control-Allow-Origin": "*"}
        await route.fulfill(status=200 if body else 404, body=body or b"", headers=headers)

    for text in scripts(path):
        opened = "" if re.search(r"\bllm\s*=", text) else "const llm = await load(url);\n"
        before = opened if re.search(r"\bllm\b", text) else ""
        site.pages["/block.js"] = f"{before}{text}\nwindow.finished = true;\n".encode()
        one = Visit(browser, site)
        try:
            browser.call(lambda one=one: one.raw.context.route(f"{HUB}**", hub))
            one.page.goto(f"{site.url}/page.html")
            one.page.wait_for_function("window.finished", timeout=STARTED_MS)
            seen = one.page.locator("body").inner_text()
            assert not re.search(r"^[A-Z]\w+: ", seen), seen
        except Exception as error:
            raise AssertionError(f"{text}\n{one.console}") from error
        finally:
            one.close()
