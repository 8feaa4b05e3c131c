"""A pytest plugin: real Chromium, pages in it, and Python in Pyodide with a GPU.

    pytest_plugins = ["webgpu_py.testing"]  # in conftest.py

    def test_sum(gpu):
        x = np.arange(4, dtype=np.float32)
        assert gpu.run("float(x.sum())", x=x) == 6.0

The browser starts only if a collected test needs it, and says in the report's header which it is.
A missing adapter fails those tests: nothing is skipped. Another browser, adapter or other headers
are the `settings` of a `playwright.config.py` in pytest's root folder.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from webgpu_py.errors import WebGPUPyError
from webgpu_py.host.browser import Settings
from webgpu_py.host.browser_thread import BrowserThread, Synchronous
from webgpu_py.host.mounts import development_mounts
from webgpu_py.host.probe import probe
from webgpu_py.host.server import Server
from webgpu_py.testing.gpu import MOUNT, PAGE, Gpu

__all__ = ["Gpu", "Server", "Settings"]

CONFIG = "playwright.config.py"
BROWSER = pytest.StashKey[BrowserThread]()
SHOWN_LIMITS = (
    "maxComputeInvocationsPerWorkgroup",
    "maxComputeWorkgroupStorageSize",
    "maxStorageBuffersPerShaderStage",
    "maxStorageBufferBindingSize",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--adapter software|hardware`."""
    parser.addoption(
        "--adapter",
        choices=("software", "hardware"),
        help=f"the adapter that browser tests use; by default what {CONFIG} says, else software",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests without a browser first: they are quick, and a fault there explains one in it."""
    items.sort(key=_needs_browser)


def _needs_browser(item: pytest.Item) -> bool:
    return "gpu_browser" in getattr(item, "fixturenames", ())


def pytest_report_collectionfinish(
    config: pytest.Config, items: Sequence[pytest.Item]
) -> Sequence[str]:
    """Start the browser that the collected tests need, and say which it is and what it offers."""
    if config.option.collectonly or not any(_needs_browser(item) for item in items):
        return []
    try:
        thread = config.stash[BROWSER] = BrowserThread(_settings(config)).start()
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


def pytest_unconfigure(config: pytest.Config) -> None:
    """Close the browser."""
    thread = config.stash.get(BROWSER, None)
    if thread is not None:
        thread.stop()


def _settings(config: pytest.Config) -> Settings:
    path = config.rootpath / CONFIG
    settings = Settings()
    if path.is_file():
        spec = importlib.util.spec_from_file_location("playwright_config", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        settings = module.settings
    adapter = config.getoption("--adapter")
    return replace(settings, adapter=adapter) if adapter else settings


@pytest.fixture(scope="session")
def gpu_settings(request: pytest.FixtureRequest) -> Settings:
    """The browser settings of playwright.config.py, with the command line's adapter."""
    return _settings(request.config)


@pytest.fixture(scope="session")
def gpu_browser(request: pytest.FixtureRequest, gpu_settings: Settings) -> BrowserThread:
    """The one browser of the test run, on its own thread."""
    started = request.config.stash.get(BROWSER, None)
    if started is None:
        started = request.config.stash[BROWSER] = BrowserThread(gpu_settings).start()
    return started


@pytest.fixture(scope="session")
def gpu_mounts(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """What servers serve: the pages, Pyodide, this package as a wheel; URL prefix -> path."""
    return {**development_mounts(tmp_path_factory.mktemp("wheel")), MOUNT: PAGE}


@pytest.fixture(scope="session")
def gpu_packages() -> Sequence[str]:
    """Packages that `gpu` loads beyond NumPy; override it with `tiktoken`, `jinja2` for an LLM."""
    return ()


@pytest.fixture
def gpu_server(gpu_mounts: Mapping[str, Path], gpu_settings: Settings) -> Iterator[Server]:
    """A server of the test's own, to change `mounts`, `headers`, `pages` and `sinks` of."""
    with Server(dict(gpu_mounts), headers=dict(gpu_settings.headers)) as running:
        yield running


@pytest.fixture
def gpu_page(gpu_browser: BrowserThread) -> Iterator[Any]:
    """A page in a fresh browser context, driven by plain calls; `target` is Playwright's page."""
    raw = gpu_browser.new_page()
    yield Synchronous(gpu_browser, raw)
    gpu_browser.call(raw.context.close)


@pytest.fixture(scope="session")
def gpu(
    gpu_browser: BrowserThread,
    gpu_mounts: Mapping[str, Path],
    gpu_settings: Settings,
    gpu_packages: Sequence[str],
) -> Iterator[Gpu]:
    """Python in a worker of real Chromium: `gpu.run("await f(x)", x=array)`."""
    with Server(dict(gpu_mounts), headers=dict(gpu_settings.headers)) as running:
        client = Gpu(gpu_browser, running, packages=gpu_packages)
        yield client
        client.close()
