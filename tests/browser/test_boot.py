"""boot.js and the wheel in a page: strict CSP, from the lock alone, by micropip, and failures."""

import pytest

from browser.pages import Visit
from webgpu_py.host.pyodide_files import write_lock
from webgpu_py.host.server import Server
from webgpu_py.host.wheel import build_wheel

START_WORKER = """url => new Promise((resolve) => {
  const worker = new Worker(url, {type: 'module'});
  worker.onmessage = (event) => resolve(event.data);
  worker.onerror = (event) => resolve({failed: {message: event.message || 'worker not loaded'}});
})"""

BOOT = """
import {{ bootPyodide }} from '/boot.js';
const before = self.fetch, compiled = [];
const {{ instantiateStreaming }} = WebAssembly;
WebAssembly.instantiateStreaming = async (given, imports) => {{
  compiled.push(new URL((await given).url || 'made:by-a-script').pathname);
  return instantiateStreaming.call(WebAssembly, given, imports);
}};
const violations = [];
self.addEventListener('securitypolicyviolation', (e) => violations.push(e.violatedDirective));
try {{
  const py = await bootPyodide({{pyodideURL: '/pyodide', jsHalf: {{answer: 42}}, {options}}});
  const value = py.runPython(`{python}`);
  self.postMessage({{value, violations, compiled, restored: self.fetch === before}});
}} catch (error) {{
  self.postMessage({{failed: {{code: error.code, message: error.message}},
                     restored: self.fetch === before}});
}}
"""

IMPORTED = "import webgpu_py, numpy, _webgpu_py_js; str(webgpu_py.__file__)"


@pytest.fixture(scope="module")
def visit(browser, mounts, settings):
    """An empty page under the default CSP; a worker that lives on spares the next the compiling."""
    with Server(dict(mounts), headers=dict(settings.headers)) as server:
        server.pages["/t.html"] = b"<!doctype html>"
        one = Visit(browser, server)
        one.page.goto(f"{server.url}/t.html")
        yield one
        one.close()


@pytest.fixture
def files(visit):
    """What the page's server serves, to be changed for one test."""
    mounts = visit.server.mounts
    before = dict(mounts)
    yield mounts
    mounts.clear()
    mounts.update(before)


@pytest.fixture
def boot(visit):
    """Boot in a worker of its own, and run a line of Python."""

    def start(options="wheelURL: '/wheel/webgpu_py.whl'", python=IMPORTED):
        visit.server.pages["/t.js"] = BOOT.format(options=options, python=python).encode()
        return visit.page.evaluate(START_WORKER, "/t.js")

    return start


def test_wheel_by_url_under_strict_csp_with_its_assets(boot):
    answer = boot(
        python="import _webgpu_py_js; from webgpu_py.assets import *; "
        "[_webgpu_py_js.answer, asset_path('wgsl').is_dir(), asset_text('js/bridge.js')].__repr__()"
    )
    text = answer.pop("value")
    assert text.startswith("[42, True, ") and "PROTOCOL_VERSION" in text
    # Chromium keeps compiled code only of a response that has an address.
    compiled = ["/pyodide/pyodide.asm.wasm"]
    assert answer == {"violations": [], "compiled": compiled, "restored": True}


def test_wheel_named_by_the_lock(boot, files, tmp_path):
    wheel = build_wheel(tmp_path)
    write_lock(tmp_path, wheel)
    for file in (wheel.path, tmp_path / "pyodide-lock.json"):
        files[f"/pyodide/{file.name}"] = file
    answer = boot(options="")
    assert "site-packages/webgpu_py" in answer["value"]


def test_missing_wheel_is_a_network_error(boot):
    answer = boot(options="wheelURL: '/wheel/other.whl'")
    assert answer["failed"]["code"] == "NetworkError"
    assert "/wheel/other.whl" in answer["failed"]["message"]
    assert "404" in answer["failed"]["message"]
    assert answer["restored"]


def test_package_that_the_lock_lacks_is_named(boot):
    answer = boot(options="packages: ['nothing-like-this']")
    assert "nothing-like-this" in answer["failed"]["message"]


def test_damaged_package_is_refused(boot, files, tmp_path):
    numpy = next(files["/pyodide/"].glob("numpy-*.whl"))
    damaged = tmp_path / numpy.name
    damaged.write_bytes(numpy.read_bytes()[:-1] + b"!")
    files[f"/pyodide/{numpy.name}"] = damaged
    answer = boot()
    assert answer["failed"]["code"] == "NetworkError"
    assert "numpy" in answer["failed"]["message"]


def test_micropip_installs_the_wheel_as_a_notebook_does_with_the_outside_blocked(
    page, server, tmp_path
):
    """Notebook pages send no policy; the loader takes the JavaScript half from the package."""
    wheel = build_wheel(tmp_path)
    server.mounts["/wheel/"] = tmp_path
    server.headers.clear()
    server.pages["/t.html"] = b"<!doctype html>"
    server.pages["/t.js"] = (
        b"import { loadPyodide } from '/pyodide/pyodide.mjs';\n"
        b"const py = await loadPyodide({ indexURL: '/pyodide/' });\n"
        b"await py.loadPackage('micropip');\n"
        b"const value = await py.runPythonAsync(`\n"
        b"import micropip\n"
        b"await micropip.install('%s')\n"
        b"from webgpu_py.assets import list_assets\n"
        b"from webgpu_py.bridge import BrowserBridge, _half_from_package\n"
        b"assert list_assets('wgsl') and list_assets('js')\n"
        b"bridge = await BrowserBridge.open(await _half_from_package())\n"
        b"(buffer,) = await bridge.create_buffers([16], ['notebook'])\n"
        b"found = await bridge.read(buffer, 0, 4)\n"
        b"await bridge.close()\n"
        b"found.hex()`);\n"
        b"self.postMessage({ value });\n"
    ) % f"{server.url}/wheel/{wheel.path.name}".encode()
    outside = []

    async def block(route):
        if not route.request.url.startswith(server.url):
            outside.append(route.request.url)
            await route.abort()
        else:
            await route.continue_()

    page.route("**/*", block)
    page.goto(f"{server.url}/t.html")
    assert page.evaluate(START_WORKER, "/t.js") == {"value": "00000000"}
    assert outside == []
