"""The plugin that users have, under shorter names, the tests' own pages, and what is counted."""

from pathlib import Path

import pytest

from ops import native

pytest_plugins = ["webgpu_py.testing"]

HARNESS = Path(__file__).parent / "browser" / "harness"
COUNTS = pytest.StashKey()


def pytest_addoption(parser):
    parser.addoption(
        "--native", action="store_true", help="wgpu-py instead of the browser for operators"
    )
    parser.addoption(
        "--fuzz-seconds", type=float, help="how long each fuzzer goes on, instead of a moment"
    )


def pytest_configure(config):
    config.stash[COUNTS] = []
    if config.getoption("--native"):
        config.pluginmanager.register(native)


def pytest_terminal_summary(terminalreporter, config):
    if config.stash[COUNTS]:
        terminalreporter.section("counts")
        for line in config.stash[COUNTS]:
            terminalreporter.line(line)


@pytest.fixture(scope="session")
def counts(request):
    """Lines for the end of the report: what was tried, how often."""
    return request.config.stash[COUNTS]


@pytest.fixture(scope="session")
def settings(gpu_settings):
    return gpu_settings


@pytest.fixture(scope="session")
def browser(gpu_browser):
    return gpu_browser


@pytest.fixture(scope="session")
def gpu_packages():
    """One worker serves the tests of operators and of language models: Pyodide starts once."""
    return ("tiktoken", "regex", "jinja2")


@pytest.fixture(scope="session")
def gpu_mounts(gpu_mounts):
    return {**gpu_mounts, "/harness/": HARNESS}


@pytest.fixture(scope="session")
def mounts(gpu_mounts):
    return gpu_mounts


@pytest.fixture
def server(gpu_server):
    return gpu_server


@pytest.fixture
def page(gpu_page):
    return gpu_page
