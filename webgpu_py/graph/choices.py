"""Which of several ways to compute a case is fastest on a device, where that was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class Choices:
    """Ways by case, both as text. A case that was not measured goes the first way, the rule's."""

    def __init__(self, found: Mapping[str, str] | None = None) -> None:
        self.found = dict(found or {})

    def __contains__(self, case: str) -> bool:
        """Whether it is worth telling the ways of a case."""
        return case in self.found

    def pick(self, case: str, ways: Sequence[str]) -> int:
        """Index of the way to go; one that this device does not offer is passed over."""
        way = self.found.get(case)
        return ways.index(way) if way in ways else 0


class Asked(Choices):
    """Choices that note what they are asked."""

    def __init__(self, found: Mapping[str, str]) -> None:
        super().__init__(found)
        self.ways: dict[str, tuple[str, ...]] = {}

    def __contains__(self, case: str) -> bool:
        """Every case is of interest."""
        return True

    def pick(self, case: str, ways: Sequence[str]) -> int:
        """As for any choices."""
        self.ways.setdefault(case, tuple(ways))
        return super().pick(case, ways)
