"""FEATURES.md is what these tests saw; a whole run fails when the file is stale."""

from pathlib import Path

import pytest

from ops import features

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "FEATURES.md"


def pytest_addoption(parser):
    parser.addoption(
        "--update-features", action="store_true", help="write FEATURES.md from a whole run"
    )


@pytest.fixture(autouse=True)
def count_features(request):
    """Only tests of `make test` count: what a slow one alone shows is not claimed."""
    features.counting = request.node.get_closest_marker("slow") is None
    yield
    features.counting = False


def pytest_collection_finish(session):
    here = Path(__file__).parent
    collected = {item.path.name for item in session.items if item.path.parent == here}
    all_there = collected >= {p.name for p in here.glob("test_*.py")}
    session.config.stash[WHOLE] = all_there and not session.config.option.collectonly


def pytest_deselected(items):
    if any(item.get_closest_marker("slow") is None for item in items):
        features.whole = False


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session, exitstatus):
    if exitstatus or not features.whole or not session.config.stash.get(WHOLE, False):
        return
    if session.config.getoption("--native"):
        return _finish_native(session)
    fresh = features.document()
    if session.config.getoption("--update-features", default=False):
        FILE.write_text(fresh)
    elif not FILE.exists() or FILE.read_text() != fresh:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        print("\nFEATURES.md is stale: run pytest tests/ops --update-features and commit it")


def _finish_native(session):
    """A native run counts for FEATURES.md by its list, as other runs have no such device."""
    fresh = features.native_list()
    if session.config.getoption("--update-features", default=False):
        features.NATIVE.write_text(fresh)
    elif features.NATIVE.read_text() != fresh:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        print(f"\n{features.NATIVE.name} is stale: run it with --update-features and commit it")


WHOLE = pytest.StashKey()
