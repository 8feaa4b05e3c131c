"""Servers that mean harm: whatever they answer is an error of ours, soon and in little memory."""

import asyncio
import contextlib
import socket
import threading
import time
import tracemalloc
from urllib.error import URLError

import pytest

from webgpu_py.errors import FormatError, NetworkError
from webgpu_py.http_source import _http_only, open_http

OK = b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-0/100\r\n"
FOUND = b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: "
ANSWERS = {
    "redirect to a file": FOUND + b"file:///etc/hostname\r\n\r\n",
    "redirect to ftp": FOUND + b"ftp://127.0.0.1/x\r\n\r\n",
    "redirect to data": FOUND + b"data:text/plain,GGUF\r\n\r\n",
    "redirect to itself": FOUND + b"/\r\n\r\n",
    "redirect to nothing": FOUND + b"http://[::bad/\r\n\r\n",
    "a header of a megabyte": OK + b"X: " + b"x" * (1 << 20) + b"\r\n\r\n",
    "a thousand headers": OK + b"".join(b"X-%d: y\r\n" % i for i in range(1000)) + b"\r\n",
    "a length that is no number": b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\nGGUF",
    "a negative length": b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nGGUF",
    "chunks of no length": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nGGUF",
    "another range": b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 7-7/9\r\n\r\nx",
    "no HTTP": b"SSH-2.0-OpenSSH\r\n",
    "nothing": b"",
}


@pytest.fixture
def harmful():
    """A function of an answer: the address where every connection gets it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        answers = []

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    with connection, contextlib.suppress(OSError):
                        connection.recv(1 << 16)
                        connection.sendall(answers[0])

        def answering(data):
            answers[:] = [data]
            return f"http://127.0.0.1:{listening.getsockname()[1]}/"

        threading.Thread(target=serve, daemon=True).start()
        yield answering


@pytest.mark.parametrize("address", ["file:///etc/hostname", "ftp://127.0.0.1/x", "data:,GGUF"])
def test_nothing_but_http_is_ever_opened(address):
    with pytest.raises(URLError, match="unknown url type"):
        _http_only().open(address, timeout=5)
    with pytest.raises(NetworkError, match="begins with http:// or https://"):
        asyncio.run(open_http(address))


@pytest.mark.parametrize("name", ANSWERS)
def test_no_answer_does_harm(harmful, name):
    url = harmful(ANSWERS[name])
    started = time.monotonic()
    tracemalloc.start()
    try:
        with pytest.raises((NetworkError, FormatError)) as caught:
            asyncio.run(open_http(url))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert url in str(caught.value)
    assert time.monotonic() - started < 5 and peak < 64 << 20
