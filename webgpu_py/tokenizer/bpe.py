"""Byte-level BPE: text is cut into pieces by a pattern, and each piece's bytes are merged.

tiktoken does it where it is exact: it merges the pair whose result has the lowest id, which is
the trained order if ids ascend with the merges and nothing but merges makes longer tokens. That
is checked here; other vocabularies, and text that tiktoken's engine gives up on, go through our
own loop over the same pieces.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np

from ..errors import FeatureMissing, FormatError, IndexOutOfRange
from .base import AddedToken, Roles, Tokenizer
from .merge import Merged, merge
from .patterns import Splitting

CACHED_PIECES, LONGEST_CACHED = 4096, 64
SPLIT_S = 4
"""Seconds that a pattern may take for a text; those of honest files take milliseconds."""

# tiktoken takes quadratic time for a piece, and panics on very long runs of white space.
LONG_RUN = re.compile(r"\S{8000}|\s{8000}")


def _byte_letters() -> dict[int, str]:
    """Byte to the letter that stands for it in vocabularies: itself where that can be printed."""
    printed = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printed]
    letters = {byte: chr(byte) for byte in printed}
    return letters | {byte: chr(256 + i) for i, byte in enumerate(others)}


LETTER_TO_BYTE = {ord(letter): byte for byte, letter in _byte_letters().items()}
SPACE_LETTER = "Ġ".encode()


def letters_to_bytes(entry: bytes) -> bytes:
    """The bytes that a vocabulary entry stands for; one outside the alphabet is itself.

    FormatError for one that is no UTF-8.
    """
    # Most entries are ASCII but for the space in front, and ASCII letters stand for themselves.
    simple = entry.replace(SPACE_LETTER, b" ")
    if simple.isascii():
        return simple
    try:
        return entry.decode().translate(LETTER_TO_BYTE).encode("latin-1")
    except UnicodeEncodeError:
        return entry
    except UnicodeDecodeError:
        raise FormatError(f"tokenizer: the vocabulary's entry {entry!r} is not UTF-8") from None


class ByteBPE(Tokenizer):
    """Byte-level BPE.

    Args:
        pieces: bytes by id.
        ids: id by bytes, of all tokens that plain text can become.
        pairs: rank by pair of pieces; None where the order of the ids says it (`merge_ranks`).
        added: special tokens.
        roles: begin, end and unknown token.
        splitting: how text is cut.
        prefix_space: put a space in front of text that has none.
    """

    def __init__(
        self,
        pieces: Sequence[bytes],
        ids: dict[bytes, int],
        pairs: dict[tuple[bytes, bytes], int] | None,
        added: Sequence[AddedToken],
        roles: Roles,
        splitting: Splitting,
        prefix_space: bool = False,
    ) -> None:
        super().__init__(pieces, added, roles, strip_space=prefix_space)
        self._ids, self._pairs = ids, pairs
        self._splitting = splitting
        self._prefix_space = prefix_space
        self._lengths = np.diff(self._starts)
        self._fast = _tiktoken(splitting.pattern, ids) if pairs is None else None
        lacking = bytes(byte for byte in range(256) if bytes((byte,)) not in ids)
        self._lacking = re.compile(b"[" + re.escape(lacking) + b"]") if lacking else None
        self._merged = Merged(CACHED_PIECES)

    @property
    def exact(self) -> bool:
        """Whether tiktoken encodes this vocabulary."""
        return self._fast is not None

    def _encode_text(self, text: str, at_start: bool, after_special: bool) -> list[int]:
        if self._splitting.nfc:
            text = unicodedata.normalize("NFC", text)
        if self._prefix_space and not text.startswith(" "):
            text = " " + text
        raw = text.encode()
        if self._lacking and (found := self._lacking.search(raw)):
            raise IndexOutOfRange(
                f"text holds the byte 0x{found.group()[0]:02x} at byte {found.start()}, for which "
                "the model's vocabulary has no token — remove that character"
            )
        ids = None if LONG_RUN.search(text) else self._encode_fast(text)
        # Text that no alternative of the pattern matches is dropped there, so count the bytes.
        if ids is not None and int(self._lengths[ids].sum()) == len(raw):
            return ids
        slow: list[int] = []
        for piece in self._cut(text):
            short = len(piece) <= LONGEST_CACHED
            slow.extend(
                self._merged.get(piece, self._merge_piece) if short else self._merge_piece(piece)
            )
        return slow

    def _encode_fast(self, text: str) -> list[int] | None:
        if self._fast is None:
            return None
        try:
            ids: list[int] = self._fast.encode_ordinary(text)
        except BaseException as error:
            # tiktoken panics, beyond Exception, where its pattern engine gives up.
            if type(error).__name__ == "PanicException" or isinstance(error, ValueError):
                return None
            raise
        return ids

    def _cut(self, text: str) -> Iterator[str]:
        """The pieces of a text; what the pattern skips is a piece too."""
        at = 0
        for found in self._found(text):
            if found.start() > at:
                yield text[at : found.start()]
            if found.end() > found.start():
                yield found.group()
            at = found.end()
        if at < len(text):
            yield text[at:]

    def _found(self, text: str) -> Iterator[Any]:
        """Matches of the pattern, which a file may have brought: FormatError if it has no end."""
        try:
            yield from self._pattern.finditer(text, timeout=SPLIT_S)
        except TimeoutError:
            raise FormatError(
                f"tokenizer: cutting {len(text)} characters takes its pattern more than {SPLIT_S} "
                "s — it backtracks without end; use another copy of the model"
            ) from None

    @cached_property
    def _pattern(self) -> Any:
        regex = import_module("regex")
        try:
            return regex.compile(self._splitting.pattern)
        except regex.error as error:
            raise FormatError(f"tokenizer: its pattern is none ({error})") from None

    def _merge_piece(self, piece: str) -> tuple[int, ...]:
        raw, ids = piece.encode(), self._ids
        if (self.exact or self._splitting.whole_first) and raw in ids:
            return (ids[raw],)
        symbols = [raw[i : i + 1] for i in range(len(raw))]
        return tuple(ids[symbol] for symbol in merge(symbols, self._rank))

    def _rank(self, a: bytes, b: bytes) -> int | None:
        return self._ids.get(a + b) if self._pairs is None else self._pairs.get((a, b))


def merge_ranks(
    merges: Callable[[], Iterable[bytes]], ids: Mapping[bytes, int]
) -> dict[tuple[bytes, bytes], int] | None:
    """Merge pairs to their rank, or None where the order of the ids says the same.

    Args:
        merges: gives the pairs `b"left right"` in letters, in trained order, each time anew.
        ids: id by bytes, of all tokens that plain text can become.
    """
    unmade = {token for piece, token in ids.items() if len(piece) > 1}
    last = -1
    for pair in merges():
        made = ids.get(letters_to_bytes(pair.replace(b" ", b"", 1)), last)
        unmade.discard(made)
        if made < last:
            break
        last = made
    else:
        if not unmade:
            return None
    ranks: dict[tuple[bytes, bytes], int] = {}
    for rank, pair in enumerate(merges()):
        left, right = map(letters_to_bytes, pair.split(b" ", 1))
        if left + right in ids:
            ranks.setdefault((left, right), rank)
    return ranks


def _tiktoken(pattern: str, ranks: dict[bytes, int]) -> Any:
    try:
        tiktoken = import_module("tiktoken")
    except ImportError as error:
        raise FeatureMissing(
            "byte-level BPE needs tiktoken, which is not installed — pip install tiktoken"
        ) from error
    return tiktoken.Encoding("webgpu_py", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
