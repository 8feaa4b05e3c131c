"""The tokenizer that a GGUF file's metadata describes (`tokenizer.ggml.*`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError, UnsupportedModel
from ..formats.gguf_reader import StringArray
from .base import AddedToken, Roles, Tokenizer
from .bpe import ByteBPE, letters_to_bytes, merge_ranks
from .patterns import splitting
from .spm import SPACE, SentencePiece

Kinds: TypeAlias = NDArray[np.integer[Any]]

PREFIX = "tokenizer.ggml."
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
END_KEYS = ("eos_token_id", "eot_token_id", "eom_token_id")
KEEP_SPACE = ("<unk>", "<s>", "<|endoftext|>")
"""Phi-3's special tokens that leave the white space after them alone."""


def tokenizer_from_gguf(metadata: Mapping[str, Any]) -> Tokenizer:
    """Build the tokenizer of a GGUF file.

    Raises:
        UnsupportedModel: a kind of tokenizer or pre-tokenizer that is not known; names it.
        FormatError: metadata that is missing or contradicts itself.
    """
    model = metadata.get(PREFIX + "model")
    build: Callable[[Mapping[str, Any], Sequence[str], Kinds], Tokenizer] | None = {
        "gpt2": _byte_bpe,
        "llama": _sentencepiece,
    }.get(str(model))
    if build is None:
        raise UnsupportedModel(
            f"tokenizer model {model!r} is not known; known are 'gpt2' (byte-level BPE) and "
            "'llama' (SentencePiece BPE)"
        )
    tokens = _strings(metadata, "tokens")
    kinds = metadata.get(PREFIX + "token_type")
    kinds = np.full(len(tokens), NORMAL) if kinds is None else _numbers(metadata, "token_type")
    if len(kinds) != len(tokens):
        raise FormatError(f"tokenizer: {len(tokens)} tokens but {len(kinds)} token types")
    return build(metadata, tokens, kinds)


def _byte_bpe(metadata: Mapping[str, Any], tokens: Sequence[str], kinds: Kinds) -> Tokenizer:
    cut = splitting(str(metadata.get(PREFIX + "pre", "default")))
    plain = np.isin(kinds, (NORMAL, BYTE))
    pieces = [
        letters_to_bytes(entry) if is_plain else entry
        for entry, is_plain in zip(_raws(tokens), plain.tolist(), strict=True)
    ]
    ids = {pieces[i]: i for i in np.flatnonzero(plain).tolist() if pieces[i]}
    merges = _strings(metadata, "merges")
    pairs = merge_ranks(lambda: _raws(merges), ids)
    prefix_space = bool(metadata.get(PREFIX + "add_space_prefix", False))
    roles = _roles(metadata, add_bos=cut.bos)
    return ByteBPE(pieces, ids, pairs, _added(tokens, kinds), roles, cut, prefix_space)


def _sentencepiece(metadata: Mapping[str, Any], names: Sequence[str], kinds: Kinds) -> Tokenizer:
    tokens = list(names)
    scores = _numbers(metadata, "scores")
    if len(scores) != len(tokens):
        raise FormatError(f"tokenizer: {len(tokens)} tokens but {len(scores)} scores")
    order = (-scores.astype(np.float64)).tolist()
    pieces = [token.replace(SPACE, " ").encode() for token in tokens]
    byte_ids = np.flatnonzero(kinds == BYTE).tolist()
    if len(byte_ids) == 256:
        by_byte = {tokens[i].upper(): i for i in byte_ids}
        try:
            byte_ids = [by_byte[f"<0X{byte:02X}>"] for byte in range(256)]
        except KeyError as error:
            raise FormatError(f"tokenizer: byte token {error} is missing") from None
        for byte, i in enumerate(byte_ids):
            pieces[i] = bytes((byte,))
    plain = np.flatnonzero(np.isin(kinds, (NORMAL, USER_DEFINED))).tolist()
    ids = {tokens[i]: i for i in plain if tokens[i]}

    def rank(a: str, b: str) -> float | None:
        made = ids.get(a + b)
        return None if made is None else order[made]

    prefix = metadata.get(PREFIX + "add_space_prefix", True)
    return SentencePiece(
        pieces,
        ids,
        rank,
        byte_ids,
        _added(
            [token.replace(SPACE, " ") for token in tokens],
            kinds,
            # Phi-3's marks take the white space after them; no key says so.
            rstrip=metadata.get("general.architecture") == "phi3",
        ),
        _roles(metadata, add_bos=True),
        "always" if prefix else "never",
    )


def _required(metadata: Mapping[str, Any], key: str) -> Any:
    """A list of the metadata: a `StringArray`, an array or a list, not empty."""
    value = metadata.get(PREFIX + key)
    if not isinstance(value, Sequence | np.ndarray) or isinstance(value, str) or not len(value):
        raise FormatError(f"tokenizer: metadata {PREFIX + key!r} is missing or not a list")
    return value


def _strings(metadata: Mapping[str, Any], key: str) -> Sequence[str]:
    """A list of strings of the metadata."""
    found: Sequence[str] = _required(metadata, key)
    if not isinstance(found, StringArray) and not all(isinstance(one, str) for one in found):
        raise FormatError(f"tokenizer: metadata {PREFIX + key!r} is a list, but not of strings")
    return found


def _numbers(metadata: Mapping[str, Any], key: str) -> np.ndarray:
    """A list of numbers of the metadata."""
    found = _required(metadata, key)
    if isinstance(found, list) and all(isinstance(one, int | float) for one in found):
        found = np.array(found)
    if not isinstance(found, np.ndarray) or found.ndim != 1 or found.dtype.kind not in "iuf":
        raise FormatError(f"tokenizer: metadata {PREFIX + key!r} is no list of numbers")
    return found


def _raws(strings: Any) -> Iterable[bytes]:
    """The UTF-8 bytes of strings, without a detour where they are kept so."""
    if isinstance(strings, StringArray):
        return strings.raws()
    return (text.encode() for text in strings)


def _added(tokens: Sequence[str], kinds: Kinds, rstrip: bool = False) -> list[AddedToken]:
    """Tokens that are found in text as they stand; user-defined ones are shown in output."""
    found = np.flatnonzero(np.isin(kinds, (UNKNOWN, CONTROL, USER_DEFINED))).tolist()
    return [
        AddedToken(
            tokens[i],
            i,
            control=bool(kinds[i] != USER_DEFINED),
            rstrip=rstrip and tokens[i] not in KEEP_SPACE,
        )
        for i in found
        if tokens[i]
    ]


def _roles(metadata: Mapping[str, Any], add_bos: bool) -> Roles:
    def token(key: str) -> int | None:
        value = metadata.get(PREFIX + key)
        return value if isinstance(value, int) else None

    ends = frozenset(end for key in END_KEYS if (end := token(key)) is not None)
    return Roles(
        bos=token("bos_token_id"),
        eos=token("eos_token_id"),
        unknown=token("unknown_token_id"),
        ends=ends,
        add_bos=bool(metadata.get(PREFIX + "add_bos_token", add_bos)),
    )
