"""Pages that several files of tests share."""

import itertools

import pytest

from browser.download_page import DownloadPage, fault_server

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
