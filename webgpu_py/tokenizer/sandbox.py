"""Jinja's sandbox with bounds: allow-lists of filters, tests and methods, and a `Budget`.

Jinja's own sandbox keeps a template away from Python, but not from `'a'.ljust(10**9)` or endless
loops. Here the parsed template is rewritten before it is compiled, so that loop rounds, joined
text, containers and comparisons are charged, and calls, operators and filters charge themselves.
"""

from __future__ import annotations

from collections.abc import ItemsView, KeysView, ValuesView
from types import BuiltinFunctionType
from typing import Any

from jinja2 import Environment, nodes
from jinja2.exceptions import SecurityError, TemplateAssertionError
from jinja2.ext import Extension, LoopControlExtension
from jinja2.parser import Parser
from jinja2.runtime import Context, LoopContext, Macro, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

from .budget import MAX_INT_BITS, TICK, current
from .template_functions import (
    METHODS,
    bounded_range,
    charge_method,
    charged_filter,
    charged_test,
    checked,
    indent,
    raise_exception,
    strftime_now,
    to_json,
)

FILTERS = (
    "abs capitalize count d default dictsort first float int items join last length list lower "
    "map max min reject rejectattr replace reverse select selectattr sort string title trim "
    "unique upper wordcount"
).split()
TESTS = (
    "== != boolean defined divisibleby eq equalto even false float ge gt in integer iterable le "
    "lower lt mapping ne none number odd sequence string true undefined upper"
).split()
MAX_NODES = 6000
MAX_TREE_DEPTH = 40
MAX_WORDS = 600
REFUSED = (
    nodes.Block,
    nodes.EvalContextModifier,
    nodes.Extends,
    nodes.FromImport,
    nodes.Import,
    nodes.Include,
    nodes.ScopedEvalContextModifier,
)


class GenerationTag(Extension):
    """`{% generation %}`, which marks the model's own text for training: its body as it is."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """The statements up to `{% endgeneration %}`."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class BoundedEnvironment(ImmutableSandboxedEnvironment):
    """The environment that chat templates are compiled and run in."""

    intercepted_binops = frozenset(("+", "-", "*", "/", "//", "%", "**"))

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            optimized=False,
            finalize=self.looked,
            extensions=[LoopControlExtension, GenerationTag],
        )
        filters = {name: self.filters[name] for name in FILTERS}
        filters |= {"tojson": to_json, "indent": indent, "safe": lambda value: value}
        self.filters = {name: charged_filter(name, run) for name, run in filters.items()}
        self.tests = {name: charged_test(self.tests[name]) for name in TESTS}
        self.globals = {
            "range": bounded_range,
            "dict": dict,
            "namespace": Namespace,
            "raise_exception": raise_exception,
            "strftime_now": strftime_now,
        }

    def compile_bounded(self, source: str) -> Any:
        """A template of `source` with every cost in it made visible."""
        self._check_expressions(source)
        tree = self.parse(source)
        check_extent(tree)
        tree = _Charges(self).visit(tree)
        code = self.compile(tree, filename="<template>")
        return self.template_class.from_code(self, code, self.make_globals(None))

    def _check_expressions(self, source: str) -> None:
        """Refuse expressions so long that even freeing their tree recurses too deep."""
        words = 0
        for line, kind, _ in self.lex(source):
            words = 0 if kind in ("variable_begin", "block_begin") else words + 1
            if words > MAX_WORDS:
                raise TemplateAssertionError(f"an expression of more than {MAX_WORDS} words", line)

    def looked(self, value: Any = None) -> Any:
        """`value`, charged for being written out or compared."""
        if isinstance(value, Namespace):
            raise SecurityError("a namespace cannot be written out or compared")
        current().charge_for(value)
        return value

    def counted(self, items: Any) -> Any:
        """`items`, charged for being looped over, whatever the loop's condition lets through."""
        if hasattr(items, "__len__"):
            current().charge(TICK // 2 * len(items))
        return items

    def round(self, static_bytes: int) -> None:
        """The charge of a loop round or macro body with its fixed text."""
        current().charge(TICK + static_bytes)

    def joined(self, *parts: Any) -> str:
        """What `~` does."""
        return "".join(str(self.looked(part)) for part in parts)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Only listed methods of plain values; no attribute with an underscore in front."""
        listed = METHODS.get(type(obj))
        if listed is not None and callable(value):
            return attr in listed
        if isinstance(obj, LoopContext | Namespace) or listed is not None:
            return not attr.startswith("_")
        return False

    def getitem(self, obj: Any, argument: Any) -> Any:
        """`obj[argument]`; hashing a tuple costs its size."""
        if isinstance(argument, tuple):
            current().charge_for(argument)
        return super().getitem(obj, argument)

    def call(self, context: Context, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Call what may be called, charged for its arguments and its result."""
        if getattr(function, "__self__", None) is self:
            return function(*args)
        budget = current()
        budget.charge(TICK)
        budget.charge_for(*args, *(kwargs[key] for key in kwargs if not key.startswith("_")))
        if isinstance(function, BuiltinFunctionType):
            charge_method(function, args)
        elif not (
            isinstance(function, Macro | LoopContext | Undefined)
            or isinstance(getattr(function, "__self__", None), LoopContext)
            or any(function is known for known in self.globals.values())
        ):
            raise SecurityError(f"{function!r} cannot be called in a chat template")
        budget.enter()
        try:
            result = super().call(context, function, *args, **kwargs)
        finally:
            budget.depth -= 1
        # A view would be written out at its dictionary's size without showing it.
        result = list(result) if isinstance(result, KeysView | ItemsView | ValuesView) else result
        budget.charge_for(result)
        return result

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Operators, charged for their result before it is made."""
        budget = current()
        budget.charge(TICK)
        sequences = [value for value in (left, right) if isinstance(value, str | list | tuple)]
        if operator == "+":
            budget.charge_for(*sequences)
        elif operator == "*" and sequences:
            times = right if left is sequences[0] else left
            budget.charge(budget.size(sequences[0]) * max(0, int(times)))
        elif sequences:
            raise SecurityError(f"{operator} is not for text or lists in a chat template")
        elif operator == "**" and (abs(right) > MAX_INT_BITS or abs(left) > 2**32):
            raise SecurityError(f"{left} ** {right} is out of bounds in a chat template")
        return checked(super().call_binop(context, operator, left, right))


def check_extent(tree: nodes.Template) -> None:
    """Refuse trees that are too large or too deep, before anything recurses into them.

    In a browser a deep recursion is not an exception but the end of the interpreter.
    """
    count = 0
    rest: list[tuple[nodes.Node, int]] = [(tree, 0)]
    while rest:
        node, depth = rest.pop()
        count += 1
        if count > MAX_NODES or depth > MAX_TREE_DEPTH:
            raise TemplateAssertionError(
                f"more than {MAX_NODES} parts, or parts nested deeper than {MAX_TREE_DEPTH}",
                node.lineno,
            )
        rest.extend((child, depth + 1) for child in node.iter_child_nodes())


class _Charges(NodeTransformer):
    """Writes calls to `looked`, `round` and `joined` into a parsed template."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def visit(self, node: nodes.Node, *args: Any, **kwargs: Any) -> Any:
        if isinstance(node, REFUSED):
            raise TemplateAssertionError(
                f"{{% {type(node).__name__.lower()} %}} has no place in a chat template",
                node.lineno,
            )
        return super().visit(node, *args, **kwargs)

    def _call(self, name: str, *args: Any, lineno: int) -> nodes.Call:
        function = nodes.EnvironmentAttribute(name)
        call = nodes.Call(function, list(args), [], None, None)
        call.set_lineno(lineno, override=True)
        call.set_environment(self._environment)
        return call

    def _body(self, node: Any) -> Any:
        """Charge each run of a body, for the text that stands in it too."""
        static = sum(len(data.data) for data in node.find_all(nodes.TemplateData))
        constants = (const.value for const in node.find_all(nodes.Const))
        static += sum(len(value) for value in constants if isinstance(value, str))
        self.generic_visit(node)
        charge = nodes.ExprStmt(self._call("round", nodes.Const(4 * static), lineno=node.lineno))
        node.body.insert(0, charge.set_lineno(node.lineno))
        return node

    visit_Macro = visit_CallBlock = _body  # noqa: N815

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802
        self._body(node)
        node.iter = self._call("counted", node.iter, lineno=node.lineno)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return self._call("joined", *node.nodes, lineno=node.lineno)

    def _looked(self, node: Any) -> nodes.Node:
        self.generic_visit(node)
        return self._call("looked", node, lineno=node.lineno)

    visit_List = visit_Dict = _looked  # noqa: N815

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Node:  # noqa: N802
        if node.ctx == "load":
            return self._looked(node)
        self.generic_visit(node)
        return node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:  # noqa: N802
        if isinstance(node.arg, nodes.Slice):
            return self._looked(node)
        self.generic_visit(node)
        return node

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        node.expr = self._call("looked", node.expr, lineno=node.lineno)
        for operand in node.ops:
            operand.expr = self._call("looked", operand.expr, lineno=node.lineno)
        return node
