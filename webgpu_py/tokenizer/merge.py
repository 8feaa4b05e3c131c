"""The merge loop of byte-pair encoding: always the adjacent pair of lowest rank, leftmost first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from typing import TypeVar

Symbol = TypeVar("Symbol", str, bytes)


def merge(
    symbols: Sequence[Symbol], rank: Callable[[Symbol, Symbol], float | None]
) -> list[Symbol]:
    """Join adjacent symbols until `rank(a, b)` is None for every pair that is left.

    O(n log n) in the number of symbols, whatever the text. No symbol is empty.
    """
    parts = list(symbols)
    count = len(parts)
    before, after = list(range(-1, count - 1)), list(range(1, count + 1))
    # Entries carry both lengths: they tell later whether the two symbols are still the same.
    heap = [
        (order, i, len(parts[i]), len(parts[i + 1]))
        for i in range(count - 1)
        if (order := rank(parts[i], parts[i + 1])) is not None
    ]
    heapify(heap)
    while heap:
        _, i, length, next_length = heappop(heap)
        j = after[i]
        if len(parts[i]) != length or j >= count or len(parts[j]) != next_length:
            continue
        parts[i] += parts[j]
        parts[j] = parts[j][:0]
        after[i] = after[j]
        if after[i] < count:
            before[after[i]] = i
        for left, right in ((before[i], i), (i, after[i])):
            if left >= 0 and right < count:
                order = rank(parts[left], parts[right])
                if order is not None:
                    heappush(heap, (order, left, len(parts[left]), len(parts[right])))
    return [part for part in parts if part]


class Merged:
    """What pieces merge to, for as many as `most`: text repeats itself.

    An `lru_cache` of a method would hold its tokenizer, and that its cache: both, and all memory
    of tiktoken's, would outlive their model until the next full garbage collection.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._found: dict[str, tuple[int, ...]] = {}

    def get(self, piece: str, make: Callable[[str], tuple[int, ...]]) -> tuple[int, ...]:
        """The ids of a piece; `make` is asked for those that are new."""
        found = self._found.get(piece)
        if found is None:
            if len(self._found) == self._most:
                self._found.clear()
            found = self._found[piece] = make(piece)
        return found
