"""The benchmark page measures one small case, driven by its query alone."""

import json
import threading

import pytest

from bench.results import ROW_FIELDS, check
from bench.serving import site_mounts
from webgpu_py.host.browser_thread import Synchronous
from webgpu_py.host.server import Server

CASE = "linear_q4/576x576/m128"


@pytest.fixture
def measured(browser, tmp_path, request):
    """What the page posts for the query that the test asks for."""
    done, posted = threading.Event(), {}

    def received(path, body):
        posted[path] = json.loads(body) if path != "/__log" else body
        if path == "/__result":
            done.set()

    mounts = site_mounts(peers=False, wheels=tmp_path)
    with Server(mounts, sinks={"/__": received}) as server:
        raw = browser.new_page()
        page = Synchronous(browser, raw)
        page.goto(f"{server.url}/index.html?{request.param}&quick=1&date=2026-01-02")
        assert done.wait(180), page.locator("#log").inner_text()
        browser.call(raw.context.close)
    return posted


@pytest.mark.slow
@pytest.mark.parametrize("measured", [f"suite=kernels&only={CASE}"], indirect=True)
def test_a_case_is_measured_and_posted_in_the_agreed_form(measured):
    result = measured["/__result"]
    assert "error" not in result
    check(result, "posted")
    (row,) = result["rows"]
    assert measured["/__part"] == row
    assert set(ROW_FIELDS) <= set(row)
    assert (row["suite"], row["case"], row["ours"]) == ("kernels", CASE, "webgpu_py.linear_q4")
    # A node is one dispatch, and what it cannot do without are its weights, x and y.
    assert row["dispatches"] == 1
    assert row["ours_ran"] == "packed_block_subgroup"
    assert row["nbytes"] == 576 * (288 + 36) + 4 * 128 * (576 + 576)
    assert row["flops"] == 2 * 128 * 576 * 576
    assert row["ours_ms"] > 0
    assert row["peer"] is None
    assert result["date"] == "2026-01-02"


@pytest.mark.slow
@pytest.mark.parametrize("measured", ["suite=model"], indirect=True)
def test_a_language_model_is_measured(measured):
    result = measured["/__result"]
    assert "error" not in result
    rows = {row["case"]: row for row in result["rows"] if row["suite"] == "model"}
    assert {"smollm2/load", "smollm2/first_token/32", "smollm2/decode/32"} <= set(rows)
    for case in ("smollm2/load", "smollm2/first_token/32", "smollm2/decode/32"):
        assert rows[case]["ours_ms"] > 0, rows[case].get("note")
        assert "note" not in rows[case]
