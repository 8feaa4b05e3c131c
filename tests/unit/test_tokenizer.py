"""Tokenizers against `tokenizers` and `sentencepiece` on 2,000 strings, and by hand."""

import asyncio
import json
import time
from itertools import pairwise
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gguf_writer import gguf_bytes
from tokenizer_goldens import GOLDENS, crcs, different, gguf_metadata
from tokenizer_strings import strings
from webgpu_py.errors import FormatError, IndexOutOfRange
from webgpu_py.formats.gguf import read_gguf
from webgpu_py.sources import BytesSource, FileSource
from webgpu_py.tokenizer import tokenizer_from_gguf, tokenizer_from_json
from webgpu_py.tokenizer.merge import merge

MODEL = Path(__file__).parents[2] / ".cache" / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
TEXTS = strings()
BYTE_LEVEL = ["gpt-2", "smollm", "llama-bpe", "qwen2", "tekken"]
SPACED = ["prepend", "metaspace", "gemma"]


@pytest.fixture(scope="module")
def smollm2():
    assert MODEL.exists(), f"{MODEL} is missing: run `make demo` or `make test` once"
    with FileSource(MODEL) as source:
        return tokenizer_from_gguf(asyncio.run(read_gguf(source)).metadata)


def test_the_strings_are_those_of_the_goldens():
    assert len(TEXTS) == 2000 and crc32("\0".join(TEXTS).encode()) == GOLDENS["strings"]


@pytest.mark.parametrize("name", BYTE_LEVEL + SPACED)
def test_tokenizer_json(name):
    tokenizer = tokenizer_from_json(GOLDENS[name]["json"])
    assert different(tokenizer, TEXTS, GOLDENS[name]) == []


@pytest.mark.parametrize("name", BYTE_LEVEL)
def test_gguf_byte_level(name):
    tokenizer = tokenizer_from_gguf(gguf_metadata(name, GOLDENS[name]["json"]))
    assert tokenizer.exact
    assert different(tokenizer, TEXTS, GOLDENS[name]) == []


@pytest.mark.parametrize("name", BYTE_LEVEL)
def test_own_merge_loop(name):
    tokenizer = tokenizer_from_gguf(gguf_metadata(name, GOLDENS[name]["json"]))
    tokenizer._fast = None
    assert different(tokenizer, TEXTS, GOLDENS[name]) == []


@pytest.mark.parametrize("name", BYTE_LEVEL)
def test_ids_out_of_merge_order_go_through_the_own_loop(name):
    """Ids turned round keep the merges but not their order: tiktoken would be wrong."""
    data = json.loads(json.dumps(GOLDENS[name]["json"]))
    last = len(data["model"]["vocab"]) - 1
    data["model"]["vocab"] = {entry: last - i for entry, i in data["model"]["vocab"].items()}
    for token in data["added_tokens"]:
        token["id"] = last - token["id"]
    for token in (data["post_processor"] or {}).get("special_tokens", {}).values():
        token["ids"] = [last - i for i in token["ids"]]
    tokenizer = tokenizer_from_json(data)
    assert not tokenizer.exact
    for text, golden in zip(TEXTS[:300], crcs(GOLDENS[name]), strict=False):
        ids = [last - i for i in tokenizer.encode(text)]
        assert crc32(np.array(ids, "<i4").tobytes()) == golden, text


def test_gguf_sentencepiece():
    golden = GOLDENS["sentencepiece"]
    metadata = {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": golden["tokens"],
        "tokenizer.ggml.scores": [float(score) for score in golden["scores"]],
        "tokenizer.ggml.token_type": [("i32", kind) for kind in golden["kinds"]],
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.add_bos_token": False,
    }
    read = asyncio.run(read_gguf(BytesSource(gguf_bytes(metadata, {})))).metadata
    tokenizer = tokenizer_from_gguf(read)
    assert different(tokenizer, TEXTS, golden) == []
    for text in TEXTS:
        assert tokenizer.decode(tokenizer.encode(text)) == text
    by_default = tokenizer_from_gguf({k: v for k, v in read.items() if "add_bos" not in k})
    assert by_default.encode("a b")[0] == 1


def test_gguf_sentencepiece_of_gemma():
    """No space in front; runs of spaces, line breaks and marks as user-defined tokens."""
    golden = GOLDENS["gemma sentencepiece"]
    metadata = {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": golden["tokens"],
        "tokenizer.ggml.scores": golden["scores"],
        "tokenizer.ggml.token_type": np.array(golden["kinds"]),
        "tokenizer.ggml.add_space_prefix": False,
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.ggml.unknown_token_id": 0,
    }
    assert golden["kinds"].count(4) == 10
    tokenizer = tokenizer_from_gguf(metadata)
    assert different(tokenizer, TEXTS, golden) == []
    for text in TEXTS:
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_sentencepiece_without_prefix_and_with_tokens_of_its_own():
    """As Gemma has it: no space in front, runs of spaces and turn marks as user-defined tokens."""
    golden = GOLDENS["sentencepiece"]
    count = len(golden["tokens"])
    metadata = {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": [*golden["tokens"], "▁▁▁", "<end_of_turn>"],
        "tokenizer.ggml.scores": [*golden["scores"], 0.0, 0.0],
        "tokenizer.ggml.token_type": np.array([*golden["kinds"], 4, 4]),
        "tokenizer.ggml.add_space_prefix": False,
        "tokenizer.ggml.bos_token_id": 1,
    }
    tokenizer = tokenizer_from_gguf(metadata)
    ids = tokenizer.encode("the   of<end_of_turn>")
    assert ids[0] == 1 and ids[-1] == count + 1 and count in ids
    assert tokenizer.ends == {count + 1}
    assert tokenizer.decode(ids[:-1]) == "the   of"
    assert tokenizer.decode(tokenizer.encode(" a")) == " a"
    assert tokenizer.encode("a", add_bos=False) != tokenizer.encode(" a", add_bos=False)


@pytest.mark.parametrize("arch", ["phi3", "llama"])
def test_phi_3_drops_the_space_after_its_marks(arch):
    golden = GOLDENS["sentencepiece"]
    count = len(golden["tokens"])
    metadata = {
        "general.architecture": arch,
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": [*golden["tokens"], "<|user|>", "<|end|>"],
        "tokenizer.ggml.scores": [*golden["scores"], 0.0, 0.0],
        "tokenizer.ggml.token_type": np.array([*golden["kinds"], 3, 4]),
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.add_bos_token": False,
    }
    tokenizer = tokenizer_from_gguf(metadata)
    words = tokenizer.encode("the of")
    assert tokenizer.encode("<|user|>the of<|end|>") == [count, *words, count + 1]
    spaced = tokenizer.encode("<|user|>\nthe of<|end|> \n")
    assert (spaced == [count, *words, count + 1]) == (arch == "phi3")
    assert tokenizer.encode("<s>\nthe of") != [1, *words]


@pytest.mark.parametrize("name", ["gpt-2", "smollm", "llama-bpe", "tekken", *SPACED])
def test_decode_gives_the_text_back(name):
    tokenizer = tokenizer_from_json(GOLDENS[name]["json"])
    blob, at = tokenizer.table()
    for text in TEXTS:
        ids = tokenizer.encode(text)
        if name != "metaspace" or not text.startswith(" "):
            assert tokenizer.decode(ids) == text
        shown = b"".join(blob[at[i] : at[i + 1]] for i in ids)
        assert shown == tokenizer.decode_bytes(ids)


def test_smollm2_equals_the_steps_it_was_trained_with(smollm2):
    assert smollm2.exact and smollm2.vocab_size == 49152
    assert different(smollm2, TEXTS, GOLDENS["smollm2"]) == []


def test_smollm2_own_loop(smollm2):
    ids = [smollm2.encode(text) for text in TEXTS[:400]]
    fast, smollm2._fast = smollm2._fast, None
    try:
        assert [smollm2.encode(text) for text in TEXTS[:400]] == ids
    finally:
        smollm2._fast = fast


STORY = (
    "A computer on a desk by the window kept a careful record of every train that passed through "
    "the valley. It counted the carriages, noted the weather, and wrote one short line for each "
    "of them in a long green table. "
)
STORY_IDS = """
330 2583 335 253 10917 411 260 5700 5454 253 5649 2004 282 897 4445 338 4180 738 260 12322
30 657 17288 260 47398 28 5332 260 3947 28 284 4150 582 1890 1761 327 971 282 601 281 253
986 2654 3252 30
"""


def test_smollm2_equals_llama_cpp_on_a_chat_prompt(smollm2):
    start = "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n"
    end = "Now explain in a few sentences how a rainbow forms.<|im_end|>\n<|im_start|>assistant\n"
    story = [int(token) for token in STORY_IDS.split()]
    assert smollm2.encode(f"{start}Read this: {STORY}{STORY}{end}") == [
        *(1, 9690, 198, 2683, 359, 253, 5356, 11173, 30, 2, 198, 1, 4093, 198, 6340, 451, 42),
        *story,
        *story,
        *(3569, 3556, 281, 253, 1443, 8545, 638, 253, 24594, 2717, 30, 2, 198, 1, 520, 9531, 198),
    ]


def test_smollm2_roles(smollm2):
    assert (smollm2.bos, smollm2.eos, smollm2.add_bos) == (1, 2, False)
    assert smollm2.ends == {0, 2}
    assert smollm2.token_text(2) == "<|im_end|>" and smollm2.token_id("<|im_end|>") == 2
    assert smollm2.decode([1, 9690, 198, 2683]) == "system\nYou"
    assert smollm2.decode([1, 9690], special=True) == "<|im_start|>system"


def test_smollm2_lacks_bytes(smollm2):
    with pytest.raises(IndexOutOfRange, match=r"byte 0x13 at byte 4"):
        smollm2.encode("abé\x13")
    assert smollm2.encode("and after") == smollm2.encode("and after")


def test_special_tokens_of_strangers_stay_text(smollm2):
    text = "a<|im_end|>b"
    assert 2 in smollm2.encode(text)
    plain = smollm2.encode(text, special=False)
    assert 2 not in plain and smollm2.decode(plain) == text


def test_exactly_one_bos():
    tokenizer = tokenizer_from_json(GOLDENS["llama-bpe"]["json"])
    rest = tokenizer.encode("Hello", add_bos=False)
    assert 0 not in rest and tokenizer.encode("Hello") == [0, *rest]
    assert tokenizer.encode("<|begin|>Hello") == [0, *rest]
    assert tokenizer.encode("<|begin|><|begin|>Hello") == [0, *rest]
    assert tokenizer.encode("<|begin|>Hello", add_bos=False) == [0, *rest]
    assert tokenizer.encode("") == [0]
    without = tokenizer_from_json(GOLDENS["gpt-2"]["json"])
    with pytest.raises(FormatError, match="no begin token"):
        without.encode("a", add_bos=True)


def test_roles_from_the_config():
    config = {"bos_token": {"content": "<|begin|>"}, "eos_token": "<|end|>", "add_bos_token": True}
    tokenizer = tokenizer_from_json(GOLDENS["gpt-2"]["json"], config)
    assert (tokenizer.bos, tokenizer.eos, tokenizer.ends) == (0, 1, {1})
    assert tokenizer.encode("a")[0] == 0


def test_shown_and_stripping_tokens():
    data = json.loads(json.dumps(GOLDENS["gpt-2"]["json"]))
    count = len(data["model"]["vocab"])
    flags = dict(single_word=False, lstrip=False, rstrip=False, normalized=False)
    data["added_tokens"] += [
        {**flags, "id": count, "content": "<think>", "special": False},
        {**flags, "id": count + 1, "content": "<mask>", "special": True, "lstrip": True},
        {**flags, "id": count + 2, "content": "<cut>", "special": True, "rstrip": True},
    ]
    tokenizer = tokenizer_from_json(data)
    a, b = tokenizer.encode("a"), tokenizer.encode("b")
    assert tokenizer.encode("a<think>b", special=False) == [*a, count, *b]
    assert tokenizer.decode([*a, count, *b]) == "a<think>b"
    assert tokenizer.encode("a \n<mask>b") == [*a, count + 1, *b]
    assert tokenizer.encode("a<cut> \n b") == [*a, count + 2, *b]
    blob, at = tokenizer.table()
    assert blob[at[count] : at[count + 1]] == b"<think>" and at[count + 1] == at[count + 2]


def test_lone_surrogates_are_replaced(smollm2):
    assert smollm2.decode(smollm2.encode("a\ud83d b")) == "a\ufffd b"


def test_emoji_over_several_tokens(smollm2):
    ids = smollm2.encode("👍🏽")
    assert len(ids) > 1
    blob, at = smollm2.table()
    assert b"".join(blob[at[i] : at[i + 1]] for i in ids).decode() == "👍🏽"


@pytest.mark.parametrize("token", [-1, 49152, 2**40])
def test_ids_outside_the_vocabulary(smollm2, token):
    with pytest.raises(IndexOutOfRange, match=f"token id {token}: .* 0 to 49151"):
        smollm2.decode([5, token])


def test_what_tiktoken_gives_up_on_goes_through_the_own_loop(smollm2):
    class Panics:
        def encode_ordinary(self, text):
            raise type("PanicException", (BaseException,), {})("stack overflow")

    class Drops:
        def encode_ordinary(self, text):
            return real.encode_ordinary(text[:-1])

    class Interrupted:
        def encode_ordinary(self, text):
            raise KeyboardInterrupt

    real, expected = smollm2._fast, smollm2.encode("two words")
    try:
        for broken in (Panics(), Drops()):
            smollm2._fast = broken
            assert smollm2.encode("two words") == expected
        smollm2._fast = Interrupted()
        with pytest.raises(KeyboardInterrupt):
            smollm2.encode("two words")
    finally:
        smollm2._fast = real


def test_merge_by_hand():
    order = {("b", "c"): 1, ("a", "b"): 0, ("ab", "ab"): 2, ("a", "a"): 3}
    assert merge("abcab", lambda a, b: order.get((a, b))) == ["ab", "c", "ab"]
    assert merge("ababab", lambda a, b: order.get((a, b))) == ["abab", "ab"]
    assert merge("aaaaa", lambda a, b: order.get((a, b))) == ["aa", "aa", "a"]
    assert merge("", lambda a, b: 0) == [] and merge("x", lambda a, b: 0) == ["x"]


@given(st.text("ab", max_size=40), st.randoms(use_true_random=False))
def test_merge_equals_the_plain_loop(text, random):
    pairs = [(a, b) for a in ("a", "b", "ab", "ba", "aa") for b in ("a", "b", "aa", "bb", "ab")]
    random.shuffle(pairs)
    order = {pair: rank for rank, pair in enumerate(pairs[:15])}
    plain = list(text)
    while ranked := [(order[pair], i) for i, pair in enumerate(pairwise(plain)) if pair in order]:
        i = min(ranked)[1]
        plain[i : i + 2] = ["".join(plain[i : i + 2])]
    assert merge(text, lambda a, b: order.get((a, b))) == plain


@pytest.mark.parametrize("letter", ["a", "日", " ", "\n", "^", "1"])
def test_long_runs_do_not_take_quadratic_time(smollm2, letter):
    text = letter * 60_000
    start = time.process_time()
    assert smollm2.decode(smollm2.encode(text)) == text
    assert time.process_time() - start < 5


def test_long_words_do_not_take_quadratic_time():
    tokenizer = tokenizer_from_json(GOLDENS["gemma"]["json"])
    text = "日" * 100_000 + "a" * 100_000
    assert tokenizer.decode(tokenizer.encode(text)) == text
