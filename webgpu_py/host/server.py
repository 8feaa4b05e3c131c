"""A development server on loopback: folders under prefixes, byte ranges, and headers of choice.

It exists because `http.server` knows neither ranges (models resume) nor the headers that a page
needs to be tested under (CSP, COOP/COEP). It is not meant for the open network.
"""

from __future__ import annotations

import email.utils
import mimetypes
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self
from urllib.parse import unquote, urlsplit

from webgpu_py.host.ranges import Span, Unsatisfiable, span_of

MIME = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".css": "text/css; charset=utf-8",
    ".wgsl": "text/plain; charset=utf-8",
    ".py": "text/plain; charset=utf-8",
    ".md": "text/plain; charset=utf-8",
    ".svg": "image/svg+xml",
    ".wasm": "application/wasm",
    ".zip": "application/zip",
    ".whl": "application/octet-stream",
    ".gguf": "application/octet-stream",
    ".pte": "application/octet-stream",
    ".safetensors": "application/octet-stream",
}
_BLOCK = 1 << 18
_MAX_POST = 1 << 31

Sink = Callable[[str, bytes], bytes | None]
"""Takes the path and body of a POST; what it returns is the response's body."""


@dataclass(frozen=True)
class Request:
    """One line of the request log."""

    method: str
    path: str
    status: int
    headers: Mapping[str, str]


@dataclass
class Server:
    """Serve `mounts` (URL prefix -> folder or file) until `stop` or the end of a `with` block.

    `headers` go out with every response and may be changed while the server runs. `sinks` (URL
    prefix -> function) take POSTs, `pages` (exact path -> bytes, or a function that gives them) are
    served from memory; `log` keeps every request.
    """

    mounts: dict[str, Path]
    headers: dict[str, str] = field(default_factory=dict)
    sinks: dict[str, Sink] = field(default_factory=dict)
    pages: dict[str, bytes | Callable[[], bytes]] = field(default_factory=dict)
    host: str = "127.0.0.1"
    port: int = 0
    log: list[Request] = field(default_factory=list)

    def start(self) -> Self:
        """Listen, on a free port if `port` is 0, and answer on background threads."""
        self._http = _Http((self.host, self.port), _Handler)
        self._http.site = self
        self.port = self._http.server_address[1]
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.1,), daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        """Close the socket and wait for the accepting thread."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """The address of the root, without the last slash."""
        return f"http://{self.host}:{self.port}"

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def locate(self, url_path: str) -> Path | None:
        """The file behind a URL path, or None: longest prefix first, never outside its mount."""
        for prefix in sorted(self.mounts, key=len, reverse=True):
            if not url_path.startswith(prefix):
                continue
            root = self.mounts[prefix].resolve()
            inner = url_path[len(prefix) :]
            if root.is_file():
                return root if not inner else None
            if "\0" in inner or "\\" in inner or ":" in inner.partition("/")[0]:
                return None
            path = (root / inner.lstrip("/")).resolve()
            if not path.is_relative_to(root):
                return None
            if path.is_dir():
                path /= "index.html"
            if path.is_file():
                return path
        return None


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    site: Server


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body are two writes; Nagle's algorithm holds the second back for up to 40 ms.
    disable_nagle_algorithm = True
    server: _Http

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_POST(self) -> None:
        path = self._path()
        sinks = self.server.site.sinks
        sink = next((sinks[p] for p in sorted(sinks, key=len)[::-1] if path.startswith(p)), None)
        length = int(self.headers.get("Content-Length") or 0)
        if not 0 <= length <= _MAX_POST:
            self.close_connection = True
            self._send(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, b"", {})
            return
        body = self.rfile.read(length)
        if sink is None:
            self._send(HTTPStatus.NOT_FOUND, b"no such sink\n", {})
            return
        self._send(HTTPStatus.OK, sink(path, body) or b"", {"Cache-Control": "no-store"})

    def _answer(self, *, body: bool) -> None:
        path = self._path()
        page = self.server.site.pages.get(path)
        if page is not None:
            kind = {"Content-Type": _mime(Path(path)), "Cache-Control": "no-store"}
            data = page() if callable(page) else page
            self._send(HTTPStatus.OK, data, kind, body=body)
            return
        found = self.server.site.locate(path)
        if found is None:
            self._send(HTTPStatus.NOT_FOUND, b"not found\n", {}, body=body)
            return
        with found.open("rb") as stream:
            self._file(found, stream, body=body)

    def _file(self, path: Path, stream: BinaryIO, *, body: bool) -> None:
        stat = path.stat()
        etag = f'"{stat.st_size:x}-{stat.st_mtime_ns:x}"'
        common = {
            "Content-Type": _mime(path),
            "ETag": etag,
            "Last-Modified": email.utils.formatdate(stat.st_mtime, usegmt=True),
            "Accept-Ranges": "bytes",
            "Cache-Control": "no-cache",
        }
        if self.headers.get("If-None-Match") == etag:
            self._send(HTTPStatus.NOT_MODIFIED, None, common)
            return
        wanted = self.headers.get("Range")
        condition = self.headers.get("If-Range")
        whole = Span(0, stat.st_size)
        try:
            part = span_of(wanted, stat.st_size) if condition in (None, etag) else None
        except Unsatisfiable:
            common["Content-Range"] = f"bytes */{stat.st_size}"
            self._send(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, b"", common)
            return
        if part is not None:
            common["Content-Range"] = f"bytes {part.start}-{part.stop - 1}/{stat.st_size}"
        status = HTTPStatus.OK if part is None else HTTPStatus.PARTIAL_CONTENT
        self._start(status, (part or whole).nbytes, common)
        if body:
            self._copy(stream, part or whole)

    def _copy(self, stream: BinaryIO, span: Span) -> None:
        stream.seek(span.start)
        left = span.nbytes
        while left:
            block = stream.read(min(left, _BLOCK))
            if not block:
                self.close_connection = True
                return
            try:
                self.wfile.write(block)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True
                return
            left -= len(block)

    def _send(
        self, status: HTTPStatus, data: bytes | None, headers: Mapping[str, str], body: bool = True
    ) -> None:
        self._start(status, None if data is None else len(data), headers)
        if body and data:
            self.wfile.write(data)

    def _start(self, status: HTTPStatus, length: int | None, headers: Mapping[str, str]) -> None:
        site = self.server.site
        site.log.append(Request(self.command, self._path(), int(status), dict(self.headers)))
        self.send_response(status)
        for name, value in {**headers, **site.headers}.items():
            self.send_header(name, value)
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.end_headers()

    def _path(self) -> str:
        return unquote(urlsplit(self.path).path)

    def log_message(self, format: str, *args: object) -> None:
        """Stay quiet: `Server.log` is the record."""


def _mime(path: Path) -> str:
    known = MIME.get(path.suffix.lower())
    return known or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
