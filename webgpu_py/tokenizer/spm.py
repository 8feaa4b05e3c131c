"""SentencePiece-style BPE: characters are merged by score, what is left over becomes bytes.

Spaces are written U+2581 and belong to the word after them. A character that the vocabulary lacks
becomes its UTF-8 bytes, tokens `<0x00>` to `<0xFF>`, else the unknown token.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

from ..errors import FormatError, IndexOutOfRange
from .base import AddedToken, Roles, Tokenizer
from .merge import Merged, merge

Prefix: TypeAlias = Literal["always", "first", "never"]

SPACE = "▁"
CACHED_WORDS, LONGEST_CACHED = 4096, 64
# A run of spaces and the characters up to the next one.
WORDS = re.compile(f"{SPACE}*[^{SPACE}]+|{SPACE}+")


class SentencePiece(Tokenizer):
    """SentencePiece-style BPE.

    Args:
        pieces: bytes by id, spaces as spaces.
        ids: id by vocabulary entry (with U+2581), of all tokens that plain text can become.
        rank: order in which two adjacent entries are merged, lowest first; None for never.
        byte_ids: the ids of `<0x00>` to `<0xFF>`, or none of them.
        added: special tokens.
        roles: begin, end and unknown token.
        prefix: put a space in front `"always"` (after each special token too), `"first"` (only at
            the start of a text that has none), or `"never"`.
    """

    def __init__(
        self,
        pieces: Sequence[bytes],
        ids: dict[str, int],
        rank: Callable[[str, str], float | None],
        byte_ids: Sequence[int],
        added: Sequence[AddedToken],
        roles: Roles,
        prefix: Prefix = "always",
    ) -> None:
        super().__init__(pieces, added, roles, strip_space=prefix != "never")
        if len(byte_ids) not in (0, 256):
            raise FormatError(f"tokenizer: {len(byte_ids)} byte tokens, there must be 256 or none")
        self._ids, self._rank, self._byte_ids = ids, rank, byte_ids
        self._prefix = prefix
        # Words can be merged one by one only if no entry reaches over the border of two.
        self._by_words = not any(SPACE in entry.lstrip(SPACE) for entry in ids)
        self._merged = Merged(CACHED_WORDS)

    def _encode_text(self, text: str, at_start: bool, after_special: bool) -> list[int]:
        text = text.replace(" ", SPACE)
        if self._prefix == "always" and after_special:
            text = SPACE + text
        elif self._prefix == "first" and at_start and not text.startswith(SPACE):
            text = SPACE + text
        ids: list[int] = []
        for word in WORDS.findall(text) if self._by_words else (text,):
            short = len(word) <= LONGEST_CACHED
            ids.extend(
                self._merged.get(word, self._merge_word) if short else self._merge_word(word)
            )
        return ids

    def _merge_word(self, word: str) -> tuple[int, ...]:
        found: list[int] = []
        for symbol in merge(word, self._rank):
            token = self._ids.get(symbol, self.unknown)
            if symbol not in self._ids and self._byte_ids:
                found.extend(self._byte_ids[byte] for byte in symbol.encode())
            elif token is None:
                raise IndexOutOfRange(
                    f"text holds {symbol!r}, for which the model's vocabulary has no token — "
                    "remove that character"
                )
            elif token != self.unknown or found[-1:] != [token]:
                found.append(token)
        return tuple(found)
