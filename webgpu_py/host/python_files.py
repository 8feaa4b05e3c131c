"""Python for a page that no development server serves: a lock of its own, and where its files lie.

`python-files.js`, which the worker imports, is the outcome: Pyodide's lock cut down to what a page
needs, the address of every wheel, and the hashes of Pyodide's own files.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from webgpu_py.host.pyodide_files import OWN_PACKAGE, Lock, ensure_pyodide, own_entry
from webgpu_py.host.urls import PYODIDE_CDN
from webgpu_py.host.wheel import build_wheel

NEEDED = ("numpy", "flatbuffers", "tiktoken", "jinja2")
"""Packages of programs and language models; what they depend on comes with them."""

UNUSED = ("host", "js", "testing", "web")
"""Folders of the wheel that a page with a worker of its own never opens."""


@dataclass(frozen=True)
class PythonFiles:
    """Files to lie in one folder beside a page, and the module that says so."""

    names: tuple[str, ...]
    lock: Mapping[str, Any]
    core: Mapping[str, str]
    bundled: bool

    def module(self, folder: str) -> str:
        """The text of `python-files.js` in a folder from where `folder` leads to the files."""
        cdn = json.dumps(PYODIDE_CDN)
        here = _address(f"{folder}/")
        lines = [
            "// Where the worker finds Python. Written when this folder was made.",
            "export const pythonFiles = {",
            f"  pyodideURL: {here if self.bundled else cdn},",
            f"  lock: {json.dumps(self.lock, sort_keys=True)},",
            f"  core: {json.dumps(dict(self.core), sort_keys=True)},",
        ]
        if not self.bundled:
            # Each address is written out: a bundler finds no other.
            pairs = (f"{json.dumps(n)}: {_address(f'{folder}/{n}')}" for n in self.names)
            lines.append("  wheels: { " + ", ".join(pairs) + " },")
        return "\n".join([*lines, "};", ""])


def gather(target: Path, *, bundled: bool) -> PythonFiles:
    """Put the files into `target`: all of them if `bundled`, else those that the CDN lacks.

    Raises:
        NetworkError: Pyodide's files are not in the cache and cannot be fetched.
    """
    pyodide = ensure_pyodide()
    committed = Lock.committed()
    with tempfile.TemporaryDirectory() as scratch:
        wheel = build_wheel(Path(scratch), without=UNUSED)
        packages = {name: committed.packages[name] for name in _with_dependencies(committed)}
        packages |= {OWN_PACKAGE: own_entry(wheel)}
        ours = {packages[n]["file_name"] for n in (*committed.registry, OWN_PACKAGE)}
        names = {str(entry["file_name"]) for entry in packages.values()} if bundled else ours
        core = committed.core if bundled else {}
        target.mkdir(parents=True, exist_ok=True)
        for name in (*names, *core):
            found = wheel.path if name == wheel.path.name else pyodide / name
            shutil.copyfile(found, target / name)
    lock = {"info": committed.info, "packages": packages}
    return PythonFiles(tuple(sorted((*names, *core))), lock, committed.core, bundled)


def _with_dependencies(lock: Lock) -> list[str]:
    found: dict[str, None] = {}
    pending = list(NEEDED)
    while pending:
        name = pending.pop(0)
        if name not in found:
            found[name] = None
            pending += lock.packages[name]["depends"]
    return list(found)


def _address(path: str) -> str:
    return f"new URL({json.dumps(path)}, import.meta.url).href"
