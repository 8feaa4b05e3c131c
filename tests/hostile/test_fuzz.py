"""Files and templates of strangers, fuzzed."""

import json
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

import tiny_folder
from gguf_writer import gguf_bytes
from hostile.fuzz import Small, changed, damaged, fuzz  # noqa: F401
from hostile.test_program_damage import PROGRAMS
from hostile.test_pte_damage import CACHE, MIXED, PTD, SHARDED, SMALL, read_all
from hostile.test_template_bounds import ENDLESS
from tiny_model import tiny_gguf
from tokenizer_goldens import GOLDENS
from webgpu_py.device import Device
from webgpu_py.formats.bounded_json import parse_json
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
