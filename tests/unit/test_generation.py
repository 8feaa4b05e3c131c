"""Text out of tokens, and options: Python's half and JavaScript's give the same."""

import json
import re
import subprocess
from itertools import pairwise
from pathlib import Path

import numpy as np
import playwright
import pytest

from webgpu_py.errors import ContextLength, DtypeError, FeatureMissing, IndexOutOfRange, ShapeError
from webgpu_py.generation import GenerationOptions, TextAssembler, check_bias, check_prompt

TEXT_JS = Path(__file__).resolve().parents[2] / "webgpu_py" / "js" / "text.js"

WHOLE = "é👍🏽한 café"


def assemble(parts, stops):
    text = TextAssembler(stops)
    pieces = [text.push(p) for p in parts if not text.stopped]
    return [*pieces, text.flush()], text.stopped


def cuts():
    data = WHOLE.encode()
    for first in range(1, len(data) - 1):
        for second in (first + 1, len(data) - 1):
            edges = [0, first, second, len(data)]
            yield [data[a:b] for a, b in pairwise(edges)]


def test_utf8_cut_anywhere_comes_out_whole():
    for parts in cuts():
        pieces, _ = assemble(parts, [])
        assert "".join(pieces) == WHOLE
        assert all("\ufffd" not in p for p in pieces)


STOPS = [
    (["Hello ", "wor", "ld!"], ["world"], "Hello ", True),
    (["a", "b", "c", "d"], ["bc"], "a", True),
    (["a", "b", "x", "d"], ["bc"], "abxd", False),
    (["one", "two"], ["", "wot"], "onetwo", False),
    (["STOP"], ["STOP"], "", True),
    (["aab", "aac"], ["aac"], "aab", True),
    (["xyz--", "-END"], ["--END", "---END"], "xyz", True),
]


@pytest.mark.parametrize(("parts", "stops", "text", "stopped"), STOPS)
def test_stop_strings_across_tokens(parts, stops, text, stopped):
    pieces, ended = assemble([p.encode() for p in parts], stops)
    assert ("".join(pieces), ended) == (text, stopped)


def test_an_unfinished_character_is_shown_as_one_replacement():
    pieces, _ = assemble(["é".encode()[:1]], [])
    assert pieces == ["", "\ufffd"]


def test_javascripts_twin_agrees():
    cases = [[list(map(list, parts)), []] for parts in cuts()]
    cases += [[[list(p.encode()) for p in parts], stops] for parts, stops, _, _ in STOPS]
    script = f"""
        import {{TextAssembler}} from {json.dumps(TEXT_JS.as_uri())};
        const found = {json.dumps(cases)}.map(([parts, stops]) => {{
          const text = new TextAssembler(stops), pieces = [];
          for (const p of parts) if (!text.stopped) pieces.push(text.push(new Uint8Array(p)));
          return [[...pieces, text.flush()], text.stopped];
        }});
        console.log(JSON.stringify(found));
    """
    # Playwright's package brings a Node of its own.
    node = Path(playwright.__file__).parent / "driver" / "node"
    done = subprocess.run(
        [str(node), "--input-type=module", "-e", script], capture_output=True, text=True, check=True
    )
    for (parts, stops), (pieces, stopped) in zip(cases, json.loads(done.stdout), strict=True):
        assert assemble([bytes(p) for p in parts], stops) == (pieces, stopped)


def test_settings_are_float_bits_and_the_seed():
    words = GenerationOptions(temperature=0.7, top_k=40, min_p=0.05, seed=2**32 - 1).settings()
    np.testing.assert_array_equal(
        words[:7].view(np.float32), np.array([0.7, 40, 1, 0.05, 1, 0, 0], np.float32)
    )
    assert words[7] == -1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", -0.1),
        ("temperature", float("nan")),
        ("temperature", "hot"),
        ("top_p", 1.5),
        ("max_tokens", 0),
        ("max_tokens", 2.5),
        ("repetition_penalty", 0.0),
        ("presence_penalty", [1]),
        ("seed", 0.5),
    ],
)
def test_options_out_of_range(name, value):
    with pytest.raises(DtypeError, match=re.escape(f"{name}={value!r}, allowed are")):
        GenerationOptions(**{name: value})


def test_options_as_callers_write_them():
    written = {"max_tokens": None, "stop": ["a", "b"], "logit_bias": {"7": 1}, "top_k": np.int64(3)}
    options = GenerationOptions.given(written)
    assert options == GenerationOptions(stop=("a", "b"), logit_bias={7: 1.0}, top_k=3)
    assert GenerationOptions(stop="end").stop == ("end",)
    with pytest.raises(FeatureMissing, match=r"n, best_of: no option .* max_tokens"):
        GenerationOptions.given({"n": 2, "best_of": 3, "seed": 1})
    with pytest.raises(DtypeError, match=r"stop=\('a', 3\)"):
        GenerationOptions(stop=("a", 3))
    for bias in ({"a": 1}, {1: "much"}, [1]):
        with pytest.raises(DtypeError, match="must map token ids to numbers"):
            GenerationOptions(logit_bias=bias)


def test_a_bias_for_what_is_no_token():
    check_bias({0: 1.0, 99: 1.0}, 100)
    with pytest.raises(IndexOutOfRange, match="token id 100: the vocabulary has ids 0 to 99"):
        check_bias({100: 1.0}, 100)


def test_prompts_that_cannot_be_answered():
    with pytest.raises(ShapeError, match="no tokens"):
        check_prompt([], 8, 100)
    with pytest.raises(ContextLength, match=r"9 tokens.*context of 8"):
        check_prompt([1] * 9, 8, 100)
    with pytest.raises(IndexOutOfRange, match="100 at position 1"):
        check_prompt([1, 100], 8, 100)
