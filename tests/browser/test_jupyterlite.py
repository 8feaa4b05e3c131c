"""JupyterLite, built from its packages, runs the hello-graph notebook with the network cut off."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from browser.pages import STARTED_MS
from browser.plain_server import visiting
from webgpu_py.host.pyodide_files import ensure_pyodide
from webgpu_py.host.wheel import build_wheel

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "examples/notebooks/hello_graph.ipynb"
PACKAGES = ("jupyterlite-core==0.8.*", "jupyterlite-pyodide-kernel==0.8.*", "jupyter_server")
KERNEL_NEEDS = ("ipython", "comm", "jedi")
pytestmark = pytest.mark.slow


def tool(folder, *command):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, (done.stdout + done.stderr)[-2000:]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A JupyterLite site with everything in it: Pyodide, the kernel's wheels, this package's."""
    work = tmp_path_factory.mktemp("lite")
    tool(work, sys.executable, "-m", "venv", "venv")
    python = work / "venv/bin/python"
    tool(work, python, "-m", "pip", "install", "-q", *PACKAGES)
    pure = ["--only-binary=:all:", "--python-version", "3.14", "--platform", "any", "--abi", "none"]
    download = [python, "-m", "pip", "download", "-q", *pure, "--implementation", "py"]
    tool(work, *download, "-d", work / "pypi", *KERNEL_NEEDS)
    pyodide = shutil.copytree(ensure_pyodide(), work / "static/pyodide")
    shutil.copy(next(pyodide.glob("flatbuffers-*.whl")), work / "pypi")
    build_wheel(work / "pypi")
    (work / "files").mkdir()
    shutil.copy(NOTEBOOK, work / "files")
    lite = [work / "venv/bin/jupyter-lite", "build", "--lite-dir", "."]
    tool(work, *lite, "--output-dir", "www/lite")
    return work / "www"


def test_hello_graph(browser, site):
    with visiting(browser, site) as one:
        page = one.page
        page.goto(f"{one.server.url}/lite/notebooks/index.html?path={NOTEBOOK.name}")
        page.locator(".jp-Notebook .jp-Cell").first.wait_for(timeout=STARTED_MS)
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        outputs = page.locator(".jp-Notebook .jp-OutputArea")
        page.get_by_text("Session on browser").wait_for(timeout=STARTED_MS)
        errors = page.locator("[data-mime-type='application/vnd.jupyter.error']")
        assert errors.count() == 0, errors.all_inner_texts()
        assert outputs.locator("img[alt^='y · float32 4 × 64']").count() == 1
        assert page.get_by_text("bytes on the device").count() == 1
        assert one.outside == []


def test_the_documents_install_what_is_installed_here():
    (words,) = re.findall(
        r"^pip install (jupyterlite.*)$", (ROOT / "docs/notebooks.md").read_text(), re.M
    )
    assert words.split() == [package.partition("=")[0] for package in PACKAGES]
