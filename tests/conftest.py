"""The plugin that users have, under shorter names, and the tests' own pages."""

from pathlib import Path

import pytest

pytest_plugins = ["webgpu_py.testing"]

HARNESS = Path(__file__).parent / "browser" / "harness"


@pytest.fixture(scope="session")
def settings(gpu_settings):
    return gpu_settings


@pytest.fixture(scope="session")
def browser(gpu_browser):
    return gpu_browser


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
