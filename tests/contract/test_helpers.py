"""`webgpu_py/graph/helpers.pyi`: `g.relu(x)` for editors and type checkers, as the operators are.

Write it anew: `python tests/contract/test_helpers.py`.
"""

import inspect
import subprocess
import sys
from pathlib import Path

from webgpu_py.graph.builder import Graph, helper_names
from webgpu_py.graph.operator import find_operator

ROOT = Path(__file__).resolve().parents[2]
STUB = ROOT / "webgpu_py/graph/helpers.pyi"
HEAD = '''"""Short names of the operators; written by tests/contract/test_helpers.py."""

from collections.abc import Sequence

from .builder import Var

Argument = Var | bool | int | float | str | Sequence[Var | None] | Sequence[float] | None

class Helpers:
'''


def parameters(arguments):
    """Positional ones, as a call takes them; only the last may be left out."""
    told = []
    required = max((k for k, a in enumerate(arguments) if not a.optional), default=-1)
    for k, argument in enumerate(arguments):
        told.append(f"{argument.name}: Argument{' = ...' if k > required else ''}")
    return ", ".join(["self", *told, "/"])


def stub():
    lines = []
    for helper, name in sorted(helper_names().items()):
        operator = find_operator(name)
        signature = operator.signature
        result = "Var" if signature.kind != "list" else "tuple[Var, ...]"
        words = inspect.getdoc(type(operator)).splitlines()[0]
        lines.append(f"    def {helper}({parameters(signature.arguments)}) -> {result}:")
        lines.append(f'        """`{name}`: {words}"""')
    return HEAD + "\n".join(lines) + "\n"


def test_the_stub_is_what_the_operators_say():
    assert STUB.read_text() == stub(), f"run {Path(__file__).relative_to(ROOT)}"


def test_no_helper_hides_a_method():
    assert not [name for name in helper_names() if hasattr(Graph, name)]


def test_a_type_checker_sees_a_wrong_call(tmp_path):
    (tmp_path / "user.py").write_text(
        "import webgpu_py as wg\n"
        "g = wg.Graph()\n"
        'x = g.input("x", (4, 8))\n'
        "y: wg.Var = g.softmax(x, -1, False)\n"
        "values, places = g.topk_missing(x)\n"
        "g.relu(x, x)\n"
        "g.softmax(x)\n"
        "g.relu(object())\n"
    )
    command = [sys.executable, "-m", "mypy", "--no-incremental", "user.py"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=200)
    lines = [line.split(":")[1] for line in found.stdout.splitlines() if ": error:" in line]
    assert lines == ["6", "7", "8"], found.stdout + found.stderr


if __name__ == "__main__":
    STUB.write_text(stub())
