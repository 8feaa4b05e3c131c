"""Tokenizers that are not known are refused by name, damaged ones end in FormatError."""

import json

import numpy as np
import pytest

from tokenizer_goldens import GOLDENS, gguf_metadata
from webgpu_py.errors import FormatError, UnsupportedModel
from webgpu_py.tokenizer import bpe, tokenizer_from_gguf, tokenizer_from_json


@pytest.mark.parametrize(
    "change, message",
    [
        ({"tokenizer.ggml.model": "t5"}, "tokenizer model 't5'"),
        ({"tokenizer.ggml.model": None}, "tokenizer model None"),
        (
            {"tokenizer.ggml.pre": "chatglm"},
            "pre-tokenizer 'chatglm' .* known are gpt-2",
        ),
        ({"tokenizer.ggml.pre": None}, "'default'"),
    ],
)
def test_other_tokenizers_are_refused_by_name(change, message):
    metadata = gguf_metadata("gpt-2", GOLDENS["gpt-2"]["json"]) | change
    metadata = {key: value for key, value in metadata.items() if value is not None}
    with pytest.raises(UnsupportedModel, match=message):
        tokenizer_from_gguf(metadata)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"tokenizer.ggml.tokens": None}, "'tokenizer.ggml.tokens' is missing"),
        ({"tokenizer.ggml.merges": None}, "'tokenizer.ggml.merges' is missing"),
        ({"tokenizer.ggml.merges": "a b"}, "not a list"),
        ({"tokenizer.ggml.token_type": np.ones(7, np.int32)}, "but 7 token types"),
        ({"tokenizer.ggml.bos_token_id": 2**31}, "lies outside the vocabulary"),
        ({"tokenizer.ggml.model": "llama"}, "'tokenizer.ggml.scores' is missing"),
    ],
)
def test_contradictory_metadata(change, message):
    metadata = gguf_metadata("gpt-2", GOLDENS["gpt-2"]["json"]) | change
    metadata = {key: value for key, value in metadata.items() if value is not None}
    with pytest.raises(FormatError, match=message):
        tokenizer_from_gguf(metadata)


@pytest.mark.parametrize(
    "path, value, message",
    [
        (("model", "type"), "Unigram", "model 'Unigram'"),
        (("model", "end_of_word_suffix"), "</w>", "end_of_word_suffix"),
        (("pre_tokenizer",), {"type": "Whitespace"}, "pre-tokenizer Whitespace"),
        (("pre_tokenizer",), None, "pre-tokenizer none"),
        (("normalizer",), {"type": "Lowercase"}, "normalizer Lowercase"),
        (("post_processor",), {"type": "BertProcessing"}, "post-processor BertProcessing"),
    ],
)
def test_other_json_steps_are_refused_by_name(path, value, message):
    data = json.loads(json.dumps(GOLDENS["gpt-2"]["json"]))
    target = data
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    with pytest.raises(UnsupportedModel, match=message):
        tokenizer_from_json(data)


@pytest.mark.parametrize(
    "data",
    [
        {},
        [],
        {"model": None},
        {"model": {"vocab": {}, "merges": []}},
        {"model": {"vocab": {"a": -1}, "merges": []}},
        {"model": {"vocab": {"a": 2**40}, "merges": []}},
        {"model": {"vocab": {"a": "x"}, "merges": []}},
        {"model": {"vocab": {"a": 0}, "merges": ["a b c"]}, "pre_tokenizer": {"type": "ByteLevel"}},
    ],
)
def test_damaged_json(data):
    with pytest.raises(FormatError, match=r"tokenizer\.json"):
        tokenizer_from_json(data)


def json_with(pattern, merges=None):
    data = json.loads(json.dumps(GOLDENS["gpt-2"]["json"]))
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated"}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}
    data["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [split, byte_level]}
    if merges is not None:
        data["model"]["merges"] = merges(data["model"]["merges"])
    return data


@pytest.mark.parametrize("single", [[], [{"SpecialToken": {"id": "<s>"}}], [{}]])
@pytest.mark.parametrize("special", [{}, {"<s>": {"ids": []}}, {"<s>": {}}])
def test_a_post_processor_without_its_token(single, special):
    data = json.loads(json.dumps(GOLDENS["gpt-2"]["json"]))
    step = {"type": "TemplateProcessing", "single": single, "special_tokens": special}
    data["post_processor"] = step
    if single == [{}]:
        assert not tokenizer_from_json(data).add_bos
    else:
        with pytest.raises(FormatError, match=r"tokenizer.json: a part is missing"):
            tokenizer_from_json(data)


def test_a_pattern_without_end_is_stopped(monkeypatch):
    monkeypatch.setattr(bpe, "SPLIT_S", 0.2)
    tokenizer = tokenizer_from_json(json_with(r"(?<!x)(a|a)*(?=b)(?!c)d|a"))
    with pytest.raises(FormatError, match="backtracks without end"):
        tokenizer.encode("a" * 40 + " hello")


@pytest.mark.parametrize(
    "merges", [None, lambda given: given[::-1]], ids=["tiktoken", "own merges"]
)
@pytest.mark.parametrize("pattern", ["(", "[z-a]", "(?P<a>x)(?P=b)"])
def test_a_pattern_that_is_none(pattern, merges):
    with pytest.raises(FormatError, match="tokenizer"):
        tokenizer_from_json(json_with(pattern, merges)).encode("hello")
