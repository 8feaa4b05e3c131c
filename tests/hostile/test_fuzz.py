"""Every kind of input from strangers, fuzzed: files, templates, messages of a page, addresses."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st

import tiny_folder
from gguf_writer import gguf_bytes
from hostile.fuzz import changed, damaged, fuzz, junk  # noqa: F401
from hostile.test_hostile_server import ANSWERS
from hostile.test_program_damage import PROGRAMS
from hostile.test_pte_damage import CACHE, MIXED, PTD, SHARDED, SMALL, read_all
from hostile.test_template_bounds import ENDLESS
from tiny_model import tiny_gguf
from tokenizer_goldens import GOLDENS
from webgpu_py import page
from webgpu_py.backends.cpu import CpuBridge
from webgpu_py.device import Device
from webgpu_py.errors import NetworkError
from webgpu_py.formats.bounded_json import parse_json
from webgpu_py.graph.limits import Limits
from webgpu_py.host.server import Server
from webgpu_py.http_source import open_http
from webgpu_py.model_files import open_model
from webgpu_py.models.decoder import build_decoder
from webgpu_py.program import load
from webgpu_py.sources import BytesSource
from webgpu_py.tokenizer import tokenizer_from_json
from webgpu_py.tokenizer.template import ChatTemplate

TEMPLATES = Path(__file__).parents[1] / "unit/goldens/templates"
WORDS = gguf_bytes(
    {"general.architecture": "llama", "words": ["a", "bc"], "numbers": [1, 2, 3], "x": 0.5},
    {"w": ("F32", (3, 4), np.arange(12, dtype="<f4")), "v": ("Q8_0", (32,), bytes(34))},
)


class Small(CpuBridge):
    """A device with little memory."""

    def __init__(self):
        super().__init__()
        most = 1 << 20
        self.limits = Limits(max_buffer_size=most, max_storage_buffer_binding_size=most)


async def header(given):
    """A model up to its graph: all that is read before a weight is."""
    stored = await open_model(given, "q4", [])
    build_decoder(stored.config, stored.weights, 16, 4)
    stored.tokenizer.decode(stored.tokenizer.encode("Hello, 42!")[:5])
    if stored.template is not None:
        ChatTemplate(stored.template).render([{"role": "user", "content": "Hello"}])


def test_gguf(fuzz):  # noqa: F811
    files = damaged(WORDS, tiny_gguf(), tiny_gguf("qwen2", "Q8_0"))
    fuzz(files, lambda raw: header(BytesSource(raw, "model.gguf")))


def test_safetensors(fuzz):  # noqa: F811
    whole = tiny_folder.files()
    weights = whole["model.safetensors"]
    end = 8 + int.from_bytes(weights[:8], "little")
    tree = json.loads(weights[8:end])

    def again(entries):
        text = json.dumps(entries).encode()
        return len(text).to_bytes(8, "little") + text + weights[end:]

    files = damaged(weights) | changed(tree).map(again)
    fuzz(files, lambda raw: header({**whole, "model.safetensors": raw}))


def test_pte(fuzz):  # noqa: F811
    async def attempt(given):
        raw, name = given
        await read_all(raw)
        program = await load(raw, device=Device(Small()))
        try:
            [method, *_] = program.methods.values()
            await method.run(PROGRAMS[name][1] if name else [])
        finally:
            program.close()

    good = [(data, name) for name, (data, _) in PROGRAMS.items()]
    good += [(data, None) for data in (SMALL, MIXED, CACHE)]
    files = st.sampled_from(good).flatmap(lambda one: st.tuples(damaged(one[0]), st.just(one[1])))
    fuzz(files, attempt)


def test_ptd(fuzz):  # noqa: F811
    files = st.tuples(damaged(*PTD), st.sampled_from(PTD))
    fuzz(files, lambda given: read_all(SHARDED, list(given)))


def test_tokenizer_json(fuzz):  # noqa: F811
    goldens = [g["json"] for g in GOLDENS.values() if isinstance(g, dict) and "json" in g]
    trees = [tiny_folder.tokenizer_json(), *goldens]
    small = json.dumps(trees[0]).encode()

    def attempt(raw):
        tokenizer = tokenizer_from_json(parse_json("tokenizer.json", raw))
        tokenizer.decode(tokenizer.encode("Hello,\n 42 naïve 語!"))

    files = damaged(small) | changed(*trees).map(lambda tree: json.dumps(tree).encode())
    fuzz(files, attempt)


VALUES = [
    "messages",
    "messages[0].content",
    "loop.index0",
    "i",
    "ns.x",
    "'ab'",
    "10**9",
    "range(99)",
]
VALUES += ["bos_token", "ns.x ~ ns.x", "ns.x + [1]", "namespace", "dict", "().__class__", "cycler"]
VALUES += [
    "messages|tojson",
    "x|attr('__class__')",
    "'a'.format",
    "caller()",
    "self",
    "f(i)",
    "1/0",
]
FILTERS = ["", "|trim", "|list", "|join('x')", "|map('upper')|list", "|length", "|sort", "|safe"]
FILTERS += [
    "|replace('a', ns.x)",
    "|batch(3)|list",
    "|default(i)",
    "|tojson",
    "|int",
    "[1:9]",
    "()",
]
value = st.tuples(st.sampled_from(VALUES), st.sampled_from(FILTERS)).map("".join)
AROUND = [
    ("{% for i in VALUE %}", "{% endfor %}"),
    ("{% if VALUE %}", "{% endif %}"),
    ("{% set ns.x = VALUE %}", ""),
    ("{% set ns.x %}", "{% endset %}"),
    ("{% macro f(i) %}", "{% endmacro %}"),
    ("{% call f(VALUE) %}", "{% endcall %}"),
    ("{% filter upper %}", "{% endfilter %}"),
]


def around(parts):
    (start, end), of, inner = parts
    return start.replace("VALUE", of) + inner + end


block = st.recursive(
    st.text(max_size=5) | value.map(lambda v: "{{ " + v + " }}"),
    lambda inner: (
        st.tuples(st.sampled_from(AROUND), value, inner).map(around)
        | st.lists(inner, max_size=4).map("".join)
    ),
    max_leaves=12,
).map(lambda text: "{% set ns = namespace(x='a') %}" + text)


def test_chat_templates(fuzz):  # noqa: F811
    real = [path.read_bytes() for path in TEMPLATES.iterdir()]
    real += [text.encode() for text in ENDLESS.values() if len(text) < 2000]
    sources = block | damaged(*real).map(lambda raw: raw.decode(errors="replace"))
    messages = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]

    fuzz(sources, lambda source: ChatTemplate(source, bos="<s>").render(messages))


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
