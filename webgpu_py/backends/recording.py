"""An executor that writes down what it is asked, and computes on NumPy: for tests on CPython."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .cpu import CpuBridge

RECORDED = (
    "create_buffers",
    "write",
    "upload",
    "read",
    "create_pipelines",
    "load_plan",
    "run",
    "profile",
    "destroy_plan",
    "destroy_buffers",
)


class RecordingBridge(CpuBridge):
    """A CpuBridge whose `calls` lists (name, arguments) in order."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        for name in RECORDED:
            setattr(self, name, self._recorded(name, getattr(self, name)))

    def _recorded(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            self.calls.append((name, args))
            return method(*args)

        return call

    def count(self, name: str) -> int:
        """How often a call was made."""
        return sum(1 for called, _ in self.calls if called == name)
