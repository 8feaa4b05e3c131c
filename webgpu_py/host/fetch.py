"""Bring a file here and prove that it is the one the project pinned."""

from __future__ import annotations

import hashlib
import http.client
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from webgpu_py.errors import NetworkError

CONNECT_S = 10.0
PIP_S = 900.0
_BLOCK = 1 << 20


def say(message: str) -> None:
    """Tell the person at the terminal what is happening; stdout stays for results."""
    print(message, file=sys.stderr, flush=True)


def sha256_of(path: Path) -> str:
    """The hex SHA-256 of a file's bytes."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def is_exactly(path: Path, sha256: str) -> bool:
    """Whether the file is there and has exactly the pinned bytes."""
    return path.is_file() and sha256_of(path) == sha256


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A temporary path beside `target` that takes its place when the block succeeds."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o644)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def place(source: Path, target: Path, sha256: str) -> None:
    """Copy a file into place after checking its bytes.

    Raises:
        NetworkError: the bytes are not the pinned ones.
    """
    _require(source, sha256, target.name)
    with replacing(target) as temporary:
        shutil.copyfile(source, temporary)


def download(url: str, target: Path, sha256: str) -> None:
    """Fetch a URL into a file, which appears only when its bytes are the pinned ones.

    Raises:
        NetworkError: the address is unreachable, or it served other bytes.
    """
    request = urllib.request.Request(url, headers={"User-Agent": "webgpu-py"})
    with replacing(target) as temporary:
        try:
            with (
                urllib.request.urlopen(request, timeout=CONNECT_S) as response,
                temporary.open("wb") as out,
            ):
                shutil.copyfileobj(response, out, _BLOCK)
        except (OSError, http.client.HTTPException) as error:
            raise NetworkError(f"{url}: {error}") from error
        _require(temporary, sha256, url)


def pip_download(requirement: str, folder: Path, *options: str) -> Path:
    """Fetch one distribution file with pip, without its dependencies, and return its path.

    Raises:
        NetworkError: pip is missing or failed; the message carries pip's last lines.
    """
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest"]
    _tool([*command, str(folder), *options, requirement], f"pip download {requirement}")
    return _only_file(folder, requirement)


def npm_pack(package: str, folder: Path) -> Path:
    """Fetch one npm package's tarball and return its path.

    Raises:
        NetworkError: npm is missing or failed.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise NetworkError(f"npm pack {package}: npm is not installed")
    _tool([npm, "pack", "--silent", "--pack-destination", str(folder), package], f"npm {package}")
    return _only_file(folder, package)


def _tool(command: list[str], what: str) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PIP_S, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NetworkError(f"{what}: {error}") from error
    if done.returncode:
        tail = "\n".join((done.stderr or done.stdout).strip().splitlines()[-6:])
        raise NetworkError(f"{what} exited {done.returncode}:\n{tail}")


def _only_file(folder: Path, what: str) -> Path:
    files = [path for path in folder.iterdir() if path.is_file()]
    if len(files) != 1:
        raise NetworkError(f"{what}: expected one downloaded file in {folder}, found {len(files)}")
    return files[0]


def _require(path: Path, sha256: str, what: str) -> None:
    seen = sha256_of(path)
    if seen != sha256:
        raise NetworkError(
            f"{what}: SHA-256 is {seen}, the lock has {sha256}; "
            "a damaged or changed download, not used"
        )
