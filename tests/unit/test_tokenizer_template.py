"""Chat templates against `transformers`, and what a template may and may not do."""

import asyncio
import json
from datetime import datetime
from pathlib import Path

import pytest

from webgpu_py.errors import DtypeError, FormatError
from webgpu_py.formats.gguf import read_gguf
from webgpu_py.sources import FileSource
from webgpu_py.tokenizer.template import ChatTemplate

GOLDENS = Path(__file__).parent / "goldens"
MODEL = Path(__file__).parents[2] / ".cache" / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
CASES = json.loads((GOLDENS / "template_goldens.json").read_text())
HELLO = [{"role": "user", "content": "Hello"}]


@pytest.fixture(scope="module")
def smollm2():
    assert MODEL.exists(), f"{MODEL} is missing: run `make demo` or `make test` once"
    with FileSource(MODEL) as source:
        return asyncio.run(read_gguf(source)).metadata["tokenizer.chat_template"]


def render(source, messages=HELLO, **variables):
    return ChatTemplate(source, "<s>", "</s>").render(messages, **variables)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['template']}: {case['title']}")
def test_equals_transformers(case, smollm2):
    path = GOLDENS / "templates" / f"{case['template']}.jinja"
    source = path.read_text() if path.exists() else smollm2
    expected = case["expected"]
    if isinstance(expected, dict):
        with pytest.raises(FormatError, match=r"line \d+") as caught:
            render(source, **case["variables"])
        assert expected["raises"] in str(caught.value)
    else:
        assert render(source, **case["variables"]) == expected


def test_one_template_serves_many_conversations():
    template = ChatTemplate("{% for m in messages %}{{ m.content }};{% endfor %}")
    assert template.render(HELLO) == "Hello;"
    assert template.render([*HELLO, {"role": "user", "content": "é"}]) == "Hello;é;"


@pytest.mark.parametrize(
    "source, message",
    [
        ("fine\n\n{{ messages[0].content.x.y }}", "line 3: UndefinedError"),
        ("a\n{% for m in messages %}\n{{ m.content + 1 }}\n{% endfor %}", "line 3: TypeError"),
        ("a\n{% macro f(x) %}\n\n{{ x / 0 }}{% endmacro %}{{ f(1) }}", "line 4: ZeroDivision"),
        ("a\nb\n{{ raise_exception('no ' ~ messages[0].role) }}", "refuses .* line 3: no user"),
        ("a\n{{ unclosed", "line 2: unexpected end of template"),
        ("a\n\n{% nonsense %}", "line 3: Encountered unknown tag 'nonsense'"),
        ("a\n{{ x | nonsense }}", "line 2: No filter named 'nonsense'"),
        ("a\n{{ x is nonsense }}", "line 2: No test named 'nonsense'"),
        ("a\n{% include 'b' %}", "line 2: .* include .* no place"),
        ("a\n{% block b %}{% endblock %}", "line 2: .* block .* no place"),
        ("{% import 'os' as os %}", "line 1: .* import .* no place"),
        ("{% extends 'b' %}", "line 1: .* extends .* no place"),
    ],
)
def test_errors_name_the_line(source, message):
    with pytest.raises(FormatError, match=message):
        render(source)


@pytest.mark.parametrize(
    "source",
    [
        "{{ messages.append(1) }}",
        "{{ messages[0].update({'a': 1}) }}",
        "{{ 'a'.format(1) }}",
        "{{ ''.__class__.__mro__ }}",
        "{{ messages.__class__ }}{{ raise_exception.__globals__.x }}",
        "{{ (1).to_bytes(4) }}",
        "{{ 'a'.encode() }}",
        "{{ namespace.__init__.__globals__ }}",
        "{{ loop.__init__ }}",
        "{{ self.x() }}",
        "{{ '%s' % 'a' }}",
        "{{ lipsum() }}",
        "{{ messages[0]() }}",
        "{{ namespace(a=1) }}",
        "{{ [namespace(a=1)] }}",
        "{{ namespace(a=1) == 1 }}",
        "{{ strftime_now('%99999999d') }}",
        "{{ tools | tojson(indent=10**6) }}",
    ],
)
def test_what_a_template_may_not_do(source):
    with pytest.raises(FormatError, match="line 1"):
        out = render(source)
        # Jinja shows a refused attribute as nothing where it is only written out.
        assert out == ""
        raise FormatError("line 1")


@pytest.mark.parametrize(
    "expression, text",
    [
        ("' aXb '.strip().split('X')|join('-')", "a-b"),
        ("'ab'.upper().lower().title()", "Ab"),
        ("'abc'.replace('b', 'xx')", "axxc"),
        ("'a-b'.partition('-')", "('a', '-', 'b')"),
        ("{'k': 1}.items()|list", "[('k', 1)]"),
        ("{'b': 2, 'a': 1}|dictsort", "[('a', 1), ('b', 2)]"),
        ("[3, 1, 2]|sort|reverse|list", "[3, 2, 1]"),
        ("[1, 2]|map('string')|list", "['1', '2']"),
        ("[1, 2, 3]|select('odd')|list", "[1, 3]"),
        ("[1, 1, 2]|unique|list", "[1, 2]"),
        ("[{'a': 5}]|map(attribute='a')|max", "5"),
        ("[{'a': 5}, {'a': 6}]|rejectattr('a', '==', 5)|first", "{'a': 6}"),
        ("'x' in 'xyz'", "True"),
        ("1 == 1.0 and not 1 != 1", "True"),
        ("'a' ~ 1 ~ none", "a1None"),
        ("[1] + [2] + [0] * 2", "[1, 2, 0, 0]"),
        ("messages is sequence", "True"),
        ("y is defined", "False"),
        ("y|default('d')", "d"),
        ("5|float + '7'|int", "12.0"),
        ("'a\nb'|indent", "a\n    b"),
        ("'a\nb'|indent(2, true)", "  a\n  b"),
        ("'<&>'|safe", "<&>"),
        ("dict(a=1).get('a')", "1"),
        ("'abc'[1:]", "bc"),
        ("{'é': '<'}|tojson", '{"é": "<"}'),
        ("[1]|tojson(indent=1)", "[\n 1\n]"),
    ],
)
def test_what_templates_use(expression, text):
    assert render("{{ " + expression + " }}") == text


def test_time_comes_from_the_clock():
    assert render("{{ strftime_now('%Y') }}") in (
        str(datetime.now().year),
        str(datetime.now().year - 1),
    )


def test_values_that_are_not_json_are_refused():
    with pytest.raises(DtypeError, match="messages holds a bytes"):
        render("", [{"role": "user", "content": b"x"}])
    with pytest.raises(DtypeError, match="extra holds a object"):
        render("", extra=object())
    deep = []
    for _ in range(100):
        deep = [deep]
    with pytest.raises(DtypeError, match="nested at most 32 deep"):
        render("", extra=deep)


def test_variables_are_copies():
    message = {"role": "user", "content": "x"}
    render("{% set messages = 1 %}", [message])
    assert message == {"role": "user", "content": "x"}
