"""The examples as a reader runs them: copied, installed from the packed package, built."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from browser.pages import STARTED_MS
from browser.plain_server import visiting
from tiny_model import tiny_gguf
from webgpu_py.host.npm_package import write_package
from webgpu_py.host.pyodide_files import ensure_pyodide

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("npm") is None, reason="the examples need Node.js and npm"),
]


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    folder = tmp_path_factory.mktemp("npm") / "webgpu-py"
    write_package(folder)
    return folder


def tool(folder, *command):
    environment = {**os.environ, "VITE_PYODIDE": "pyodide/"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=400
    )
    assert done.returncode == 0, done.stdout + done.stderr


def built(name, package, tmp_path):
    """The example's `dist`, built in a folder of its own, with Pyodide in it."""
    work = tmp_path / name
    shutil.copytree(EXAMPLES / name, work)
    tarballs = tmp_path / "packed"
    tarballs.mkdir()
    tool(tarballs, "npm", "pack", "--silent", str(package))
    (tarball,) = tarballs.iterdir()
    tool(work, "npm", "install", "--silent", "--no-audit", str(tarball))
    tool(work, "npm", "run", "build")
    shutil.copytree(ensure_pyodide(), work / "dist/pyodide")
    return work / "dist"


def asked(one):
    """Type a question by test id; the answer."""
    one.page.get_by_text("Ready", exact=True).wait_for(timeout=STARTED_MS)
    one.by("prompt").fill("Hello")
    one.by("send").click()
    one.page.get_by_text("Answered", exact=True).wait_for(timeout=STARTED_MS)
    return one.by("answer").inner_text()


def model_at(path):
    path.parent.mkdir()
    path.write_bytes(tiny_gguf())


def test_plain_page_without_a_bundler(browser, package, tmp_path):
    folder = shutil.copytree(EXAMPLES / "plain", tmp_path / "plain")
    shutil.copytree(package, folder / "webgpu-py")
    model_at(folder / "models/model.gguf")
    with visiting(browser, folder, allow=ensure_pyodide()) as one:
        one.page.goto(one.server.url)
        assert asked(one).strip()


def test_a_graph_with_vite(browser, package, tmp_path):
    with visiting(browser, built("vite", package, tmp_path)) as one:
        one.page.goto(one.server.url)
        one.page.get_by_text("Done", exact=True).wait_for(timeout=STARTED_MS)
        y = json.loads(one.by("output").inner_text())
        np.testing.assert_allclose(y, 1 / (1 + np.exp(8.0 - np.arange(16))), rtol=1e-5)
        assert one.outside == []


def test_a_chat_with_react(browser, package, tmp_path):
    dist = built("vite-react", package, tmp_path)
    model_at(dist / "models/model.gguf")
    with visiting(browser, dist) as one:
        one.page.goto(one.server.url)
        assert asked(one).strip()
        assert one.outside == []
