"""The one place for the browser: its path, flags, the headers pages are served with, deadlines.

`playwright.config.py` re-exports `Settings` for the tests and may override any of it.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from webgpu_py.errors import NoAdapter
from webgpu_py.host.paths import cache_dir

if TYPE_CHECKING:
    from playwright.async_api import Browser, Playwright

Adapter = Literal["auto", "software", "hardware"]

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; "
    "connect-src 'self'; style-src 'self'; img-src 'self'"
)

RECORD = "browser-path"
"""File in the cache folder that holds the path set-up settled on."""

SYSTEM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MAC_APPLICATIONS = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)

QUIET_FLAGS = (
    "--headless=new",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--enable-unsafe-webgpu",
)
# SwiftShader compiles the zeroing of workgroup memory as a store an element: 0.8 ms of pipeline
# creation each, seconds for a tiled kernel. No kernel here reads workgroup memory it did not write.
ADAPTER_FLAGS: Mapping[Adapter, tuple[str, ...]] = {
    "software": (
        "--use-webgpu-adapter=swiftshader",
        "--enable-features=Vulkan",
        "--enable-dawn-features=disable_workgroup_init",
    ),
    "hardware": ("--ignore-gpu-blocklist",),
}
# Without the last of these Chromium takes its software adapter silently where no display runs.
LINUX_HARDWARE_FLAGS = (
    "--use-angle=vulkan",
    "--enable-features=Vulkan",
    "--disable-vulkan-surface",
)

INSTALL_ADVICE = (
    f"run `{sys.executable} -m playwright install --with-deps chromium`, "
    "or on Debian `sudo apt-get install -y chromium`"
)

DRIVER_ADVICE = (
    f"`{sys.executable} -m playwright --version` says why; where libatomic is missing, "
    "`sudo apt-get install -y libatomic1`"
)


@dataclass(frozen=True)
class Settings:
    """How a browser is started and how long it may take; every field may be overridden."""

    executable: Path | None = None
    """The browser to run; None: what set-up found, Playwright's own, or the system's."""
    adapter: Adapter = "software"
    headers: Mapping[str, str] = field(
        default_factory=lambda: {"Content-Security-Policy": CONTENT_SECURITY_POLICY}
    )
    extra_flags: tuple[str, ...] = ()
    launch_s: float = 60.0
    boot_s: float = 300.0
    run_s: float = 300.0

    def flags(self) -> list[str]:
        """The command line that gives this adapter in headless Chromium."""
        adapter = self.adapter
        if adapter == "auto":
            adapter = "hardware" if has_gpu() else "software"
        linux = LINUX_HARDWARE_FLAGS if adapter == "hardware" and _is_linux() else ()
        return [*QUIET_FLAGS, *ADAPTER_FLAGS[adapter], *linux, *self.extra_flags]


def has_gpu() -> bool:
    """Whether the machine shows a GPU to programs; other systems than Linux always may.

    Chromium on a Linux machine without one hangs in requestDevice where a software Vulkan driver
    (lavapipe, Mesa 22.3) is installed and it was told to use Vulkan.
    """
    return (
        not _is_linux() or any(Path("/dev").glob("dri/renderD*")) or Path("/dev/nvidia0").exists()
    )


def system_browser() -> Path | None:
    """A Chromium or Chrome that the system has, or None."""
    for name in SYSTEM_NAMES:
        found = shutil.which(name)
        if found:
            return Path(found)
    if sys.platform == "darwin":
        return next((Path(p) for p in MAC_APPLICATIONS if os.access(p, os.X_OK)), None)
    return None


def recorded_browser() -> Path | None:
    """The browser that set-up settled on, or None."""
    record = cache_dir() / RECORD
    path = Path(record.read_text(encoding="utf-8").strip()) if record.is_file() else None
    return path if path is not None and path.is_file() else None


def choose_browser(settings: Settings, playwrights_own: Path) -> Path:
    """The executable to start: the settings' own, set-up's, Playwright's, or the system's.

    Raises:
        NoAdapter: there is none; the message says how to get one.
    """
    if settings.executable is not None:
        return settings.executable
    found = recorded_browser()
    if found is None:
        found = playwrights_own if playwrights_own.is_file() else system_browser()
    if found is None:
        raise NoAdapter(
            f"no browser: neither {playwrights_own} nor any of {', '.join(SYSTEM_NAMES)} on PATH; "
            + INSTALL_ADVICE
        )
    return found


async def launch(playwright: Playwright, settings: Settings, executable: Path) -> Browser:
    """Start a headless browser as the settings say.

    Raises:
        NoAdapter: it does not start; the message has its first words and what to do.
    """
    from playwright.async_api import Error

    try:
        return await playwright.chromium.launch(
            executable_path=executable,
            headless=True,
            args=settings.flags(),
            timeout=settings.launch_s * 1000,
        )
    except Error as error:
        words = "\n".join(error.message.strip().splitlines()[:8])
        raise NoAdapter(f"{executable} does not start; {INSTALL_ADVICE}\n{words}") from error


def _is_linux() -> bool:
    return sys.platform.startswith("linux")
