"""A built site on a plain web server, under a sub-path, with the rest of the network cut off."""

import re
import shutil
import time

import pytest

from browser.pages import CASES, STARTED_MS
from browser.plain_server import visiting
from tiny_model import tiny_gguf
from webgpu_py.host import cli
from webgpu_py.host.pyodide_files import ensure_pyodide
from webgpu_py.host.site import build_site
from webgpu_py.host.urls import PYODIDE_CDN


@pytest.mark.slow
def test_bundled_site_answers_under_a_sub_path_without_a_network(browser, tmp_path, capsys):
    model = tmp_path / "tiny.gguf"
    model.write_bytes(tiny_gguf())
    site = build_site(tmp_path / "out", model, bundled=True)
    shutil.copytree(site.folder, tmp_path / "www/some/sub-path")
    with visiting(browser, tmp_path / "www") as one:
        start = time.monotonic()
        one.goto("/some/sub-path/")
        ready_s = time.monotonic() - start
        one.by("prompt").fill("Hello")
        one.by("send").click()
        one.page.locator(".after").wait_for()
        assert one.by("answer").inner_text().strip()
        assert one.outside == [] and one.violations() == []
    with capsys.disabled():
        print(f"\nbundled site: {site.nbytes():,} bytes, ready after {ready_s:.1f} s")


@pytest.mark.slow
def test_cdn_site_takes_the_rest_from_the_cdn_and_checks_it(browser, tmp_path):
    model = tmp_path / "model.pte"
    shutil.copyfile(CASES / "own/two_delegates/model.pte", model)
    build_site(tmp_path / "out", model, bundled=False)
    pyodide = ensure_pyodide()
    with visiting(browser, tmp_path / "out", allow=pyodide) as one:
        one.goto("/")
        assert one.by("graph").is_visible()
        assert one.outside and all(u.startswith(PYODIDE_CDN) for u in one.outside)
        assert {"pyodide.mjs", "pyodide.asm.wasm"} <= {u.rpartition("/")[2] for u in one.outside}
        assert one.violations() == []
    damaged = shutil.copytree(pyodide, tmp_path / "damaged")
    stdlib = damaged / "python_stdlib.zip"
    stdlib.write_bytes(stdlib.read_bytes()[:-1] + b"!")
    with visiting(browser, tmp_path / "out", allow=damaged) as one:
        one.goto("/", state="error")
        assert one.error == "NetworkError"
        assert "python_stdlib.zip" in one.page.get_by_role("alert").inner_text()


@pytest.mark.slow
def test_a_site_without_a_model_asks_for_one(browser, tmp_path):
    build_site(tmp_path, None, bundled=True)
    with visiting(browser, tmp_path) as one:
        one.goto("/")
        assert one.page.get_by_role("dialog").is_visible()
        assert one.page.locator("#model-demo").count() == 0
        one.page.locator("#model-file").set_input_files(CASES / "own/two_delegates/model.pte")
        one.by("graph").wait_for(timeout=STARTED_MS)
        one.wait("ready")
        assert one.outside == []


@pytest.mark.slow
def test_a_changed_module_is_refused_by_its_hash(browser, tmp_path):
    build_site(tmp_path, None, bundled=False)
    (client,) = tmp_path.glob("app-*/client.js")
    client.write_text(client.read_text() + "window.broken = 1;")
    with visiting(browser, tmp_path) as one:
        one.page.goto(one.server.url)
        one.page.wait_for_timeout(1000)
        assert one.state == "loading" and one.page.evaluate("window.broken") is None
        assert any("integrity" in line for line in one.console)


@pytest.mark.slow
def test_build_opens_what_it_built_and_says_when_it_was_ready(tmp_path, settings, capsys):
    model = tmp_path / "tiny.gguf"
    model.write_bytes(tiny_gguf())
    build = ["build", str(tmp_path / "out"), "--check", "--adapter", settings.adapter, "--model"]
    assert cli.main([*build, str(model)]) == 0
    *_, ready, asked = capsys.readouterr().out.splitlines()
    found = re.fullmatch(r" +([\d.]+) s +until ready on loopback \(Chromium [\d.]+, .+\)", ready)
    assert 0 < float(found[1]) < settings.boot_s
    assert asked.split(maxsplit=1) == ["0", "requests to other servers"]
    # A page that fails is a build that failed.
    assert cli.main([*build, "http://127.0.0.1:9/none.gguf"]) == 1
    assert "error [NetworkError]" in capsys.readouterr().err
