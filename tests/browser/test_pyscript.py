"""PyScript from npm runs the example, on the page's own thread and in its worker."""

import shutil
import subprocess
from pathlib import Path

import pytest

from browser.pages import Visit
from webgpu_py.host.pyodide_files import ensure_pyodide
from webgpu_py.host.server import Server
from webgpu_py.host.wheel import build_wheel

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "pyscript"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("npm") is None, reason="PyScript comes from npm"),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The example with PyScript and Pyodide beside it, and the wheel of this checkout."""
    folder = tmp_path_factory.mktemp("pyscript")
    install = ["npm", "install", "--silent", "--no-audit", "@pyscript/core@0.7"]
    subprocess.run(install, cwd=folder, check=True, timeout=300)
    core = folder / "node_modules/@pyscript/core/dist"
    mounts = {"/": EXAMPLE, "/pyscript/": core, "/pyodide/": ensure_pyodide()}
    with Server(mounts) as running:
        wheel = build_wheel(folder)
        running.mounts[f"/{wheel.path.name}"] = wheel.path
        running.pages["/pyscript.toml"] = (
            f'interpreter = "{running.url}/pyodide/pyodide.mjs"\n'
            f'packages = ["{running.url}/{wheel.path.name}"]\n'
        ).encode()
        yield running


def outcome(browser, site, path="/"):
    one = Visit(browser, site)
    outside = []

    async def guard(route):
        url = route.request.url
        if url.startswith((site.url, "blob:", "data:")):
            return await route.continue_()
        outside.append(url)
        return await route.abort()

    try:
        browser.call(lambda: one.raw.context.route("**/*", guard))
        one.page.goto(site.url + path)
        one.page.get_by_text("mean 0.5").wait_for(timeout=90_000)
        return one.page.locator("#out").inner_html(), outside
    except Exception as error:
        raise AssertionError(one.console) from error
    finally:
        one.close()


def check(html):
    assert "mean 0.500000 on " in html
    assert "<svg" in html and "sigmoid" in html
    assert "data:image/png;base64" in html


def test_on_the_pages_thread(browser, site):
    html, outside = outcome(browser, site)
    check(html)
    assert outside == []


def test_in_a_worker(browser, site):
    site.headers["Cross-Origin-Opener-Policy"] = "same-origin"
    site.headers["Cross-Origin-Embedder-Policy"] = "require-corp"
    page = (EXAMPLE / "index.html").read_text()
    site.pages["/worker.html"] = page.replace('type="py"', 'type="py" worker').encode()
    html, outside = outcome(browser, site, "/worker.html")
    check(html)
    assert outside == []
