"""What a hostile page or server may try on the worker: forged messages, strange addresses."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from browser.pages import Visit
from webgpu_py.errors import WebGPUPyError
from webgpu_py.host.server import Server

CODES = {kind.code for kind in WebGPUPyError.__subclasses__()} | {WebGPUPyError.code}
SILENT = [None, 7, "start", [], {}, {"kind": "constructor"}, {"kind": "call", "id": -1}]
FORGED = [
    {"kind": "call", "method": "eval", "args": {"code": "1"}},
    {"kind": "call", "method": "__class__"},
    {"kind": "call", "method": "_answer"},
    {"kind": "call", "method": "__init__", "args": {}},
    {"kind": "call", "method": "constructor"},
    {"kind": "call", "method": "look", "args": {"prompt": "none is open"}},
    {"kind": "call", "method": "toString"},
    {"kind": "call", "method": "chat", "args": {"messages": "none is open"}},
    {"kind": "call", "method": "device", "args": {"kind": ["browser"]}},
    {"kind": "call", "method": "open", "args": {"source": {"handle": 1, "name": "x"}}},
    {"kind": "call", "method": "open", "args": {"source": {"files": [{"name": "config.json"}]}}},
    {"kind": "call", "method": "open", "args": {"device": "cpu"}},
    {"kind": "call", "method": "build", "args": {"steps": [["__import__", "os"]]}},
    {"kind": "call", "method": "build", "args": {"steps": {"$array": 99, "dtype": "O"}}},
    {"kind": "eval", "code": "1"},
    {"kind": "unheard of"},
]
ADDRESSES = [
    "file:///etc/hostname",
    "ftp://127.0.0.1/x.gguf",
    "data:application/octet-stream;base64,R0dVRgMAAAA=",
    "javascript:1",
]
CONNECT = """async () => {
  const client = await import('/client.js');
  const connection = new client.Connection();
  await connection.ready;
  Object.assign(window, {client, connection});
}"""
FORGE = """async ({silent, forged}) => {
  const {worker} = connection, answers = {};
  const all = new Promise((done) => worker.addEventListener('message', ({data}) => {
    if (data.id >= 1000) answers[data.id] = data;
    if (Object.keys(answers).length === forged.length) done();
  }));
  silent.forEach((message) => worker.postMessage(message));
  forged.forEach((message, i) => worker.postMessage({id: 1000 + i, ...message}));
  await Promise.race([all, new Promise((done) => setTimeout(done, 20000))]);
  const device = await connection.call('device', {kind: 'cpu'});
  return {answers, device: device.kind};
}"""


@pytest.fixture(scope="module")
def victim(browser, mounts):
    """A page with a worker and no policy that would help."""
    with Server(dict(mounts)) as server:
        server.pages["/app.html"] = b"<!doctype html><title>an app</title>"
        one = Visit(browser, server)
        one.page.goto(server.url + "/app.html")
        one.page.evaluate(CONNECT)
        yield one
        one.close()


def test_the_worker_acts_on_its_protocol_alone(victim):
    found = victim.page.evaluate(FORGE, {"silent": SILENT, "forged": FORGED})
    answers = {int(id) - 1000: answer for id, answer in found["answers"].items()}
    for at, message in enumerate(FORGED):
        assert answers[at]["kind"] == "error", message
        assert answers[at]["error"]["code"] in CODES, message
    codes = {m.get("method"): answers[at]["error"]["code"] for at, m in enumerate(FORGED)}
    assert (codes["constructor"], codes["look"]) == ("WebGPUPyError", "FormatError")
    assert found["device"] in ("browser", "cpu")


class _Redirecting(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(302)
        self.send_header("Location", self.path[1:])
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_OPTIONS(self):
        self.do_GET()

    def log_message(self, *_):
        pass


def test_addresses_that_are_not_http(victim):
    with ThreadingHTTPServer(("127.0.0.1", 0), _Redirecting) as redirecting:
        threading.Thread(target=redirecting.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{redirecting.server_address[1]}/"
        tried = [*ADDRESSES, *(base + address for address in ADDRESSES)]
        codes = victim.page.evaluate(
            """async (tried) => {
              const codes = [];
              for (const url of tried) {
                codes.push(await client.load(url, {connection}).catch((e) => e.code));
              }
              return codes;
            }""",
            tried,
        )
        redirecting.shutdown()
    assert dict(zip(tried, codes, strict=True)) == dict.fromkeys(tried, "NetworkError")
