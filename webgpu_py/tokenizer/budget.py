"""What a chat template may spend: one count of bytes for time and memory together.

Templates come with models, so they are as trusted as any download. Every loop round, call and
operator costs `TICK`, every value that is made or looked through costs its size, and the sum is
bounded: a template can neither run for ever nor fill memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from jinja2.exceptions import SecurityError
from jinja2.utils import Namespace

from ..errors import LimitExceeded

TICK = 256
PART = 64
MAX_DEPTH = 12
MAX_CONTAINERS = 40
MAX_INT_BITS = 256
PLAIN = 16 << 20
"""Allowed before the size of the messages counts: 65,536 steps or 16 MiB."""
PER_INPUT_BYTE = 64


class Budget:
    """What is left to one rendering."""

    def __init__(self, input_bytes: int) -> None:
        self.limit = PLAIN + PER_INPUT_BYTE * input_bytes
        self.left = self.limit
        self.depth = 0
        # Containers cannot change here, so each is measured once; kept so that no id is reused.
        self._measured: dict[int, tuple[Any, int, int]] = {}

    def charge(self, nbytes: int) -> None:
        """Spend; LimitExceeded when nothing is left, before the thing is made."""
        self.left -= nbytes
        if self.left < 0:
            raise LimitExceeded(
                f"spent more than the {self.limit} bytes of work that these "
                "messages allow — it loops or builds text without end; use another template"
            )

    def enter(self) -> None:
        """Begin a call inside a call."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise LimitExceeded(
                f"calls nested deeper than {MAX_DEPTH} — a macro calls itself without end; "
                "use another template"
            )

    def size(self, value: Any) -> int:
        """Bytes of a value when written out: shared parts count each time they would be seen.

        Namespaces can change and hold themselves, so they are refused inside of containers.
        """
        if isinstance(value, str):
            return 4 * len(value)
        return self._measure(value)[1] if isinstance(value, list | tuple | dict) else 8

    def _measure(self, value: Any) -> tuple[Any, int, int]:
        """A container itself, its size, and how deep others are nested in it."""
        known = self._measured.get(id(value))
        if known is None:
            parts = (*value.keys(), *value.values()) if isinstance(value, dict) else value
            total, deepest = TICK, 0
            for part in parts:
                if isinstance(part, Namespace):
                    raise SecurityError("a namespace cannot be put into a list")
                total += PART + self.size(part)
                if isinstance(part, list | tuple | dict):
                    deepest = max(deepest, self._measured[id(part)][2])
            if deepest >= MAX_CONTAINERS:
                raise LimitExceeded(f"lists nested deeper than {MAX_CONTAINERS}")
            self._measured[id(value)] = known = (value, total, deepest + 1)
        return known

    def charge_for(self, *values: Any) -> None:
        """Spend the size of each value."""
        for value in values:
            self.charge(self.size(value))


_current: ContextVar[Budget | None] = ContextVar("template_budget", default=None)


def current() -> Budget:
    """The budget of the rendering that goes on; a small one while a template is compiled."""
    budget = _current.get()
    return Budget(0) if budget is None else budget


@contextmanager
def spending(inputs: dict[str, Any]) -> Iterator[Budget]:
    """A budget for a rendering of `inputs`, current inside of the block."""
    budget = Budget(Budget(0).size(inputs))
    token = _current.set(budget)
    try:
        yield budget
    finally:
        _current.reset(token)
