"""Bring the libraries measured beside this one into `.cache/peers`: `python -m bench.peers`.

They come from npm when a benchmark is set up, and are no part of the repository.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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

    @property
    def folder(self) -> Path:
        """Where its files are kept."""
        return cache_dir() / "peers" / self.package.rpartition("/")[2]


ORT_FILES = {
    f"{stem}": f"dist/{stem}"
    for stem in (
        "ort.webgpu.min.mjs",
        "ort-wasm-simd-threaded.asyncify.mjs",
        "ort-wasm-simd-threaded.asyncify.wasm",
    )
}
PEERS: Sequence[Peer] = (
    Peer("onnxruntime-web", "1.30.0", ORT_FILES),
    Peer(
        "@wllama/wllama",
        "3.13.0",
        {"index.js": "esm/index.js", "wllama.wasm": "esm/wasm/wllama.wasm"},
    ),
)


def ensure_peer(peer: Peer) -> Path:
    """Complete a peer's folder and return it.

    Raises:
        NetworkError: npm does not give the package, or it lacks a file.
    """
    mark = peer.folder / "version"
    complete = all((peer.folder / name).is_file() for name in peer.files)
    if complete and mark.is_file() and mark.read_text() == peer.version:
        return peer.folder
    say(f"peers: {peer.package} {peer.version} (npm)")
    peer.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=peer.folder.parent) as scratch:
        archive = npm_pack(f"{peer.package}@{peer.version}", Path(scratch))
        with tarfile.open(archive) as opened:
            opened.extractall(Path(scratch), filter="data")
        for name, inner in peer.files.items():
            found = Path(scratch, "package", inner)
            if not found.is_file():
                raise NetworkError(f"{peer.package} {peer.version} has no {inner}")
            place(found, peer.folder / name, sha256_of(found))
    mark.write_text(peer.version)
    return peer.folder


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
