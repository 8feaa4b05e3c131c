"""The npm package as a folder: `python -m webgpu_py.host.npm_package OUT`, then `npm pack OUT`.

The client and the worker of `web/`, with copies of the JavaScript half, the package's wheel and the
wheels that Pyodide's CDN lacks. Pyodide itself comes from the CDN, or from the app's `pyodideURL`.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from webgpu_py.assets import asset_path
from webgpu_py.errors import FormatError, WebGPUPyError
from webgpu_py.host.fetch import say
from webgpu_py.host.paths import checkout
from webgpu_py.host.python_files import gather
from webgpu_py.host.site import module_closure

ENTRIES = ("client.js", "openai.js", "worker.js", "local.js")
BESIDES = ("package.json", "README.md", "client.d.ts", "completions.d.ts", "openai.d.ts")
PYTHON = "python"


def write_package(folder: Path) -> None:
    """Write the package into `folder`, which must be new or empty.

    Raises:
        FormatError: there is something in it, or this is no checkout.
        NetworkError: Pyodide's files, among them the wheels to carry, cannot be had.
    """
    root = checkout()
    if root is None:
        raise FormatError("the npm package is packed from a checkout: its licence file lies there")
    if folder.exists() and any(folder.iterdir()):
        raise FormatError(f"{folder}: is not empty; give a new folder, or remove what is in it")
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(root / "LICENSE", folder / "LICENSE")
    python = gather(folder / PYTHON, bundled=False)
    with tempfile.TemporaryDirectory() as scratch:
        whole = Path(scratch)
        shutil.copytree(asset_path("web"), whole, dirs_exist_ok=True)
        shutil.copytree(asset_path("js"), whole / "js")
        (whole / "python-files.js").write_text(python.module(f"./{PYTHON}"), encoding="utf-8")
        for name in (*BESIDES, *module_closure(whole, *ENTRIES)):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(whole / name, folder / name)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the folder; returns the exit status."""
    parser = argparse.ArgumentParser(prog="webgpu_py.host.npm_package", description=__doc__)
    parser.add_argument("out", metavar="OUT", type=Path)
    options = parser.parse_args(arguments)
    try:
        write_package(options.out)
    except WebGPUPyError as error:
        say(f"error [{error.code}]: {error}")
        return 1
    say(f"to pack it: npm pack {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
