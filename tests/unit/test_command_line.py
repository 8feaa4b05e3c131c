"""The command line as a newcomer meets it: what works at once, and what an error says to do."""

import asyncio
import json
import sys
from pathlib import Path

import numpy as np
import pytest

import webgpu_py as wg
from webgpu_py.host import cli
from webgpu_py.host.browser_thread import BrowserThread

RECIPE = Path(__file__).parents[1] / "conformance/cases/own/recipe"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x = np.fromfile(RECIPE / "run0_in0.bin", np.float32).reshape(4, 64)
    np.savez("in.npz", arg0=x)
    return tmp_path


def run(inputs):
    model = str(RECIPE / "model.pte")
    return cli.main(["run", model, "--device", "cpu", "--inputs", inputs, "--outputs", "out.npz"])


def test_run_takes_and_writes_arrays_by_their_place(here):
    assert run("in.npz") == 0
    expected = np.fromfile(RECIPE / "run0_golden0.bin", np.float32).reshape(4, 64)
    with np.load("out.npz") as out:
        assert out.files == ["out0"]
        np.testing.assert_allclose(out["out0"], expected, rtol=1e-4, atol=1e-6)


def test_inputs_that_are_no_npz_are_refused_with_the_way_to_write_one(here, capsys):
    np.save("one.npy", np.ones(3))
    np.savez("objects.npz", arg0=np.array([{}], dtype=object))
    Path("notes.txt").write_text("arg0")
    for name in ("one.npy", "objects.npz", "notes.txt"):
        assert run(name) == 1
        told = capsys.readouterr().err
        assert told.startswith(f"error [FormatError]: {name}: ") and "numpy.savez(" in told
    assert run("none.npz") == 1
    assert "none.npz" in capsys.readouterr().err
    assert not Path("out.npz").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["generate", "demo", "--prompt", "Hi", "--max-tokens", "0"], "max_tokens=0, allowed are"),
        (["generate", "demo", "--prompt", "Hi", "--temperature", "-1"], "temperature=-1.0, allow"),
        (["generate", "none.gguf", "--prompt", "Hi"], "none.gguf"),
        (["run", "none.pte", "--inputs", "in.npz", "--outputs", "out.npz"], "none.pte"),
    ],
)
def test_what_cannot_work_is_refused_before_a_browser_starts(
    here, monkeypatch, capsys, words, told
):
    monkeypatch.setattr(BrowserThread, "start", lambda self: pytest.fail("a browser was started"))
    assert cli.main(words) == 1
    assert told in capsys.readouterr().err


def test_inspect_prints_a_program_line_by_line(capsys):
    assert cli.main(["inspect", str(RECIPE / "model.pte")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:5] == [
        "method forward",
        "  input 0: float32 [4, 64]",
        "  output 0: float32 [4, 64]",
        "  delegated aten.linear.default x 1",
    ]
    plan, unsupported = lines[-2:]
    assert plan.startswith("  memory plan: buffers ") and plan.endswith(" bytes")
    assert unsupported == "  unsupported: none"


def test_conformance_without_a_case_fails_and_says_why(tmp_path, capsys):
    status = cli.main(["conformance", str(RECIPE), "--device", "cpu", "--only", "own/recipes"])
    told = capsys.readouterr()
    assert status == 1
    assert told.out == "conformance: 0 passed, 0 failed, 0 errors, 0 missing\n"
    assert "no case that matches own/recipes; a case is a folder with a manifest.json" in told.err
    assert cli.main(["conformance", str(RECIPE), "--device", "cpu", "--only", "own/r*"]) == 0
    assert capsys.readouterr().out.startswith("PASS own/recipe ")


def test_the_doctor_without_playwright_advises_to_install_it(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "playwright.async_api", None)
    assert cli.main(["doctor", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["problem"]["code"] == "NoAdapter"
    (advice,) = report["advice"]
    assert f"{sys.executable} -m pip install playwright" in advice


def test_a_browsers_device_outside_of_one_names_the_others():
    with pytest.raises(wg.FeatureMissing, match=r"request_device\('native'\).*'cpu'.*webgpu-py"):
        asyncio.run(wg.request_device("browser"))


def test_a_misspelt_operator_is_told_the_name_that_is_meant():
    g = wg.Graph()
    x = g.input("x", (2,))
    with pytest.raises(wg.UnsupportedOperator, match=r"'aten\.sigmoid\.default' among them"):
        g.call("aten.sigmoidd.default", x)
    with pytest.raises(wg.UnsupportedOperator, match=r"unsupported op: zzz; \d+ names are known, "):
        g.call("zzz", x)
