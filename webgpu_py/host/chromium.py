"""Get a browser: Playwright's own if it can be had, else the system's, else the package manager's.

What was settled on is kept in the cache folder, so that a machine where Playwright cannot download
does not try again at every command.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from webgpu_py.errors import NoAdapter
from webgpu_py.host import fetch
from webgpu_py.host.browser import (
    DRIVER_ADVICE,
    INSTALL_ADVICE,
    RECORD,
    recorded_browser,
    system_browser,
)
from webgpu_py.host.paths import cache_dir

DOWNLOAD_S = 600.0
APT_S = 900.0
_PLAYWRIGHTS_PATH = (
    "from playwright.sync_api import sync_playwright\n"
    "with sync_playwright() as p: print(p.chromium.executable_path)"
)


def ensure_chromium() -> Path:
    """The browser to use, fetched if there is none yet.

    Raises:
        NoAdapter: no browser can be had, or Playwright cannot drive one; the message has the
            command that helps.
    """
    _ensure_playwright_starts()
    recorded = recorded_browser()
    if recorded is not None and _runs(recorded):
        return recorded
    found = _playwrights_own() or _working(system_browser()) or _from_apt()
    if found is None:
        raise NoAdapter(
            "no usable Chromium: Playwright's download failed and the system has none; "
            + INSTALL_ADVICE
        )
    with fetch.replacing(cache_dir() / RECORD) as temporary:
        temporary.write_text(f"{found}\n", encoding="utf-8")
    fetch.say(f"browser: {found}")
    return found


def _ensure_playwright_starts() -> None:
    if _driver_runs():
        return
    # The driver's Node.js needs libatomic, which a minimal Debian or Ubuntu lacks.
    if _can_apt():
        fetch.say("browser: apt-get install libatomic1, which Playwright needs")
        _apt_install("libatomic1")
    if not _driver_runs():
        raise NoAdapter(f"Playwright does not start; {DRIVER_ADVICE}")


def _driver_runs() -> bool:
    return _succeeds([sys.executable, "-m", "playwright", "--version"])


def _playwrights_own() -> Path | None:
    located = subprocess.run(
        [sys.executable, "-c", _PLAYWRIGHTS_PATH], capture_output=True, text=True, timeout=60
    )
    path = Path(located.stdout.strip())
    if not path.is_file():
        fetch.say("browser: downloading Playwright's Chromium")
        if not _tool([sys.executable, "-m", "playwright", "install", "chromium"], DOWNLOAD_S):
            fetch.say("browser: Playwright's Chromium cannot be downloaded here")
            return None
    if not _runs(path) and _is_root():
        fetch.say("browser: installing the system libraries that Chromium needs")
        _tool([sys.executable, "-m", "playwright", "install-deps", "chromium"], APT_S)
    return _working(path)


def _from_apt() -> Path | None:
    if not _can_apt():
        return None
    fetch.say("browser: apt-get install chromium")
    _apt_install("chromium")
    return _working(system_browser())


def _apt_install(package: str) -> None:
    quiet = ["apt-get", "-qq", "-o", "Dpkg::Use-Pty=0"]
    _tool([*quiet, "update"], APT_S)
    _tool([*quiet, "install", "-y", "--no-install-recommends", package], APT_S)


def _can_apt() -> bool:
    return _is_root() and shutil.which("apt-get") is not None


def _tool(command: list[str], limit_s: float) -> bool:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=limit_s,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        fetch.say(f"browser: {error}")
        return False
    if done.returncode:
        lines = [line for line in done.stdout.splitlines() if "rror" in line or "E:" in line]
        fetch.say("\n".join(lines[:3]))
    return done.returncode == 0


def _working(path: Path | None) -> Path | None:
    return path if path is not None and _runs(path) else None


def _runs(path: Path) -> bool:
    return _succeeds([str(path), "--version"])


def _succeeds(command: list[str]) -> bool:
    try:
        done = subprocess.run(command, capture_output=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0
