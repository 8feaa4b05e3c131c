"""The tokenizer that a `tokenizer.json` describes, the file beside safetensors weights.

It is a pipeline of named steps; those of byte-level BPE and of SentencePiece-style BPE are read,
any other step is refused by name rather than left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from ..errors import FormatError, UnsupportedModel
from .base import AddedToken, Roles, Tokenizer
from .bpe import ByteBPE, letters_to_bytes, merge_ranks
from .patterns import DIGITS_GPT2, GPT2, Splitting
from .spm import SPACE, Prefix, SentencePiece

Json = Mapping[str, Any]
MAX_VOCABULARY = 1 << 22


def tokenizer_from_json(data: Json, config: Json | None = None) -> Tokenizer:
    """Build the tokenizer of a parsed `tokenizer.json`.

    Args:
        data: the parsed file.
        config: the parsed `tokenizer_config.json`, for the begin and end tokens.

    Raises:
        UnsupportedModel: a step or model that is not known; names it.
        FormatError: a part that is missing or contradicts another.
    """
    try:
        return _build(data, config or {})
    except (LookupError, ArithmeticError, TypeError, AttributeError, ValueError) as error:
        raise FormatError(
            f"tokenizer.json: a part is missing or of another kind than usual: {error!r}"
        ) from error


def _build(data: Json, config: Json) -> Tokenizer:
    model = data["model"]
    if model.get("type", "BPE") != "BPE":
        raise UnsupportedModel(f"tokenizer.json: model {model['type']!r}; only 'BPE' is known")
    for key in ("continuing_subword_prefix", "end_of_word_suffix", "dropout"):
        if model.get(key):
            raise UnsupportedModel(f"tokenizer.json: BPE with {key} is not known")
    vocabulary: dict[str, int] = model["vocab"]
    added = [_added(token) for token in data.get("added_tokens") or ()]
    count = 1 + max(*vocabulary.values(), *(token.id for token in added))
    if min(vocabulary.values()) < 0 or count > MAX_VOCABULARY:
        raise FormatError(f"tokenizer.json: token ids outside 0 to {MAX_VOCABULARY - 1}")
    before = list(_steps(data.get("pre_tokenizer"), "pretokenizers"))
    normal = list(_steps(data.get("normalizer"), "normalizers"))
    roles = _roles(data, config, added, vocabulary)
    if any(step["type"] == "ByteLevel" for step in before):
        return _byte_bpe(model, vocabulary, count, before, normal, added, roles)
    return _sentencepiece(model, vocabulary, count, before, normal, added, roles)


def _byte_bpe(
    model: Json,
    vocabulary: dict[str, int],
    count: int,
    before: list[Json],
    normal: list[Json],
    added: list[AddedToken],
    roles: Roles,
) -> Tokenizer:
    nfc = [step["type"] for step in normal] == ["NFC"]
    if normal and not nfc:
        _refuse("normalizer", normal)
    special = {token.id for token in added}
    pieces = [b""] * count
    for entry, token in vocabulary.items():
        pieces[token] = letters_to_bytes(entry.encode())
    ids = {piece: i for i, piece in enumerate(pieces) if piece and i not in special}
    for one in added:
        pieces[one.id] = one.text.encode()
    merges = [_pair(pair) for pair in model["merges"]]
    pairs = merge_ranks(lambda: (" ".join(pair).encode() for pair in merges), ids)
    cut = Splitting(_pattern(before), bool(model.get("ignore_merges")), nfc=nfc)
    return ByteBPE(pieces, ids, pairs, added, roles, cut, before[-1].get("add_prefix_space", False))


def _pattern(before: list[Json]) -> str:
    """The one pattern that does what the splitting steps do one after the other."""
    kinds = [step["type"] for step in before]
    by_byte_level = before[-1].get("use_regex", True)
    if kinds == ["ByteLevel"] and by_byte_level:
        return GPT2
    if kinds == ["Digits", "ByteLevel"] and by_byte_level and before[0].get("individual_digits"):
        return DIGITS_GPT2
    if kinds == ["Split", "ByteLevel"] and not by_byte_level:
        pattern = before[0]["pattern"].get("Regex")
        if pattern and before[0]["behavior"] == "Isolated" and not before[0].get("invert"):
            return str(pattern)
    _refuse("pre-tokenizer", before)


def _sentencepiece(
    model: Json,
    vocabulary: dict[str, int],
    count: int,
    before: list[Json],
    normal: list[Json],
    added: list[AddedToken],
    roles: Roles,
) -> Tokenizer:
    prefix: Prefix = "never"
    spaces = False
    for step in normal:
        if step["type"] == "Prepend" and step["prepend"] == SPACE:
            prefix = "always"
        elif step["type"] == "Replace" and step["pattern"] == {"String": " "}:
            spaces = step["content"] == SPACE
        else:
            _refuse("normalizer", normal)
    for step in before:
        if step["type"] == "Metaspace" and step.get("split") is False:
            spaces = step["replacement"] == SPACE
            prefix = _prefix(step)
        elif step["type"] != "Split" or step["pattern"] != {"String": " "} or not spaces:
            # A split at spaces finds none where all of them were replaced before.
            _refuse("pre-tokenizer", before)
    if not spaces:
        _refuse("pre-tokenizer", before)
    pieces = [b""] * count
    for entry, token in vocabulary.items():
        pieces[token] = entry.replace(SPACE, " ").encode()
    byte_ids: list[int] = []
    if model.get("byte_fallback"):
        byte_ids = [vocabulary[f"<0x{byte:02X}>"] for byte in range(256)]
        for byte, token in enumerate(byte_ids):
            pieces[token] = bytes((byte,))
    for one in added:
        pieces[one.id] = one.text.encode()
    ranks: dict[tuple[str, str], int] = {}
    for rank, pair in enumerate(model["merges"]):
        ranks.setdefault(_pair(pair), rank)
    special = {*byte_ids, *(token.id for token in added)}
    ids = {entry: token for entry, token in vocabulary.items() if entry and token not in special}
    return SentencePiece(
        pieces, ids, lambda a, b: ranks.get((a, b)), byte_ids, added, roles, prefix
    )


def _prefix(step: Json) -> Prefix:
    """Metaspace says `prepend_scheme`, in older files `add_prefix_space`."""
    scheme = step.get("prepend_scheme", "first" if step.get("add_prefix_space") else "never")
    if scheme not in ("first", "never"):
        _refuse("pre-tokenizer", [step])
    return "first" if scheme == "first" else "never"


def _pair(pair: str | list[str]) -> tuple[str, str]:
    """A merge, in the form `"left right"` or `["left", "right"]`."""
    left, right = pair.split(" ") if isinstance(pair, str) else pair
    return left, right


def _added(token: Json) -> AddedToken:
    if token.get("single_word"):
        raise UnsupportedModel(
            f"tokenizer.json: added token {token['content']!r} with single_word is not known"
        )
    return AddedToken(
        token["content"],
        token["id"],
        bool(token.get("special")),
        bool(token.get("lstrip")),
        bool(token.get("rstrip")),
    )


def _roles(data: Json, config: Json, added: list[AddedToken], vocabulary: dict[str, int]) -> Roles:
    ids = vocabulary | {token.text: token.id for token in added}

    def named(key: str) -> int | None:
        value = config.get(key)
        return ids.get(value["content"] if isinstance(value, Mapping) else value or "")

    bos, add_bos = named("bos_token"), False
    for step in _steps(data.get("post_processor"), "processors"):
        if step["type"] == "TemplateProcessing":
            first = step["single"][0].get("SpecialToken")
            if first is not None:
                bos, add_bos = step["special_tokens"][first["id"]]["ids"][0], True
        elif step["type"] != "ByteLevel":
            _refuse("post-processor", [step])
    return Roles(
        bos=bos,
        eos=named("eos_token"),
        unknown=ids.get(data["model"].get("unk_token") or ""),
        add_bos=bool(config.get("add_bos_token", add_bos)),
    )


def _steps(step: Json | None, inside: str) -> Iterable[Json]:
    """A pipeline's steps, sequences opened."""
    if step is None:
        return
    if step["type"] == "Sequence":
        for part in step[inside]:
            yield from _steps(part, inside)
    else:
        yield step


def _refuse(what: str, steps: list[Json]) -> NoReturn:
    names = " + ".join(str(step["type"]) for step in steps) or "none"
    raise UnsupportedModel(
        f"tokenizer.json: {what} {names} in this form is not known — use the model's GGUF file"
    )
