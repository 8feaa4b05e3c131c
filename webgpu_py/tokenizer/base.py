"""What every tokenizer shares: special tokens, begin and end tokens, ids back to bytes."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError, IndexOutOfRange

END_NAMES = frozenset(
    (
        "<|endoftext|>",
        "<|im_end|>",
        "<|end|>",
        "<|eot_id|>",
        "<|eom_id|>",
        "<|end_of_text|>",
        "<end_of_turn>",
        "<｜end▁of▁sentence｜>",
    )
)
"""Special tokens that end an answer whatever the metadata says."""


@dataclass(frozen=True, slots=True)
class AddedToken:
    """A token that is found in the text as it stands, before any splitting or merging.

    `control`: it steers the model and is not shown in its output. `lstrip`, `rstrip`: white space
    before or after it belongs to it.
    """

    text: str
    id: int
    control: bool = True
    lstrip: bool = False
    rstrip: bool = False


@dataclass(frozen=True, slots=True)
class Roles:
    """Token ids with a part to play; None where the vocabulary has no such token."""

    bos: int | None = None
    eos: int | None = None
    unknown: int | None = None
    ends: frozenset[int] = frozenset()
    add_bos: bool = False


class Tokenizer(ABC):
    """Text to token ids and back; see `encode`, `decode`, `table`.

    `bos` and `eos` are ids or None; `ends` are all ids that end an answer.
    """

    def __init__(
        self,
        pieces: Sequence[bytes],
        added: Sequence[AddedToken],
        roles: Roles,
        strip_space: bool = False,
    ) -> None:
        for role in (roles.bos, roles.eos, roles.unknown, *(token.id for token in added)):
            if role is not None and not 0 <= role < len(pieces):
                raise FormatError(
                    f"tokenizer: special token {role} lies outside the vocabulary of {len(pieces)}"
                )
        self._strip_space = strip_space
        self._blob = b"".join(pieces)
        self._starts = np.fromiter(
            accumulate(map(len, pieces), initial=0), np.uint32, len(pieces) + 1
        )
        self._control = frozenset(token.id for token in added if token.control)
        self._by_text = {token.text: token for token in added}
        self._finders = {
            control: _finder(token for token in added if control or not token.control)
            for control in (True, False)
        }
        self.bos, self.eos, self.unknown = roles.bos, roles.eos, roles.unknown
        self.add_bos = roles.add_bos and roles.bos is not None
        named = {token.id for token in added if token.text in END_NAMES}
        self.ends = roles.ends | named | ({roles.eos} if roles.eos is not None else set())

    @property
    def vocab_size(self) -> int:
        """Ids run from 0 to this, exclusive."""
        return len(self._starts) - 1

    def encode(self, text: str, *, special: bool = True, add_bos: bool | None = None) -> list[int]:
        """The token ids of a text.

        Args:
            text: any text; lone surrogates count as U+FFFD.
            special: whether control tokens that stand in the text are taken as such, as a chat
                template needs it. Text from strangers is encoded with False.
            add_bos: put the begin token in front, unless the text starts with it already; by
                default what the model's metadata says.

        Raises:
            IndexOutOfRange: a byte for which the vocabulary has no token.
        """
        ids: list[int] = []
        if add_bos if add_bos is not None else self.add_bos:
            if self.bos is None:
                raise FormatError(
                    "tokenizer: add_bos was asked for, the model names no begin token"
                )
            ids.append(self.bos)
        with_bos = bool(ids)
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        at_start = after_special = True
        for part in self._parts(text, special):
            if isinstance(part, str):
                ids.extend(self._encode_text(part, at_start, after_special))
            elif not (with_bos and part == self.bos and len(ids) == 1):
                ids.append(part)
            at_start, after_special = False, not isinstance(part, str)
        return ids

    def decode_bytes(self, ids: Iterable[int], *, special: bool = False) -> bytes:
        """The bytes that tokens stand for, control tokens only if `special`.

        Raises:
            IndexOutOfRange: an id outside the vocabulary.
        """
        blob, starts, shown = self._blob, self._starts, []
        for token in ids:
            if not 0 <= token < self.vocab_size:
                raise IndexOutOfRange(
                    f"token id {token}: the vocabulary has ids 0 to {self.vocab_size - 1}"
                )
            if special or token not in self._control:
                shown.append(blob[starts[token] : starts[token + 1]])
        return b"".join(shown)

    def decode(self, ids: Iterable[int], *, special: bool = False) -> str:
        """The text of tokens; bytes that are no UTF-8 become U+FFFD.

        Where `encode` puts a space in front, that one is taken away again.
        """
        text = self.decode_bytes(ids, special=special).decode("utf-8", "replace")
        return text.removeprefix(" ") if self._strip_space else text

    def token_text(self, token: int) -> str:
        """The text of one token, control tokens included."""
        return self.decode_bytes((token,), special=True).decode("utf-8", "replace")

    def token_id(self, text: str) -> int | None:
        """The id of a special token by its text."""
        token = self._by_text.get(text)
        return None if token is None else token.id

    def table(self) -> tuple[bytes, NDArray[np.uint32]]:
        """All bytes one after the other, and V + 1 offsets: id i shows `blob[at[i]:at[i + 1]]`.

        Control tokens show nothing. This is what a token loop needs to print without Python.
        """
        if not self._control:
            return self._blob, self._starts
        lengths = np.diff(self._starts)
        lengths[list(self._control)] = 0
        offsets = np.zeros_like(self._starts)
        np.cumsum(lengths, out=offsets[1:])
        kept = [self._blob[self._starts[i] : self._starts[i + 1]] for i in np.flatnonzero(lengths)]
        return b"".join(kept), offsets

    @abstractmethod
    def _encode_text(self, text: str, at_start: bool, after_special: bool) -> list[int]:
        """Ids of text without special tokens; at the very start both flags are true."""

    def _parts(self, text: str, special: bool) -> Iterator[str | int]:
        """The text cut at special tokens: strings that are not empty, and ids."""
        finder, at = self._finders[special], 0
        while finder and (found := finder.search(text, at)):
            token = self._by_text[found.group()]
            start, end = found.span()
            while token.lstrip and start > at and text[start - 1].isspace():
                start -= 1
            while token.rstrip and end < len(text) and text[end].isspace():
                end += 1
            if start > at:
                yield text[at:start]
            yield token.id
            at = end
        if at < len(text):
            yield text[at:]


def _finder(tokens: Iterable[AddedToken]) -> re.Pattern[str] | None:
    """A pattern for the leftmost, then longest token."""
    texts = sorted({token.text for token in tokens if token.text}, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, texts))) if texts else None
