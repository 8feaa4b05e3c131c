"""Every code cell of every example notebook, run in order on the cpu device."""

import ast
import asyncio
import inspect
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import webgpu_py as wg
from tiny_model import tiny_gguf

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "examples/notebooks").glob("*.ipynb"))
PROGRAM = ROOT / "tests/conformance/cases/own/two_delegates/model.pte"


def cells(path):
    notebook = json.loads(path.read_text())
    assert notebook["nbformat"] == 4
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None
            source = "".join(cell["source"])
            # The one line that is not Python installs what is under test.
            if not source.startswith("%pip install -q webgpu-py"):
                yield source


async def run_cell(source, names):
    """The value of the cell's last expression, or None: as a notebook runs it, with `await`."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    for part, mode in ((tree, "exec"), (last and ast.Expression(last.value), "eval")):
        if part is None:
            return None
        code = compile(part, "cell", mode, flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        value = eval(code, names)
        if inspect.iscoroutine(value):
            value = await value
    return value


@pytest.fixture
def on_cpu(monkeypatch, tmp_path):
    """A folder with the files that notebooks open, and a device that every machine has."""
    request = wg.request_device
    monkeypatch.setattr(wg, "request_device", lambda kind: request("cpu"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.gguf").write_bytes(tiny_gguf())
    shutil.copyfile(PROGRAM, tmp_path / "model.pte")


def executed(path):
    async def run():
        names, shown = {}, []
        for source in cells(path):
            value = await run_cell(source, names)
            for kind in ("_repr_html_", "_repr_svg_"):
                if hasattr(value, kind):
                    shown.append(getattr(value, kind)())
        return names, shown

    return asyncio.run(run())


def test_there_is_a_notebook_for_each_task():
    names = {path.stem for path in NOTEBOOKS}
    tasks = {"hello_graph", "quantize_and_compare", "write_a_kernel", "chat", "open_a_program"}
    assert tasks <= names


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_every_cell_runs(path, on_cpu):
    executed(path)


def test_the_graph_computes_what_it_says(on_cpu):
    names, shown = executed(ROOT / "examples/notebooks/hello_graph.ipynb")
    w = (np.random.default_rng(0).standard_normal((64, 64)) / 8).astype(np.float32)
    h = names["ramp"].astype(np.float64) @ w.T.astype(np.float64)
    np.testing.assert_allclose(names["out"]["y"], h / (1 + np.exp(-h)), rtol=1e-5, atol=1e-6)
    assert len(shown) == 3


def test_quantizing_loses_what_four_bits_lose(on_cpu):
    names, _ = executed(ROOT / "examples/notebooks/quantize_and_compare.ipynb")
    exact = names["packed"].snr_db
    assert 18 < exact < 25 and names["found"]["absmax"].snr_db < exact
    assert abs(names["loss"] - exact) < 1.5


def test_the_kernel_of_ones_own_is_what_its_reference_says(on_cpu):
    names, shown = executed(ROOT / "examples/notebooks/write_a_kernel.ipynb")
    s = np.sin(names["x"].astype(np.float64))
    expected = s * np.tanh(np.log(np.sqrt(1 + np.exp(2 * s))))
    np.testing.assert_allclose(names["out"]["y"], expected, rtol=1e-5, atol=1e-6)
    assert len(shown) == 2 and "my.mish" in shown[0]
