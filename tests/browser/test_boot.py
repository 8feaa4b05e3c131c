"""boot.js and the wheel in a page: strict CSP, from the lock alone, by micropip, and failures."""

import pytest

from webgpu_py.host.pyodide_files import write_lock
from webgpu_py.host.wheel import build_wheel

START_WORKER = """url => new Promise((resolve) => {
  const worker = new Worker(url, {type: 'module'});
  worker.onmessage = (event) => resolve(event.data);
  worker.onerror = (event) => resolve({failed: {message: event.message || 'worker not loaded'}});
})"""

BOOT = """
import {{ bootPyodide }} from '/boot.js';
const before = self.fetch;
const violations = [];
self.addEventListener('securitypolicyviolation', (e) => violations.push(e.violatedDirective));
try {{
  const py = await bootPyodide({{pyodideURL: '/pyodide', jsHalf: {{answer: 42}}, {options}}});
  const value = py.runPython(`{python}`);
  self.postMessage({{value, violations, restored: self.fetch === before}});
}} catch (error) {{
  self.postMessage({{failed: {{code: error.code, message: error.message}},
                     restored: self.fetch === before}});
}}
"""

IMPORTED = "import webgpu_py, numpy, _webgpu_py_js; str(webgpu_py.__file__)"


@pytest.fixture
def boot(page, server):
    """Boot in a worker of an empty page under the default CSP, and run a line of Python."""

    def start(options="wheelURL: '/wheel/webgpu_py.whl'", python=IMPORTED):
        server.pages["/t.html"] = b"<!doctype html>"
        server.pages["/t.js"] = BOOT.format(options=options, python=python).encode()
        page.goto(f"{server.url}/t.html")
        return page.evaluate(START_WORKER, "/t.js")

    return start


def test_wheel_by_url_under_strict_csp(boot):
    answer = boot(python="import webgpu_py, _webgpu_py_js; _webgpu_py_js.answer")
    assert answer == {"value": 42, "violations": [], "restored": True}


def test_wheel_named_by_the_lock(boot, server, tmp_path):
    wheel = build_wheel(tmp_path)
    write_lock(tmp_path, wheel)
    for file in (wheel.path, tmp_path / "pyodide-lock.json"):
        server.mounts[f"/pyodide/{file.name}"] = file
    answer = boot(options="")
    assert "site-packages/webgpu_py" in answer["value"]


def test_assets_are_found_inside_pyodide(boot):
    code = (
        "from webgpu_py.assets import *; asset_path('wgsl').is_dir() and asset_text('js/bridge.js')"
    )
    assert "PROTOCOL_VERSION" in boot(python=code)["value"]


def test_missing_wheel_is_a_network_error(boot):
    answer = boot(options="wheelURL: '/wheel/other.whl'")
    assert answer["failed"]["code"] == "NetworkError"
    assert "/wheel/other.whl" in answer["failed"]["message"]
    assert "404" in answer["failed"]["message"]
    assert answer["restored"]


def test_package_that_the_lock_lacks_is_named(boot):
    answer = boot(options="packages: ['nothing-like-this']")
    assert "nothing-like-this" in answer["failed"]["message"]


def test_damaged_package_is_refused(boot, server, tmp_path):
    numpy = next(server.mounts["/pyodide/"].glob("numpy-*.whl"))
    damaged = tmp_path / numpy.name
    damaged.write_bytes(numpy.read_bytes()[:-1] + b"!")
    server.mounts[f"/pyodide/{numpy.name}"] = damaged
    answer = boot()
    assert answer["failed"]["code"] == "NetworkError"
    assert "numpy" in answer["failed"]["message"]


def test_micropip_installs_the_wheel_with_the_outside_blocked(page, server, tmp_path):
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
        b"import webgpu_py\n"
        b"len(list_assets('wgsl')) > 0 and len(list_assets('js')) > 0`);\n"
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
    assert page.evaluate(START_WORKER, "/t.js") == {"value": True}
    assert outside == []
