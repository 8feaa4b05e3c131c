"""Make `.venv` with this package in it. Run by `make` with the system's Python, as a plain script.

It uses the standard library only and parses on older Pythons, so that it can say what is missing.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
STAMP = VENV / "webgpu-py.stamp"
OLDEST = (3, 11)
CANDIDATES = ("python3.14", "python3.13", "python3.12", "python3.11")


def main() -> int:
    """Create or complete the environment; returns the exit status."""
    if sys.version_info < OLDEST:
        return _retry_with_newer()
    python = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    wanted = _fingerprint()
    if _works(python) and STAMP.is_file() and STAMP.read_text(encoding="utf-8") == wanted:
        return 0
    if not _works(python):
        problem = _create()
        if problem:
            return _fail(problem)
    print("set-up: installing webgpu-py and its test tools into .venv", file=sys.stderr)
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if subprocess.call([*install, "--editable", f"{ROOT}[test]"], cwd=ROOT):
        return _fail(
            "pip could not install the packages above. If one had to be compiled, install a "
            f"compiler and try again: {_compiler_command()}"
        )
    STAMP.write_text(wanted, encoding="utf-8")
    return 0


def _create() -> str | None:
    try:
        import ensurepip  # noqa: F401
        import venv
    except ImportError:
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        return (
            f"Python {version} has no venv module; install it: "
            f"{_sudo()}apt-get install -y python3-venv  (or python{version}-venv)"
        )
    print(f"set-up: creating .venv with Python {sys.version.split()[0]}", file=sys.stderr)
    shutil.rmtree(VENV, ignore_errors=True)
    venv.create(VENV, with_pip=True, symlinks=os.name != "nt")
    return None


def _works(python: Path) -> bool:
    if not python.exists():
        return False
    check = "import sys, pip; sys.exit(sys.version_info < (3, 11))"
    return subprocess.call([str(python), "-c", check], stderr=subprocess.DEVNULL) == 0


def _retry_with_newer() -> int:
    for name in CANDIDATES:
        found = shutil.which(name)
        if found:
            return subprocess.call([found, "-I", __file__])
    seen = ".".join(map(str, sys.version_info[:3]))
    where = "brew install python" if sys.platform == "darwin" else f"{_sudo()}apt-get install"
    package = "" if sys.platform == "darwin" else " -y python3.11 python3.11-venv"
    return _fail(f"Python {seen} is too old, 3.11 or newer is needed: {where}{package}")


def _fingerprint() -> str:
    project = (ROOT / "pyproject.toml").read_bytes()
    return hashlib.sha256(project + sys.version.encode() + str(ROOT).encode()).hexdigest()


def _compiler_command() -> str:
    if sys.platform == "darwin":
        return "xcode-select --install"
    return f"{_sudo()}apt-get install -y build-essential python3-dev"


def _sudo() -> str:
    return "" if hasattr(os, "geteuid") and os.geteuid() == 0 else "sudo "


def _fail(message: str) -> int:
    print(f"set-up: {message}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
