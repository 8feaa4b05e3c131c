"""What an operator declares, and how it is found by name.

An operator is a class in `webgpu_py/ops/<family>.py` with the decorator
`@operator("aten.add.Tensor(a, b, alpha=1) -> out")`. The signature names the arguments in
ExecuTorch's order: `=literal` marks one that may be absent or Null, `!` one written in place.
`-> out` is one tensor, `-> [a, b]` a ValueList of tensors, `-> symint out` a SymInt.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from ..errors import UnsupportedOperator
from .values import TensorSpec

if TYPE_CHECKING:
    from .call import Call
    from .lowering import Lowering

ResultKind = Literal["tensor", "list", "symint"]

_SIGNATURE = re.compile(r"^([\w.]+)\((.*)\) -> (symint )?(\[?)([\w, ]+)\]?$")
_DECLARED = re.compile(r"@operator\(\s*((?:\"[^\"]+\",?\s*)+)\)")


@dataclass(frozen=True, slots=True)
class Argument:
    """One declared argument."""

    name: str
    optional: bool = False
    default: Any = None
    mutated: bool = False


@dataclass(frozen=True, slots=True)
class Signature:
    """A parsed operator signature."""

    name: str
    arguments: tuple[Argument, ...]
    results: tuple[str, ...]
    kind: ResultKind
    positions: Mapping[str, int]


def parse_signature(text: str) -> Signature:
    """Signature of `"name(a, b=1, cache!) -> out"`."""
    match = _SIGNATURE.match(text)
    if not match:
        raise ValueError(f"operator signature {text!r} is not 'name(args) -> result'")
    name, body, symint, bracket, results = match.groups()
    arguments = []
    for part in filter(None, (p.strip() for p in body.split(","))):
        stem, _, default = part.partition("=")
        arguments.append(
            Argument(
                stem.rstrip("!"),
                bool(default),
                ast.literal_eval(default) if default else None,
                stem.endswith("!"),
            )
        )
    kind: ResultKind = "symint" if symint else "list" if bracket else "tensor"
    positions = {a.name: at for at, a in enumerate(arguments)}
    names = tuple(r.strip() for r in results.split(","))
    return Signature(name, tuple(arguments), names, kind, positions)


class Operator:
    """Base of all operators; an instance serves one operator name.

    `alias` marks flat copies: the result has the input's bytes, so the planner may let both share
    a buffer and drop the dispatch. `once` marks work on constants that is done at build only.
    `joins` marks a result whose bytes are those of the inputs one after the other: the planner
    lets them lie in its buffer.
    """

    alias: ClassVar[bool] = False
    once: ClassVar[bool] = False
    joins: ClassVar[bool] = False

    def __init__(self, signature: Signature) -> None:
        self.signature = signature
        self.name = signature.name

    def infer(self, call: Call) -> Sequence[TensorSpec]:
        """Checks of the arguments, and the results' specs for their (maximal or live) dims."""
        raise NotImplementedError

    def evaluate(self, call: Call) -> int:
        """The value of a SymInt result; operators of kind `symint` only."""
        raise NotImplementedError

    def lower(self, call: Call, out: Lowering) -> None:
        """Dispatches for the call's live dims; the kernel choice is a pure function of them."""
        raise NotImplementedError

    def reference(self, call: Call, **tensors: Any) -> Any:
        """The results by a second route in float64, from tensors by argument name.

        Optional tensors arrive as None, lists as lists; mutated ones are changed in place.
        The caller casts to the results' dtypes.
        """
        raise NotImplementedError


T = TypeVar("T", bound=type[Operator])
_OPERATORS: dict[str, Operator] = {}


def operator(*signatures: str) -> Callable[[T], T]:
    """Register a class for one or more operator names."""

    def register(cls: T) -> T:
        for text in signatures:
            signature = parse_signature(text)
            _OPERATORS[signature.name] = cls(signature)
        return cls

    return register


def register(made: Operator) -> None:
    """Make a user's operator known; one the user declared before under that name is replaced."""
    if "." not in made.name or made.name in operator_index():
        raise UnsupportedOperator(
            f"{made.name!r} can't be declared: a name of your own has a namespace that this "
            "package does not use, as in 'my.op'"
        )
    _OPERATORS[made.name] = made


@cache
def operator_index() -> dict[str, str]:
    """Operator name -> module in `webgpu_py.ops`, read from the decorators' text.

    Importing forty modules costs half a second in a browser; a program needs a handful.
    """
    index: dict[str, str] = {}
    for entry in resources.files("webgpu_py.ops").iterdir():
        if not entry.name.endswith(".py"):
            continue
        for group in _DECLARED.findall(entry.read_text(encoding="utf-8")):
            for signature in ast.literal_eval(f"({group.rstrip().rstrip(',')},)"):
                index[signature.partition("(")[0]] = entry.name.removesuffix(".py")
    return index


def find_operator(name: str) -> Operator:
    """The operator of that name; UnsupportedOperator when there is none."""
    if name not in _OPERATORS:
        module = operator_index().get(name)
        if module is None:
            known = {**operator_index(), **_OPERATORS}
            near = "".join(f", {like!r} among them" for like in get_close_matches(name, known, 1))
            raise UnsupportedOperator(
                f"unsupported op: {name}; {len(known)} names are known{near}, "
                "see webgpu_py.operator_names()"
            )
        importlib.import_module(f"webgpu_py.ops.{module}")
    return _OPERATORS[name]


def operator_names() -> list[str]:
    """Every operator name this package runs, sorted."""
    return sorted({*operator_index(), *_OPERATORS})
