"""Pages that several files of tests share."""

import itertools

import pytest

from browser.client_page import served
from browser.download_page import DownloadPage, fault_server
from browser.pages import CASES
from webgpu_py.assets import asset_path

COUNT = itertools.count()


@pytest.fixture(scope="module")
def own_server_page(browser):
    with fault_server() as site:
        one = DownloadPage(browser, site, site)
        yield one
        one.visit.close()


@pytest.fixture(scope="module")
def other_server_page(browser):
    with fault_server() as site, fault_server() as files:
        one = DownloadPage(browser, site, files)
        yield one
        one.visit.close()


@pytest.fixture
def download(own_server_page):
    """A page whose file is its own server's."""
    return own_server_page.fresh(f"/model-{next(COUNT)}")


@pytest.fixture
def across(other_server_page):
    """A page whose file is another origin's."""
    return other_server_page.fresh(f"/model-{next(COUNT)}")


@pytest.fixture(scope="module")
def scripted(browser, settings, request):
    """An app's page over a worker that answers by script."""
    mounts = {"/": asset_path("web"), "/js/": asset_path("js")}
    mounts["/worker.js"] = request.path.parent / "harness" / "fake-worker.js"
    yield from served(browser, mounts, settings)


@pytest.fixture(scope="module")
def real(browser, mounts, settings):
    """An app's page over Python."""
    yield from served(browser, {**mounts, "/cases/": CASES}, settings)
