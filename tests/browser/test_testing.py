"""The pytest plugin, in a project of a user's own: examples/testing, copied elsewhere."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/testing"


def command():
    """The last step of the workflow, on this Python."""
    steps = re.findall(r"^ +- run: (.+)$", (EXAMPLE / "workflow.yml").read_text(), re.M)
    assert steps[0] == 'pip install "webgpu-py[browser]" pytest'
    first, *rest = steps[-1].split()
    assert first == "python"
    return [sys.executable, *rest]


@pytest.mark.slow
def test_the_workflows_last_step_passes_in_a_folder_of_its_own(tmp_path, settings):
    project = shutil.copytree(EXAMPLE, tmp_path / "project")
    (project / "pytest.ini").write_text("[pytest]\n")
    arguments = ["-p", "no:cacheprovider", "-v", "--adapter", settings.adapter]
    done = subprocess.run(
        [*command(), *arguments], cwd=project, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout and "skipped" not in done.stdout
    assert re.search(r"^browser: [\d.]+, adapter: \w", done.stdout, re.M)


def test_a_run_without_a_browser_fails_what_needs_one(tmp_path):
    project = shutil.copytree(EXAMPLE, tmp_path / "project")
    (project / "playwright.config.py").write_text(
        "from pathlib import Path\n"
        "from webgpu_py.testing import Settings\n"
        "settings = Settings(executable=Path('/nowhere/chromium'))\n"
    )
    (project / "pytest.ini").write_text("[pytest]\n")
    done = subprocess.run(
        [*command(), "-p", "no:cacheprovider"],
        cwd=project,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 1 and "1 passed, 2 errors" in done.stdout, done.stdout
    assert "browser: none, browser tests will fail" in done.stdout
