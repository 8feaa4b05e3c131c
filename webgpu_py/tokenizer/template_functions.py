"""What a chat template may call, each charged to the `Budget` for what it looks at and makes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from jinja2 import pass_context
from jinja2.exceptions import SecurityError, TemplateRuntimeError
from jinja2.runtime import Context

from .budget import MAX_INT_BITS, TICK, current

STRING_METHODS = frozenset(
    "capitalize casefold count endswith find index isalnum isalpha isdecimal isdigit islower "
    "isnumeric isspace istitle isupper join lower lstrip partition removeprefix removesuffix "
    "replace rfind rindex rpartition rsplit rstrip split splitlines startswith strip swapcase "
    "title upper".split()
)
METHODS: dict[type, frozenset[str]] = {
    str: STRING_METHODS,
    dict: frozenset(("get", "items", "keys", "values")),
    list: frozenset(("count", "index")),
    tuple: frozenset(("count", "index")),
}
SORT_COST = 16
MAX_RANGE = 10_000
MAX_INDENT = 16


def checked(value: Any) -> Any:
    """`value`, unless it is a number too long to be meant."""
    if isinstance(value, int) and value.bit_length() > MAX_INT_BITS:
        raise SecurityError(f"a number of {value.bit_length()} bits is out of bounds")
    return value


def charge_method(method: Any, args: tuple[Any, ...]) -> None:
    """The cost of a method of a plain value, before it is called."""
    owner, name = method.__self__, method.__name__
    if name not in METHODS.get(type(owner), ()):
        raise SecurityError(f"{name} cannot be called in a chat template")
    budget = current()
    budget.charge_for(owner)
    if name == "replace":
        charge_replace(owner, *args[:2])
    elif name == "join":
        charge_join(args[0], owner)
    elif name in ("split", "rsplit", "splitlines"):
        pieces = owner.count(args[0]) if args and isinstance(args[0], str) else len(owner) // 2
        budget.charge(TICK * (pieces + 1))


def charge_replace(text: str, old: str = "", new: str = "") -> None:
    """The cost of `text.replace(old, new)`."""
    current().charge(4 * str(text).count(old) * len(new))


def charge_join(items: Any, glue: str = "") -> None:
    """The cost of `glue.join(items)`."""
    current().charge(4 * len(glue) * len(items) if hasattr(items, "__len__") else 0)


def charged_filter(name: str, run: Any) -> Callable[..., Any]:
    """A filter that spends the size of its arguments and of its result, and gives no generator."""
    given = getattr(run, "jinja_pass_arg", None)

    @pass_context
    def charged(context: Context, value: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(value, Iterator):
            value = list(value)
        budget = current()
        budget.charge(TICK)
        budget.charge_for(value, *args, *kwargs.values())
        if name in ("sort", "dictsort", "unique"):
            budget.charge(SORT_COST * budget.size(value))
        elif name == "replace":
            charge_replace(value, *args[:2], **kwargs)
        elif name == "join":
            charge_join(value, *args[:1])
        first = {
            "context": (context,),
            "eval_context": (context.eval_ctx,),
            "environment": (context.environment,),
        }.get(given.name if given else "", ())
        result = run(*first, value, *args, **kwargs)
        result = list(result) if isinstance(result, Iterator) else checked(result)
        budget.charge_for(result)
        return result

    return charged


def charged_test(run: Any) -> Callable[..., bool]:
    """A test that spends the size of its arguments."""

    def charged(*args: Any) -> bool:
        budget = current()
        budget.charge(TICK)
        budget.charge_for(*args)
        return bool(run(*args))

    return charged


def to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON as `transformers` writes it: no HTML escapes."""
    if isinstance(indent, int) and not 0 <= indent <= MAX_INDENT:
        raise SecurityError(f"tojson with indent {indent}, at most {MAX_INDENT} is allowed")
    indent = None if indent is None else int(indent)
    return json.dumps(
        value,
        ensure_ascii=bool(ensure_ascii),
        indent=indent,
        separators=separators,
        sort_keys=bool(sort_keys),
    )


def indent(text: str, width: int = 4, first: bool = False, blank: bool = False) -> str:
    """Each line after the first (or from it) moved by `width` spaces."""
    if not 0 <= int(width) <= MAX_INDENT:
        raise SecurityError(f"indent by {width}, at most {MAX_INDENT} is allowed")
    margin = " " * int(width)
    lines = str(text).split("\n")
    moved = [margin + line if line or blank else line for line in lines[1:]]
    return "\n".join([margin + lines[0] if first else lines[0], *moved])


def bounded_range(*args: int) -> range:
    """Python's `range`, of a bounded length."""
    made = range(*args)
    if len(made) > MAX_RANGE:
        raise SecurityError(f"range of {len(made)}, at most {MAX_RANGE} is allowed")
    return made


class Refusal(TemplateRuntimeError):
    """What a template says about messages that it does not take."""


def raise_exception(message: str) -> None:
    """How a template refuses messages."""
    raise Refusal(str(message)[:500])


def strftime_now(form: str) -> str:
    """The local time in `strftime` form."""
    if len(form) > 100 or re.search(r"%[^a-zA-Z%]", form):
        raise SecurityError(f"strftime_now({form[:100]!r}) is out of bounds in a chat template")
    return datetime.now().strftime(form)
