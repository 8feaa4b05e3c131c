"""Bring the libraries measured beside this one into `.cache/peers`: `python -m bench.peers`.

They come from npm when a benchmark is set up, and are no part of the repository.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from webgpu_py.errors import NetworkError
from webgpu_py.host.fetch import npm_pack, place, say, sha256_of
from webgpu_py.host.paths import cache_dir


@dataclass(frozen=True)
class Peer:
    """A package of npm at one version, and the files of it that a page loads."""

    package: str
    version: str
    files: Mapping[str, str]
    """Name in the peer's folder -> path in the package."""
    beside: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Files of other packages that the same folder needs, by package and version."""

    @property
    def folder(self) -> Path:
        """Where its files are kept."""
        return cache_dir() / "peers" / self.package.rpartition("/")[2]


RUNTIME = ("ort-wasm-simd-threaded.asyncify.mjs", "ort-wasm-simd-threaded.asyncify.wasm")
BUNDLED_RUNTIME = "onnxruntime-web@1.31.0-dev.20260914-8d85527a0"
"""What this version of transformers.js depends on, and loads beside itself."""

PEERS: Sequence[Peer] = (
    Peer(
        "onnxruntime-web",
        "1.30.0",
        {name: f"dist/{name}" for name in ("ort.webgpu.min.mjs", *RUNTIME)},
    ),
    Peer(
        "@wllama/wllama",
        "3.13.0",
        {"index.js": "esm/index.js", "wllama.wasm": "esm/wasm/wllama.wasm"},
    ),
    Peer(
        "@huggingface/transformers",
        "4.3.2",
        {"transformers.min.js": "dist/transformers.min.js"},
        {BUNDLED_RUNTIME: {name: f"dist/{name}" for name in RUNTIME}},
    ),
)


def ensure_peer(peer: Peer) -> Path:
    """Complete a peer's folder and return it.

    Raises:
        NetworkError: npm does not give the package, or it lacks a file.
    """
    mark = peer.folder / "version"
    wanted = {f"{peer.package}@{peer.version}": peer.files, **peer.beside}
    complete = all((peer.folder / name).is_file() for files in wanted.values() for name in files)
    if complete and mark.is_file() and mark.read_text() == peer.version:
        return peer.folder
    peer.folder.mkdir(parents=True, exist_ok=True)
    for package, files in wanted.items():
        say(f"peers: {package} (npm)")
        _take(package, files, peer.folder)
    mark.write_text(peer.version)
    return peer.folder


def _take(package: str, files: Mapping[str, str], folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        archive = npm_pack(package, Path(scratch))
        with tarfile.open(archive) as opened:
            opened.extractall(Path(scratch), filter="data")
        for name, inner in files.items():
            found = Path(scratch, "package", inner)
            if not found.is_file():
                raise NetworkError(f"{package} has no {inner}")
            place(found, folder / name, sha256_of(found))


def ensure_peers() -> Path:
    """Complete the folders of all peers and return the one above them."""
    for peer in PEERS:
        ensure_peer(peer)
    return cache_dir() / "peers"


if __name__ == "__main__":
    try:
        ensure_peers()
    except NetworkError as error:
        say(f"peers: {error}")
        sys.exit(1)
