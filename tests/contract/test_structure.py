"""The house's rules: imports point down, one file knows JavaScript, files stay readable."""

import ast
import re
from pathlib import Path

import pytest

from webgpu_py.bridge import JS_MODULES

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "webgpu_py"
MODULES = sorted(PACKAGE.rglob("*.py"))

FORBIDDEN = {
    "errors.py": {"graph", "ops", "bridge", "formats", "models", "host", "quant"},
    "graph": {"ops", "bridge", "backends", "formats", "models", "program", "llm", "host", "quant"},
    "quant": {"ops", "bridge", "backends", "formats", "models", "program", "llm", "host"},
    "ops": {"bridge", "backends", "formats", "models", "program", "llm", "host", "device"},
    "formats": {"ops", "bridge", "backends", "models", "program", "llm", "host"},
    "portable": {"ops", "bridge", "backends", "models", "program", "llm", "host"},
    "tokenizer": {"ops", "bridge", "backends", "models", "program", "llm", "host"},
    "models": {"bridge", "backends", "program", "llm", "host"},
    "backends": {"ops", "bridge", "formats", "models", "program", "llm", "host"},
}
"""What may not be imported from where, type hints aside."""


def imported(path):
    """First package names below webgpu_py that a module imports when it runs."""
    tree = ast.parse(path.read_text())
    hints = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    depth = len(path.relative_to(PACKAGE).parts)
    found = set()
    for node in ast.walk(tree):
        if id(node) in hints or not isinstance(node, ast.ImportFrom):
            continue
        name = node.module or ""
        if node.level == depth:
            found.add(name.split(".")[0])
        elif not node.level and name.startswith("webgpu_py."):
            found.add(name.split(".")[1])
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_down(path):
    place = path.relative_to(PACKAGE).parts[0]
    assert not imported(path) & FORBIDDEN.get(place, set())
    if place not in ("host", "testing"):
        assert not imported(path) & {"host", "testing"}


def test_only_the_bridge_knows_javascript():
    pattern = re.compile(r"^\s*(?:from|import) (?:js|pyodide|pyodide_js|_webgpu_py_js)\b", re.M)
    knowing = [p.name for p in MODULES if pattern.search(p.read_text())]
    assert knowing == ["bridge.py"]
    converting = [p.name for p in MODULES if "to_js(" in p.read_text()]
    assert converting == ["bridge.py"]


def test_the_javascript_half_is_loaded_whole_and_in_order():
    files = {p.stem: p.read_text() for p in (PACKAGE / "js").glob("*.js")}
    assert set(JS_MODULES) == set(files)
    for name, text in files.items():
        for other in re.findall(r"from '\./(\w+)\.js'", text):
            assert JS_MODULES.index(other) < JS_MODULES.index(name), f"{name} needs {other} first"


def test_files_stay_near_300_lines():
    folders = [PACKAGE.rglob("*.py"), (ROOT / "wgsl").rglob("*"), PACKAGE.rglob("*.js")]
    long = {
        str(p.relative_to(ROOT)): n
        for folder in folders
        for p in folder
        if p.is_file() and (n := len(p.read_text().splitlines())) > 400
    }
    assert not long
