"""The documented Content-Security-Policy: chat and program under it, and not one violation."""

import json
import re
from pathlib import Path

import pytest

from browser.pages import CASES, STARTED_MS, Visit
from tiny_model import tiny_gguf
from webgpu_py.host.browser import CONTENT_SECURITY_POLICY
from webgpu_py.host.server import Server

DOCS = Path(__file__).resolve().parents[2] / "docs" / "page.md"


@pytest.fixture
def site(mounts):
    """A server whose policy reports to it, the worker's violations too."""
    with Server({**mounts, "/cases/": CASES}) as running:
        running.reports = []
        policy = f"{CONTENT_SECURITY_POLICY}; report-uri /violations"
        running.headers["Content-Security-Policy"] = policy
        running.sinks["/violations"] = lambda _path, body: running.reports.append(json.loads(body))
        running.pages["/tiny.gguf"] = tiny_gguf()
        yield running


def test_the_documented_policy_is_the_one_that_pages_are_tested_under():
    assert CONTENT_SECURITY_POLICY in DOCS.read_text()


def test_chat_and_program_violate_nothing(browser, site):
    one = Visit(browser, site).goto("/?model=tiny.gguf")
    try:
        one.by("prompt").fill("Hello")
        one.by("send").click()
        one.page.locator(".after").wait_for(timeout=STARTED_MS)
        one.page.locator("#model-file").set_input_files(CASES / "own/two_delegates/model.pte")
        one.by("run").wait_for(timeout=STARTED_MS)
        one.by("run").click()
        one.page.get_by_text(re.compile("Ran in")).wait_for(timeout=STARTED_MS)
        one.page.wait_for_timeout(300)
        assert one.violations() == [] and site.reports == []
        # The count counts: one for the page, one for a worker.
        one.page.evaluate("fetch('https://example.com').catch(() => 0)")
        site.pages["/bad.js"] = b"fetch('https://example.org').catch(() => self.postMessage(0))"
        one.page.evaluate(
            "new Promise((done) => { new Worker('/bad.js', {type: 'module'}).onmessage = done })"
        )
        one.page.wait_for_timeout(500)
        blocked = [r["csp-report"]["blocked-uri"] for r in site.reports]
        assert sorted(blocked) == ["https://example.com/", "https://example.org/"]
    finally:
        one.close()
