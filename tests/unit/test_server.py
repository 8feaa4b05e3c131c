"""The development server: ranges, types, headers, and nothing outside its folders."""

import http.client
import os
from contextlib import closing

import pytest

from webgpu_py.host.ranges import Span, Unsatisfiable, span_of
from webgpu_py.host.server import Server

BODY = bytes(range(256)) * 4


@pytest.fixture
def server(tmp_path):
    site = tmp_path / "site"
    (site / "sub").mkdir(parents=True)
    (site / "index.html").write_text("<p>home</p>")
    (site / "model.gguf").write_bytes(BODY)
    (site / "sub" / "name with space.js").write_text("1")
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "one.whl").write_bytes(b"wheel")
    mounts = {"/": site, "/w/": tmp_path / "site" / "sub", "/one.whl": tmp_path / "one.whl"}
    with Server(mounts, {"X-Always": "yes"}) as running:
        yield running


def ask(server, path, method="GET", body=None, **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    with closing(http.client.HTTPConnection(server.host, server.port, timeout=10)) as connection:
        connection.putrequest(method, path, skip_accept_encoding=True)
        for name, value in named.items():
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        response = connection.getresponse()
        return response.status, response.headers, response.read()


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, None),
        ("bytes=0-0", Span(0, 1)),
        ("bytes=0-9", Span(0, 10)),
        ("bytes=5-", Span(5, 10)),
        ("bytes=5-900", Span(5, 10)),
        ("bytes=-3", Span(7, 10)),
        ("bytes=-900", Span(0, 10)),
        ("bytes=4-3", None),
        ("bytes=-", None),
        ("bytes=0-1,3-4", None),
        ("lines=0-1", None),
    ],
)
def test_ranges(header, expected):
    assert span_of(header, 10) == expected


@pytest.mark.parametrize(
    ("header", "nbytes"), [("bytes=10-", 10), ("bytes=-0", 10), ("bytes=0-", 0)]
)
def test_ranges_outside(header, nbytes):
    with pytest.raises(Unsatisfiable):
        span_of(header, nbytes)


def test_whole_file(server):
    status, headers, body = ask(server, "/model.gguf")
    assert (status, body) == (200, BODY)
    assert headers["Content-Type"] == "application/octet-stream"
    assert headers["Accept-Ranges"] == "bytes"
    assert headers["X-Always"] == "yes"


def test_part_of_a_file(server):
    status, headers, body = ask(server, "/model.gguf", Range="bytes=100-199")
    assert (status, body) == (206, BODY[100:200])
    assert headers["Content-Range"] == "bytes 100-199/1024"
    assert headers["Content-Length"] == "100"


def test_part_past_the_end(server):
    status, headers, _ = ask(server, "/model.gguf", Range="bytes=1024-")
    assert status == 416
    assert headers["Content-Range"] == "bytes */1024"


def test_if_range_falls_back_to_the_whole_file(server):
    etag = ask(server, "/model.gguf", method="HEAD")[1]["ETag"]
    assert ask(server, "/model.gguf", Range="bytes=1-1", If_Range=etag)[0] == 206
    status, _, body = ask(server, "/model.gguf", Range="bytes=1-1", If_Range='"old"')
    assert (status, body) == (200, BODY)


def test_unchanged_is_304_and_a_change_changes_the_etag(server):
    etag = ask(server, "/model.gguf")[1]["ETag"]
    status, _, body = ask(server, "/model.gguf", If_None_Match=etag)
    assert (status, body) == (304, b"")
    file = server.locate("/model.gguf")
    os.utime(file, ns=(1, 1))
    assert ask(server, "/model.gguf", If_None_Match=etag)[0] == 200


def test_head_has_the_length_and_no_body(server):
    status, headers, body = ask(server, "/model.gguf", method="HEAD")
    assert (status, headers["Content-Length"], body) == (200, "1024", b"")


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "text/html; charset=utf-8"),
        ("/sub/name%20with%20space.js", "text/javascript; charset=utf-8"),
        ("/w/name%20with%20space.js?v=1", "text/javascript; charset=utf-8"),
        ("/one.whl", "application/octet-stream"),
    ],
)
def test_types_and_mounts(server, path, kind):
    status, headers, _ = ask(server, path)
    assert (status, headers["Content-Type"]) == (200, kind)


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        "/%2e%2e/secret.txt",
        "/..%2fsecret.txt",
        "/sub/../../secret.txt",
        "/w/../../secret.txt",
        "//etc/passwd",
        "/%00",
        "/..%5csecret.txt",
        "/one.whl/x",
        "/one.whlx",
        "/sub",
        "/link.txt",
        "/missing",
    ],
)
def test_nothing_outside(server, tmp_path, path):
    (tmp_path / "site" / "link.txt").symlink_to(tmp_path / "secret.txt")
    status, _, body = ask(server, path)
    assert status == 404
    assert b"secret" not in body


def test_posts_go_to_their_sink(server):
    got = []
    server.sinks["/out/"] = lambda path, body: got.append((path, body))
    server.sinks["/out/echo"] = lambda path, body: body
    assert ask(server, "/out/1", "POST", b"abc")[0] == 200
    assert got == [("/out/1", b"abc")]
    assert ask(server, "/out/echo", "POST", b"xyz")[2] == b"xyz"
    assert ask(server, "/elsewhere", "POST", b"abc")[0] == 404
    assert ask(server, "/out/1", "POST", Content_Length="99999999999")[0] == 413


def test_pages_from_memory_and_from_a_function(server):
    count = iter(range(9))
    server.pages["/a.html"] = b"<p>"
    server.pages["/b.txt"] = lambda: str(next(count)).encode()
    assert ask(server, "/a.html")[1]["Content-Type"].startswith("text/html")
    assert [ask(server, "/b.txt")[2] for _ in range(2)] == [b"0", b"1"]


def test_headers_may_change_while_it_runs(server):
    server.headers["Content-Security-Policy"] = "default-src 'none'"
    assert ask(server, "/")[1]["Content-Security-Policy"] == "default-src 'none'"


def test_the_log_keeps_every_request(server):
    ask(server, "/model.gguf", Range="bytes=0-0")
    ask(server, "/missing")
    assert [(r.method, r.path, r.status) for r in server.log] == [
        ("GET", "/model.gguf", 206),
        ("GET", "/missing", 404),
    ]
    assert server.log[0].headers["Range"] == "bytes=0-0"


def test_many_requests_on_one_connection(server):
    with closing(http.client.HTTPConnection(server.host, server.port, timeout=10)) as connection:
        for path in ("/", "/missing", "/model.gguf", "/"):
            connection.request("GET", path)
            connection.getresponse().read()
    assert len(server.log) == 4
