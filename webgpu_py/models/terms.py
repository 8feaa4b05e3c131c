"""Settings from a file of a stranger: each is there and of its kind, or is named in an error."""

from __future__ import annotations

from math import isfinite
from typing import Any

from ..errors import FormatError


class Terms(dict[str, Any]):
    """A part of a model's configuration."""

    def __missing__(self, name: str) -> Any:
        raise FormatError(f"the model's configuration lacks {name!r}")

    def count(
        self, name: str, default: int | None = None, least: int = 1, most: int = 1 << 30
    ) -> int:
        """A whole number in bounds; `default`, if given, where it is absent or null."""
        found = self.get(name)
        if found is None:
            found = self[name] if default is None else default
        if isinstance(found, bool) or not isinstance(found, int) or not least <= found <= most:
            raise FormatError(
                f"the model's configuration has {name}={found!r}, must be an integer from {least} "
                f"to {most}"
            )
        return found

    def number(self, name: str, default: float | None = None) -> float:
        """A number; `default`, if given, where the setting is absent or null."""
        found = self.get(name)
        if found is None:
            found = self[name] if default is None else default
        if isinstance(found, bool) or not isinstance(found, (int, float)) or not isfinite(found):
            raise FormatError(f"the model's configuration has {name}={found!r}, must be a number")
        return float(found)

    def items_of(self, name: str) -> list[Any]:
        """A list; empty where the setting is absent or null."""
        found = self.get(name)
        if found is not None and not isinstance(found, list):
            raise FormatError(f"the model's configuration has {name}={found!r}, must be a list")
        return found or []

    def numbers(self, name: str) -> tuple[float, ...]:
        """A list of numbers; empty where the setting is absent or null."""
        parts = Terms({f"{name}[{i}]": item for i, item in enumerate(self.items_of(name))})
        return tuple(parts.number(part) for part in parts)

    def part(self, name: str) -> Terms:
        """Settings inside of settings; none where they are absent or null."""
        found = self.get(name)
        if found is not None and not isinstance(found, dict):
            raise FormatError(f"the model's configuration has {name}={found!r}, must be an object")
        return Terms(found or {})
