"""Fixtures every test folder shares: a real browser, and Python inside it.

The browser starts only if a collected test uses `gpu`, `page` or `browser`, and a missing adapter
fails those tests: nothing is skipped.
"""

import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest

from browser.harness.gpu import Gpu
from webgpu_py.errors import WebGPUPyError
from webgpu_py.host.browser_thread import BrowserThread, Synchronous
from webgpu_py.host.mounts import development_mounts
from webgpu_py.host.probe import probe
from webgpu_py.host.server import Server

ROOT = Path(__file__).resolve().parents[1]
HARNESS = ROOT / "tests" / "browser" / "harness"
BROWSER = pytest.StashKey[BrowserThread]()
BROWSER_FIXTURES = {"gpu", "page", "browser"}
SHOWN_LIMITS = (
    "maxComputeInvocationsPerWorkgroup",
    "maxComputeWorkgroupStorageSize",
    "maxStorageBuffersPerShaderStage",
    "maxStorageBufferBindingSize",
)


def pytest_addoption(parser):
    parser.addoption(
        "--adapter",
        choices=("software", "hardware"),
        help="the adapter that browser tests use; by default what playwright.config.py says",
    )


def pytest_collection_modifyitems(items):
    """CPython tests first: they are quick, and a fault there explains one in the browser."""
    items.sort(key=needs_browser)


def needs_browser(item):
    return bool(BROWSER_FIXTURES.intersection(getattr(item, "fixturenames", ())))


def pytest_report_collectionfinish(config, items):
    """Start the browser that the collected tests need, and say which it is and what it offers."""
    if config.option.collectonly or not any(needs_browser(item) for item in items):
        return []
    try:
        thread = config.stash[BROWSER] = BrowserThread(settings_of(config)).start()
        found = probe(thread)
    except WebGPUPyError as error:
        return [f"browser: none, browser tests will fail: {error}"]
    if found["adapter"] is None:
        return [f"browser: {found['version']}, NO ADAPTER: browser tests will fail"]
    limits = found["adapter"]["limits"]
    name = " ".join(filter(None, (found["adapter"][k] for k in ("vendor", "architecture"))))
    return [
        f"browser: {found['version']}, adapter: {name}",
        "limits: " + ", ".join(f"{key}={limits[key]}" for key in SHOWN_LIMITS),
    ]


def pytest_unconfigure(config):
    thread = config.stash.get(BROWSER, None)
    if thread is not None:
        thread.stop()


def settings_of(config):
    spec = importlib.util.spec_from_file_location(
        "playwright_config", ROOT / "playwright.config.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    adapter = config.getoption("--adapter")
    return replace(module.settings, adapter=adapter) if adapter else module.settings


@pytest.fixture(scope="session")
def settings(request):
    """The browser settings of playwright.config.py, with the command line's adapter."""
    return settings_of(request.config)


@pytest.fixture(scope="session")
def browser(request, settings):
    """The one browser of the test run, on its own thread."""
    started = request.config.stash.get(BROWSER, None)
    if started is None:
        started = request.config.stash[BROWSER] = BrowserThread(settings).start()
    return started


@pytest.fixture(scope="session")
def mounts(tmp_path_factory):
    """What the pages are served from, this checkout packed as a wheel included."""
    served = development_mounts(tmp_path_factory.mktemp("wheel"))
    return {**served, "/harness/": HARNESS}


@pytest.fixture
def server(mounts, settings):
    """A server of the test's own, to change `mounts`, `headers`, `pages` and `sinks` of."""
    with Server(dict(mounts), headers=dict(settings.headers)) as running:
        yield running


@pytest.fixture
def page(browser):
    """A page in a fresh browser context, driven by plain calls; `page.target` is Playwright's."""
    raw = browser.new_page()
    yield Synchronous(browser, raw)
    browser.call(raw.context.close)


@pytest.fixture(scope="session")
def gpu(browser, mounts, settings):
    """Python in a worker of real Chromium: `gpu.run("await f(x)", x=array)`."""
    with Server(dict(mounts), headers=dict(settings.headers)) as running:
        client = Gpu(browser, running)
        yield client
        client.close()
