"""ExecuTorch's CPU operators on NumPy: what a program runs outside its delegates.

A kernel is a pure function of its schema's arguments in order (out arguments included, as arrays
of their bound) that returns the result, or a tuple of results; the program stores them.
`aten::copy_(self, src)` returns self's new content. Kernels are found by name in this folder's
`@kernel("aten::add.out")` decorators, and imported when first used.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from functools import cache
from importlib import resources
from typing import Any, TypeVar

Kernel = Callable[..., Any]

_DECLARED = re.compile(r"@kernel\(((?:\s*\"[^\"]+\",?)+)\s*\)")
_KERNELS: dict[str, Kernel] = {}

F = TypeVar("F", bound=Kernel)


def kernel(*names: str) -> Callable[[F], F]:
    """Register a function under ExecuTorch's names, `namespace::op.overload`."""

    def register(function: F) -> F:
        _KERNELS.update(dict.fromkeys(names, function))
        return function

    return register


@cache
def kernel_index() -> dict[str, str]:
    """Kernel name -> module in this folder."""
    found: dict[str, str] = {}
    for entry in resources.files(__name__).iterdir():
        if entry.name.endswith(".py"):
            for group in _DECLARED.findall(entry.read_text(encoding="utf-8")):
                names = re.findall(r'"([^"]+)"', group)
                found.update(dict.fromkeys(names, entry.name.removesuffix(".py")))
    return found


def find_kernel(name: str) -> Kernel | None:
    """The kernel of that name, or None."""
    if name not in _KERNELS:
        module = kernel_index().get(name)
        if module is None:
            return None
        importlib.import_module(f"{__name__}.{module}")
    return _KERNELS[name]
