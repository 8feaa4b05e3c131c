"""A server of model files with the manners of bad servers: cut, without ranges, changed, hidden."""

import threading
import time
from dataclasses import dataclass, field, fields
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from webgpu_py.host.ranges import Unsatisfiable, span_of

BLOCK = 1 << 14


@dataclass
class FaultServer:
    """Serves `files` by path, as it is told to at the moment; `pages` and folders are served well.

    `room` is how many bytes of files go out before connections are cut: then the server is down
    until `room` is None again. `cuts` says after how many bytes the next responses end, one each.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    folders: dict[str, Path] = field(default_factory=dict)
    pages: dict[str, bytes] = field(default_factory=dict)
    etag: str | None = '"one"'
    ranges: bool = True
    shift: int = 0
    exposed: bool = True
    lengths: bool = True
    content_type: str = "application/octet-stream"
    statuses: list[int] = field(default_factory=list)
    room: int | None = None
    cuts: list[int] = field(default_factory=list)
    delay_s: float = 0
    log: list[tuple[str, str | None, int]] = field(default_factory=list)
    on_sent: object = None
    active: int = 0
    most_active: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def restart(self, files):
        """Good manners again, and other files."""
        fresh = FaultServer(files, self.folders, self.pages)
        for one in fields(self):
            if one.name not in ("active", "lock"):
                setattr(self, one.name, getattr(fresh, one.name))

    def __enter__(self):
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._http.daemon_threads = True
        self._http.site = self
        # A browser drops connections that it has no use for.
        self._http.handle_error = lambda *_: None
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self._http.shutdown()
        self._http.server_close()

    def asked(self):
        """Range headers of the requests for files, None for a whole file."""
        return [wanted for _, wanted, _ in self.log]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        site, path = self.server.site, self.path.partition("?")[0]
        if path in site.files:
            with site.lock:
                site.active += 1
                site.most_active = max(site.most_active, site.active)
            try:
                return self.model(site, path, site.files[path])
            finally:
                with site.lock:
                    site.active -= 1
        page = site.pages.get(path)
        for prefix, folder in site.folders.items():
            if page is None and path.startswith(prefix):
                page = (folder / path.removeprefix(prefix)).read_bytes()
        kind = "text/javascript" if path.endswith(".js") else "text/html"
        self.head(200 if page is not None else 404, len(page or b""), {"Content-Type": kind})
        self.wfile.write(page or b"")

    def model(self, site, path, data):
        wanted = self.headers.get("Range")
        if site.room is not None and site.room <= 0:
            site.log.append((path, wanted, 0))
            return self.cut()
        status = site.statuses.pop(0) if site.statuses else 200
        headers = {"Content-Type": site.content_type, "Access-Control-Allow-Origin": "*"}
        if site.exposed:
            headers["Access-Control-Expose-Headers"] = "ETag, Content-Range"
        if site.etag:
            headers["ETag"] = site.etag
        part = data
        if status == 200 and site.ranges and wanted:
            try:
                span = span_of(wanted, len(data))
                start, stop = span.start + site.shift, min(span.stop + site.shift, len(data))
                status, part = 206, data[start:stop]
                headers["Content-Range"] = f"bytes {start}-{stop - 1}/{len(data)}"
            except Unsatisfiable:
                status, part = 416, b""
        if status >= 400:
            part = b""
        site.log.append((path, wanted, status))
        self.head(status, len(part) if site.lengths else None, headers)
        limit = site.cuts.pop(0) if site.cuts else len(part)
        for at in range(0, len(part), BLOCK):
            block = part[at : min(at + BLOCK, limit)]
            if site.room is not None:
                block = block[: max(site.room, 0)]
                site.room -= len(block)
            try:
                self.wfile.write(block)
            except (BrokenPipeError, ConnectionResetError):
                return self.cut()
            if site.on_sent:
                site.on_sent(at + len(block))
            time.sleep(site.delay_s)
            if at + BLOCK >= limit < len(part) or (site.room is not None and site.room <= 0):
                return self.cut()

    def cut(self):
        self.close_connection = True
        self.connection.close()

    def head(self, status, length, headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if length is None:
            self.close_connection = True
            self.send_header("Connection", "close")
        else:
            self.send_header("Content-Length", str(length))
        self.end_headers()

    def log_message(self, *_):
        pass

    def finish(self):
        try:
            super().finish()
        except (OSError, ValueError):
            pass
