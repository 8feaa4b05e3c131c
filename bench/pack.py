"""Put the bench page into a folder for a machine without network: `python -m bench.pack FOLDER`.

Any static server will do that serves the folder, and Pyodide under /pyodide/, and takes the page's
POSTs: text to /__log, a row to /__part, the result to /__result. `--pyodide` packs Pyodide in,
`--peers` the other libraries, `--models` the demo model. The page is driven by its query alone:
`index.html?suite=kernels&only=linear_q4*&quick=1`.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.serving import site_mounts

OPTIONAL = ("/pyodide/", "/peers/", "/models/")
MARK = "suite-kernels.js"
"""A file that only a packed bench has."""


def pack(folder: Path, extra: Sequence[str] = ()) -> int:
    """Copy what the page needs into `folder`, which is made anew; the bytes written.

    `extra` names the OPTIONAL prefixes to copy as well.

    Raises:
        FileExistsError: the folder holds something else than an earlier pack.
    """
    if folder.exists():
        if any(folder.iterdir()) and not (folder / MARK).is_file():
            raise FileExistsError(f"{folder} is not empty and no packed bench; name another folder")
        shutil.rmtree(folder)
    # Short prefixes first: "/" would otherwise cover what lies below it.
    for prefix, source in sorted(site_mounts(peers="/peers/" in extra).items()):
        target = folder / prefix.strip("/")
        if prefix in OPTIONAL and prefix not in extra:
            continue
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True, ignore=_unneeded)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())


def _unneeded(_folder: str, names: list[str]) -> list[str]:
    # The wheel is served under its short name as well.
    return [n for n in names if n == "__pycache__" or n.startswith("webgpu_py-")]


def main(arguments: list[str] | None = None) -> int:
    """Pack; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.pack", description=__doc__)
    parser.add_argument("folder", type=Path)
    for prefix in OPTIONAL:
        name = prefix.strip("/")
        parser.add_argument(f"--{name}", dest="extra", action="append_const", const=prefix)
    given = parser.parse_args(arguments)
    nbytes = pack(given.folder, given.extra or ())
    print(f"{given.folder}: {nbytes / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
