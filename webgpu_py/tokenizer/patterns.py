"""How byte-level vocabularies cut text into pieces before merging, by the name GGUF gives it.

A piece never merges with its neighbour. The patterns are those the models were trained with, in
the syntax that both `regex` and tiktoken's engine read.
"""

from __future__ import annotations

from typing import NamedTuple

from ..errors import UnsupportedModel

GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"

# Every digit is cut out first and GPT-2's pattern sees what lies between, so a digit ends a run of
# white space as the end of the text does.
DIGITS_GPT2 = r"\p{N}|'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?[^\s\p{L}\p{N}]+|\s+(?![^\s\p{N}])|\s+"

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")

TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


class Splitting(NamedTuple):
    """What a pre-tokenizer does: its pattern, and what comes with its name.

    `whole_first`: a piece that is in the vocabulary is taken whole, without merging.
    `bos`: a begin token is put in front where the metadata does not say. `nfc`: text is composed.
    """

    pattern: str
    whole_first: bool = False
    bos: bool = False
    nfc: bool = False


BY_NAME: dict[str, Splitting] = {
    **dict.fromkeys(("gpt-2", "phi-2", "olmo", "mpt"), Splitting(GPT2)),
    **dict.fromkeys(("smollm", "starcoder", "refact", "command-r"), Splitting(DIGITS_GPT2)),
    **dict.fromkeys(
        ("llama-bpe", "llama3", "llama-v3", "falcon3"),
        Splitting(LLAMA3, whole_first=True, bos=True),
    ),
    "qwen2": Splitting(QWEN2, nfc=True),
    "deepseek-r1-qwen": Splitting(QWEN2),
    "stablelm2": Splitting(QWEN2),
    "tekken": Splitting(TEKKEN, whole_first=True),
}


def splitting(name: str) -> Splitting:
    """The splitting that `tokenizer.ggml.pre` names; UnsupportedModel for a name not known."""
    try:
        return BY_NAME[name]
    except KeyError:
        raise UnsupportedModel(
            f"pre-tokenizer {name!r} is not known; known are {', '.join(BY_NAME)} — use a model "
            "with one of these, or convert the file anew if it is old"
        ) from None
