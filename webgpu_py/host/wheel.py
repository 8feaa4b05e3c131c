"""Pack wheels with the standard library: this package for the browser, and others made pure.

What `build_wheel` packs equals what the build backend packs (a contract test compares them); it is
here so that a page served from a checkout always runs the checkout, without a build step.
"""

from __future__ import annotations

import base64
import hashlib
import zipfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from webgpu_py.assets import asset_path
from webgpu_py.host import fetch

DIST = "webgpu-py"
_EPOCH = (1980, 1, 1, 0, 0, 0)
_SKIPPED = {"__pycache__", ".DS_Store"}


@dataclass(frozen=True)
class Wheel:
    """A wheel file of this package."""

    path: Path
    version: str


def build_wheel(folder: Path, without: Collection[str] = ()) -> Wheel:
    """Pack the imported `webgpu_py`, its kernels and pages into a wheel in `folder`.

    `without` names folders of the package that stay out. The bytes depend on the packed files only,
    so an unchanged tree gives an unchanged wheel.
    """
    installed = metadata.distribution(DIST)
    version = installed.version
    left_out = tuple(f"webgpu_py/{name}/" for name in without)
    files = {n: data for n, data in _package_files().items() if not n.startswith(left_out)}
    info = f"webgpu_py-{version}.dist-info"
    files[f"{info}/METADATA"] = (installed.read_text("METADATA") or "").encode()
    files[f"{info}/WHEEL"] = _wheel_text()
    target = folder / f"webgpu_py-{version}-py3-none-any.whl"
    with fetch.replacing(target) as temporary:
        _write(temporary, files, info, zipfile.ZIP_DEFLATED)
    return Wheel(target, version)


def repack_pure(wheel: Path, target: Path) -> Path:
    """Copy a wheel without its binaries, as `py3-none-any`, for packages that work without them.

    Members are stored, not compressed: the result has the same bytes on every machine.
    """
    with zipfile.ZipFile(wheel) as opened:
        files = {
            name: opened.read(name)
            for name in opened.namelist()
            if name.endswith((".py", ".pyi", "py.typed", "/METADATA", "/LICENSE.txt"))
        }
    info = next(n for n in files if n.endswith("/METADATA")).rpartition("/")[0]
    files[f"{info}/WHEEL"] = _wheel_text()
    _write(target, files, info, zipfile.ZIP_STORED)
    wheel.unlink()
    return target


def _package_files() -> dict[str, bytes]:
    package = Path(__file__).resolve().parents[1]
    folders = {"webgpu_py": package}
    folders |= {f"webgpu_py/{name}": asset_path(name) for name in ("wgsl", "web")}
    files: dict[str, bytes] = {}
    for prefix, folder in folders.items():
        for path in sorted(folder.rglob("*")):
            inner = path.relative_to(folder)
            if path.is_file() and not _SKIPPED.intersection(inner.parts):
                files[f"{prefix}/{inner.as_posix()}"] = path.read_bytes()
    return files


def _wheel_text() -> bytes:
    return b"Wheel-Version: 1.0\nGenerator: webgpu-py\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def _write(target: Path, files: Mapping[str, bytes], info: str, method: int) -> None:
    record = f"{info}/RECORD"
    lines = [f"{name},sha256={_digest(data)},{len(data)}" for name, data in sorted(files.items())]
    everything = [*sorted(files.items()), (record, "\n".join([*lines, f"{record},,", ""]).encode())]
    with zipfile.ZipFile(target, "w", method) as out:
        for name, data in everything:
            member = zipfile.ZipInfo(name, _EPOCH)
            member.external_attr = 0o644 << 16
            member.compress_type, member.create_system = method, 3
            out.writestr(member, data)


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
