"""Templates that loop or build text without end are stopped, soon and in little memory."""

import time
import tracemalloc

import pytest

from webgpu_py.errors import FormatError, LimitExceeded
from webgpu_py.tokenizer.template import ChatTemplate

MESSAGES = [{"role": "user", "content": "Hello"}]
FOREVER = "{% for i in range(10000) %}{% for j in range(10000) %}BODY{% endfor %}{% endfor %}"
DOUBLE = "{% set ns = namespace(x=START) %}{% for i in range(200) %}STEP{% endfor %}"


def forever(body):
    return FOREVER.replace("BODY", body)


def doubled(start, step, rest=""):
    return DOUBLE.replace("START", start).replace("STEP", step) + rest


BIG = "{% set x = range(10000)|list %}"

ENDLESS = {
    "loop": forever(""),
    "loop with a condition": "{% for i in range(10000) %}{% for j in range(10000) if j < 0 %}"
    "{% endfor %}{% endfor %}",
    "loop of text": forever("x" * 20_000),
    "loop of constants": forever("{{ '" + "x" * 20_000 + "' }}"),
    "macro": "{% macro f(n) %}" + "y" * 9000 + "{% endmacro %}" + forever("{{ f(i) }}"),
    "call block": "{% macro f() %}{{ caller() }}{% endmacro %}"
    + forever("{% call f() %}zzzzzzzz{% endcall %}"),
    "recursive macro": "{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}",
    "recursive loop": "{% for a in [[1]] recursive %}{{ loop([[1]]) }}{% endfor %}",
    "multiplied text": "{{ 'a' * 10**9 }}",
    "multiplied from the left": "{{ 10**9 * 'a' }}",
    "multiplied list": "{{ ([0] * 10**8)|length }}",
    "joined": doubled("'ab'", "{% set ns.x = ns.x ~ ns.x %}"),
    "added": doubled("'ab'", "{% set ns.x = ns.x + ns.x %}"),
    "added lists": doubled("[1, 2]", "{% set ns.x = ns.x + ns.x %}"),
    "captured": doubled("'ab'", "{% set ns.x %}{{ ns.x }}{{ ns.x }}{% endset %}"),
    "replaced": doubled("'aa'", "{% set ns.x = ns.x.replace('a', ns.x) %}"),
    "replaced by filter": doubled("'aa'", "{% set ns.x = ns.x|replace('a', ns.x) %}"),
    "joined by a method": doubled("'ab'", "{% set ns.x = ns.x.join([ns.x, ns.x, ns.x]) %}"),
    "joined by a filter": doubled("'ab'", "{% set ns.x = [ns.x, ns.x]|join(ns.x) %}"),
    "nested lists": doubled("[1]", "{% set ns.x = [ns.x, ns.x] %}", "{{ ns.x }}"),
    "nested tuples": doubled("(1,)", "{% set ns.x = (ns.x, ns.x) %}", "{{ {ns.x: 1} }}"),
    "nested dicts": doubled("{}", "{% set ns.x = {'a': ns.x, 'b': ns.x} %}", "{{ ns.x|tojson }}"),
    "nested by dict()": doubled("{}", "{% set ns.x = dict(a=ns.x, b=ns.x) %}", "{{ ns.x }}"),
    "nested, compared": doubled("[1]", "{% set ns.x = [ns.x, ns.x] %}", "{{ ns.x == ns.x }}"),
    "lists kept": BIG + "{% set ns = namespace(y=[]) %}"
    "{% for i in x %}{% set ns.y = [ns.y, x[:]] %}{% endfor %}",
    "sorted": BIG + forever("{% set y = x|sort %}"),
    "compared": BIG + forever("{{ x == x }}"),
    "searched": BIG + forever("{{ 0.5 in x }}"),
    "tested": BIG + forever("{{ x is eq(x) }}"),
    "selected": BIG + forever("{{ x|select('eq', -1)|list }}"),
    "looked up": BIG + "{% set t = (x, x) %}" + forever("{{ {}[t] }}"),
    "views": BIG + "{% set d = {'a': x} %}" + forever("{{ d.values() }}"),
    "split": "{% set t = 'a,' * 100000 %}" + forever("{% set y = t.split(',') %}"),
    "powers": "{{ 10 ** 10 ** 9 }}",
    "numbers": doubled("3", "{% set ns.x = ns.x * ns.x %}"),
    "a number from text": "{{ ('f' * 100000)|int(0, 16) }}",
    "range": "{{ range(10**9)|list }}",
    "ljust": "{{ 'a'.ljust(10**9) }}",
    "zfill": "{{ 'a'.zfill(10**9) }}",
    "expandtabs": "{{ '\t'.expandtabs(10**9) }}",
    "center": "{{ 'a'|center(10**9) }}",
    "indent": "{{ 'a\nb'|indent(10**9) }}",
    "format": "{{ '{:1000000000}'.format(1) }}",
    "percent": "{{ '%1000000000d' % 1 }}",
    "format filter": "{{ '%1000000000d'|format(1) }}",
    "lipsum": "{{ lipsum(n=10**9) }}",
    "batch": "{{ [1]|batch(10**9, 0)|list }}",
    "deep brackets": "{{ " + "(" * 500 + "1" + ")" * 500 + " }}",
    "deep lists": "{{ " + "[" * 61 + "]" * 61 + " }}",
    "deep negation": "{{ " + "not " * 4_000 + "1 }}",
    "deep attributes": "{{ a" + ".b" * 4_000 + " }}",
    "attributes, then an error": "{{ a" + ".b" * 4_000 + "( }}",
    "deep attributes, few": "{{ a" + ".b" * 290 + " }}",
    "deep sums, few": "{{ 1" + "+1" * 290 + " }}",
    "deep sums": "{{ 1" + "+1" * 7_000 + " }}",
    "deep blocks": "{% if 1 %}" * 500 + "{% endif %}" * 500,
    "deep blocks, few": "{% if 1 %}" * 45 + "{% endif %}" * 45,
    "deep data": doubled("[1]", "{% set ns.x = [ns.x] %}", "{{ ns.x }}"),
    "deep data, as JSON": doubled("[1]", "{% set ns.x = {'a': ns.x} %}", "{{ ns.x|tojson }}"),
    "many parts": "{{ a }}" * 8000,
    "long": " " * 200_000,
}


REFUSED_UNCOMPILED = [name for name in ENDLESS if name.startswith(("deep ", "many", "long"))]


def stopped(name):
    with pytest.raises((LimitExceeded, FormatError), match="template"):
        ChatTemplate(ENDLESS[name]).render(MESSAGES)


@pytest.mark.parametrize("name", ENDLESS)
def test_endless_template_is_stopped_soon(name):
    start = time.process_time()
    stopped(name)
    assert time.process_time() - start < 5


@pytest.mark.parametrize("name", sorted(set(ENDLESS) - set(REFUSED_UNCOMPILED)))
def test_endless_template_is_stopped_in_little_memory(name):
    tracemalloc.start()
    try:
        stopped(name)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 48 << 20


def test_a_stopped_template_says_where_and_why():
    with pytest.raises(LimitExceeded, match=r"line 2: spent more than the \d+ bytes of work"):
        ChatTemplate("\n" + forever("")).render(MESSAGES)
    with pytest.raises(LimitExceeded, match="line 1: calls nested deeper than 12"):
        ChatTemplate(ENDLESS["recursive macro"]).render(MESSAGES)


@pytest.mark.parametrize("name", ["deep negation", "deep attributes", "deep sums"])
def test_a_long_expression_is_refused_before_a_tree_is_made_of_it(name):
    with pytest.raises(FormatError, match=r"line 1: an expression of more than \d+ words"):
        ChatTemplate(ENDLESS[name])


def test_a_stopped_template_can_be_used_again():
    template = ChatTemplate("{% if spin %}" + forever("") + "{% endif %}fine")
    with pytest.raises(LimitExceeded):
        template.render(MESSAGES, spin=True)
    assert template.render(MESSAGES) == "fine"


def test_a_long_conversation_is_within_bounds():
    messages = [{"role": "user", "content": f"{i} " + "words " * 400} for i in range(400)]
    source = (
        "{% for m in messages %}<{{ m.role }}>{{ m.content | trim }}"
        "{% if not loop.last and messages[loop.index0 + 1].content == '' %}!{% endif %}"
        "{{ eos_token }}{% endfor %}"
    )
    text = ChatTemplate(source, eos="</s>").render(messages)
    assert len(text) > 400 * 2400 and text.endswith("words</s>")
