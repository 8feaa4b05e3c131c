"""A URL as a source outside of a browser: read in ranges, or downloaded once to a file."""

from __future__ import annotations

import asyncio
import http.client
import re
import shutil
import tempfile
import urllib.request as web
from typing import IO, Any
from urllib.error import HTTPError, URLError

from .errors import FormatError, NetworkError
from .sources import check_range

TIMEOUT_S = 60
"""Seconds without a byte after which a server counts as gone."""


def _http_only() -> web.OpenerDirector:
    """An opener that a redirect can lead to no file, no ftp and no data address."""
    opener = web.OpenerDirector()
    for handler in (
        web.ProxyHandler,
        web.HTTPHandler,
        web.HTTPSHandler,
        web.HTTPDefaultErrorHandler,
        web.HTTPRedirectHandler,
        web.HTTPErrorProcessor,
        web.UnknownHandler,
    ):
        opener.add_handler(handler())
    return opener


class HttpSource:
    """Bytes of a URL; made by `open_http`."""

    def __init__(self, url: str, nbytes: int, etag: str | None, file: IO[bytes] | None) -> None:
        self.name = url
        self.nbytes = nbytes
        self._etag = etag
        self._file = file

    async def read(self, offset: int, nbytes: int) -> bytes:
        """Exactly `nbytes` bytes from `offset`; FormatError, NetworkError."""
        check_range(self.name, self.nbytes, offset, nbytes)
        if not nbytes:
            return b""
        return await asyncio.to_thread(self._read, offset, nbytes)

    def _read(self, offset: int, nbytes: int) -> bytes:
        if self._file is not None:
            self._file.seek(offset)
            return self._file.read(nbytes)
        with _get(self.name, offset, offset + nbytes) as answer:
            place = answer.headers.get("Content-Range", "")
            if answer.status != 206 or not place.startswith(f"bytes {offset}-"):
                raise NetworkError(
                    f"{self.name}: asked for bytes from {offset}, the server answered "
                    f"{answer.status} {place}"
                )
            if answer.headers.get("ETag") != self._etag:
                raise NetworkError(
                    f"{self.name}: the file changed on the server while it was read; load it again"
                )
            found: bytes = _body(self.name, answer.read)
        if len(found) != nbytes:
            raise NetworkError(
                f"{self.name}: got {len(found)} of {nbytes} bytes from {offset}; load it again"
            )
        return found

    def close(self) -> None:
        """Forget what was downloaded."""
        if self._file is not None:
            self._file.close()


async def open_http(url: str) -> HttpSource:
    """A URL as a source. NetworkError, with the server's `status`; FormatError for a web page."""
    return await asyncio.to_thread(_open, url)


def _open(url: str) -> HttpSource:
    with _get(url, 0, 1) as answer:
        kind = answer.headers.get_content_type()
        if kind == "text/html":
            raise FormatError(
                f"{url}: got an HTML page instead of a file, starting with {answer.read(40)!r}; "
                "check the address, and whether it needs a login"
            )
        total = re.fullmatch(r"bytes 0-0/(\d+)", answer.headers.get("Content-Range", ""))
        if answer.status == 206 and total:
            return HttpSource(url, int(total[1]), answer.headers.get("ETag"), None)
        if answer.status == 206:
            raise NetworkError(f"{url}: the server does not say how long the file is")
        file = tempfile.TemporaryFile()
        _body(url, lambda: shutil.copyfileobj(answer, file))
        length = answer.headers.get("Content-Length", str(file.tell()))
        if length.strip() != str(file.tell()):
            raise NetworkError(f"{url}: got {file.tell()} of {length} bytes; load it again")
        return HttpSource(url, file.tell(), None, file)


def _get(url: str, start: int, end: int) -> Any:
    if not url.startswith(("http://", "https://")):
        raise NetworkError(f"{url}: an address begins with http:// or https://")
    try:
        request = web.Request(url, headers={"Range": f"bytes={start}-{end - 1}"})
        return _http_only().open(request, timeout=TIMEOUT_S)
    except HTTPError as error:
        found = NetworkError(f"{url}: the server answered {error.code}; check the address")
        found.status = error.code
        raise found from None
    except (URLError, OSError, ValueError, http.client.HTTPException) as error:
        raise NetworkError(f"{url}: the download failed ({error}); check the address") from None


def _body(url: str, read: Any) -> Any:
    try:
        return read()
    except (OSError, http.client.HTTPException) as error:
        raise NetworkError(f"{url}: the connection was lost ({error}); load it again") from None
