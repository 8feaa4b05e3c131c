"""Messages of a page, addresses and what they answer, and paths to the server, fuzzed."""

import json
import shutil
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from subprocess import PIPE

import numpy as np
import pytest
from hypothesis import strategies as st
from playwright._impl._driver import compute_driver_executable

from hostile.fuzz import Small, changed, damaged, fuzz, junk  # noqa: F401
from hostile.test_hostile_server import ANSWERS
from webgpu_py import page
from webgpu_py.assets import asset_path
from webgpu_py.device import Device
from webgpu_py.errors import NetworkError
from webgpu_py.host.server import Server
from webgpu_py.http_source import open_http

STEPS = [
    {"input": "x", "shape": [{"$dim": "n", "max": 8}, 4], "dtype": "float32"},
    {"constant": {"$array": 0, "dtype": "float32", "shape": [3, 4]}},
    {"symint": "k"},
    {"call": "aten.linear.default",
     "args": [{"$value": 0, "at": None}, {"$value": 1, "at": None}, None]},
    {"output": "y", "value": {"$value": 3, "at": None}},
]  # fmt: skip
MESSAGES = [
    ("device", {"kind": "cpu"}),
    ("build", {"steps": STEPS, "device": "cpu"}),
    ("run", {"inputs": {"x": {"$array": 0, "dtype": "float32", "shape": [3, 4]}, "k": 1}}),
    ("debug", {"inputs": {"x": {"$array": 0, "dtype": "float32", "shape": [3, 4]}, "k": 1}}),
    ("open", {"source": {"handle": 1, "name": "x", "nbytes": 9, "sha256": None}, "options": {}}),
    ("open", {"source": {"url": "file:///etc/", "files": [{"handle": 1, "name": "config.json"}]}}),
    ("chat", {"messages": [{"role": "user", "content": "Hi"}], "options": {"max_tokens": 2}}),
    ("memory", {}),
    ("reset", {}),
    ("close", {}),
]
names = st.sampled_from([name for name, _ in MESSAGES]) | st.sampled_from(
    ["__init__", "_answer", "call", "cancel", "description", "_session", "kind", "toString", ""]
)


def nearly(one):
    """A message that a page would send, or another method, or with other arguments."""
    method, args = one
    other = changed({"args": args}).map(lambda tree: tree.get("args", {}))
    return st.tuples(st.just(method) | names, st.just(args) | other)


message = st.sampled_from(MESSAGES).flatmap(nearly)


def test_messages_to_the_worker(fuzz):  # noqa: F811
    data = np.arange(12, dtype=np.float32).tobytes()

    async def attempt(sent):
        service = page.Service()
        service._device = Device(Small())
        for k, (method, args) in enumerate(sent):
            text = json.dumps(args)
            answer, _ = await service.call(k, method, text, [data], lambda text: None)
            found = json.loads(answer)
            assert set(found) in ({"result"}, {"error"})
            if "error" in found:
                assert set(found["error"]) == {"code", "message"}
        await service.call(99, "close", "{}", [], lambda text: None)
        answer, _ = await service.call(100, "device", "{}", [], lambda text: None)
        assert json.loads(answer)["result"]["kind"] == "cpu"
        assert service._device.bridge.stats()["buffers"] == 0

    fuzz(st.lists(message, min_size=1, max_size=4), attempt)


BORDER = """
import { METHODS, messageToPage, messageToWorker } from './protocol.js';
import { createInterface } from 'node:readline';
console.log(JSON.stringify(METHODS));
for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line);
  console.log(JSON.stringify([messageToWorker(message), messageToPage(message)]));
}
"""
KINDS = ["start", "call", "cancel", "listen", "ready", "failed", "progress", "warning", "event"]
KINDS += ["result", "error", "happened", "constructor", "toString", 1] + ["call"] * 9
FIELDS = {
    "id": st.integers(0, 3) | junk,
    "method": st.sampled_from(["open", "run", "eval", "constructor", "_answer", ""]) | junk,
    "version": st.integers(0, 9) | junk,
    "packages": st.lists(st.text(max_size=3) | junk, max_size=3) | junk,
    "level": st.sampled_from(["info", "all"]) | junk,
    **dict.fromkeys(["args", "lock", "record", "error", "info", "progress", "message"], junk),
}
envelope = st.builds(
    lambda kind, fields: {"kind": kind, **fields},
    st.sampled_from(KINDS),
    st.fixed_dictionaries({}, optional=FIELDS),
)


@pytest.fixture
def border(tmp_path):
    """The protocol's two checks: what they make of a message, and the methods they know."""
    for name in ("protocol.js", "events.js"):
        shutil.copyfile(asset_path("web") / name, tmp_path / name)
    shutil.copytree(asset_path("js"), tmp_path / "js")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    script = tmp_path / "border.js"
    script.write_text(BORDER)
    node = compute_driver_executable()[0]
    with subprocess.Popen([node, script], stdin=PIPE, stdout=PIPE, text=True) as process:
        methods = json.loads(process.stdout.readline())

        def ask(message):
            process.stdin.write(json.dumps(message) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        yield ask, methods
        process.stdin.close()


def test_messages_at_the_border(fuzz, border):  # noqa: F811
    ask, methods = border

    def attempt(sent):
        for message in sent:
            one(message)

    def one(message):
        to_worker, to_page = ask(message)
        assert to_worker in (None, message) and to_page in (None, message)
        if to_worker is not None:
            assert message["kind"] in ("start", "call", "cancel", "listen")
            assert message["kind"] != "call" or message["method"] in methods
            assert message["kind"] in ("start", "listen") or message["id"] >= 1

    fuzz(st.lists(envelope | junk, min_size=3, max_size=10).map(finite), attempt)


def finite(tree):
    """JSON that JavaScript reads, too, with numbers that it keeps."""
    if isinstance(tree, dict):
        return {key: finite(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [finite(value) for value in tree]
    return tree if not isinstance(tree, int | float) or abs(tree) < 2**53 else -1


class _Answering(BaseHTTPRequestHandler):
    """Answers what was put into the address, and closes."""

    def do_GET(self):
        self.wfile.write(self.server.answer)
        self.close_connection = True

    def log_message(self, *_):
        pass


@pytest.fixture
def answering():
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answering) as server:
        server.handle_error = lambda *_: None
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield server
        server.shutdown()


SCHEMES = ["http://", "HTTP://", "https://", "file://", "ftp://", "data:", "javascript:", "//", ""]
HOSTS = ["127.0.0.1:1", "127.0.0.1:99999", "127.0.0.1:x", "[::1", "[::1]:1", "", "a@127.0.0.1:1"]
address = st.tuples(
    st.sampled_from(SCHEMES), st.sampled_from(HOSTS), st.text(max_size=12)
).map("".join)  # fmt: skip


def test_addresses_and_what_they_answer(fuzz, answering):  # noqa: F811
    base = f"http://127.0.0.1:{answering.server_address[1]}/"
    good = b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-0/100\r\n\r\nx"

    async def attempt(given):
        answering.answer = given if isinstance(given, bytes) else b""
        url = base if isinstance(given, bytes) else given
        try:
            source = await open_http(url)
        except NetworkError as error:
            assert url in str(error)
            raise
        try:
            assert len(await source.read(0, min(source.nbytes, 9))) <= 9
        finally:
            source.close()

    fuzz(address | damaged(good, *ANSWERS.values()), attempt)


SEGMENTS = ["..", ".", "", "a.txt", "inner", "%2e%2e", "..%2f", "\\", "c:", "\0", "link", "~", "é"]


def test_paths_to_the_development_server(fuzz, tmp_path):  # noqa: F811
    root = tmp_path / "site"
    (root / "inner").mkdir(parents=True)
    (root / "a.txt").write_text("a")
    (root / "inner" / "a.txt").write_text("inner")
    (tmp_path / "secret").write_text("secret")
    (root / "link").symlink_to(tmp_path / "secret")
    server = Server({"/": root, "/other/": root / "inner"})
    segment = st.sampled_from([*SEGMENTS, "secret", "other"]) | st.text(max_size=4)

    def attempt(parts):
        found = server.locate("/" + "/".join(parts))
        assert found is None or (found.is_relative_to(root) and found.read_text() != "secret")

    fuzz(st.lists(segment, max_size=7), attempt)
