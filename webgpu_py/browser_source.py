"""Bytes that JavaScript holds or fetches, as sources: they reach the GPU past Python's heap."""

from __future__ import annotations

from typing import Any, cast

from .bridge import registered_half, settled


class BrowserSource:
    """Bytes that JavaScript holds or fetches: a URL, a dropped file, a cached download.

    `sha256` is the hash that a kept file was found to have, None where nobody asked yet.
    """

    def __init__(
        self, half: Any, handle: int, name: str, nbytes: int, sha256: str | None = None
    ) -> None:
        self._half = half
        self.handle = handle
        self.name = name
        self.nbytes = nbytes
        self.sha256 = sha256

    async def read(self, offset: int, nbytes: int) -> bytes:
        """Exactly `nbytes` bytes from `offset`; FormatError, NetworkError."""
        found = await settled(self._half.readSource(self.handle, offset, nbytes))
        return cast(bytes, found.to_bytes())

    def fetch_all(self) -> None:
        """Bring the whole file, now that its header was accepted."""
        self._half.fetchSource(self.handle)

    async def verified(self, sha256: str) -> None:
        """Note that the whole content has this hash."""
        await settled(self._half.verifiedSource(self.handle, sha256))

    async def discard(self) -> None:
        """Close the source and keep nothing of it: its content is wrong."""
        await settled(self._half.discardSource(self.handle))

    def close(self) -> None:
        """Let JavaScript forget the source; what has arrived stays in the browser's cache."""
        self._half.dropSource(self.handle)


async def open_url(url: str, keep: bool = True) -> BrowserSource:
    """A URL as a source: read in ranges where the server has them. NetworkError, FormatError.

    With `keep` what arrives stays in the browser's cache: a cut download goes on, and the next
    load of a whole one asks nothing of the network.
    """
    half = await registered_half()
    found = (await settled(half.openUrl(url, keep))).to_py()
    return BrowserSource(half, found["handle"], found["name"], found["nbytes"], found["sha256"])


async def adopt_source(handle: int, name: str, nbytes: int, sha256: str | None) -> BrowserSource:
    """A source that the page's worker has registered with the JavaScript half already."""
    return BrowserSource(await registered_half(), handle, name, nbytes, sha256)
