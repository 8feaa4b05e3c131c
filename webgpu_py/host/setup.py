"""Fetch what a command needs: `python -m webgpu_py.host.setup browser pyodide model`.

Each part re-uses what is there and says what it fetches, so it costs nothing to ask again. Parts
are fetched side by side.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from webgpu_py.errors import WebGPUPyError
from webgpu_py.host.chromium import ensure_chromium
from webgpu_py.host.demo_model import ensure_demo_model
from webgpu_py.host.fetch import say
from webgpu_py.host.pyodide_files import ensure_pyodide

PARTS: Mapping[str, Callable[[], object]] = {
    "browser": ensure_chromium,
    "pyodide": ensure_pyodide,
    "model": ensure_demo_model,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Fetch the named parts; returns the exit status."""
    parser = argparse.ArgumentParser(prog="webgpu_py.host.setup", description=__doc__)
    parser.add_argument("part", nargs="+", choices=tuple(PARTS))
    parts = parser.parse_args(arguments).part
    with ThreadPoolExecutor() as pool:
        fetching = {part: pool.submit(PARTS[part]) for part in parts}
    status = 0
    for part, done in fetching.items():
        try:
            done.result()
        except WebGPUPyError as error:
            say(f"set-up of {part} failed: {error}")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
