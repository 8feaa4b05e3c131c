"""Runs a test's Python in the worker and packs what came of it; `worker.js` puts it there."""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import Any

from webgpu_py import transfer


async def run(code: str, payload: Any) -> bytes:
    """The packed value of the last expression of `code`, or the packed error."""
    names = {"__name__": "__main__", **transfer.unpack(payload)}
    try:
        result = await _evaluated(textwrap.dedent(code), names)
        # What came from JavaScript is converted by its own proxy.
        return transfer.pack_result(result.to_py() if hasattr(result, "to_py") else result)
    except BaseException as error:
        return transfer.pack_error(error)


async def _evaluated(code: str, names: dict[str, Any]) -> Any:
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    await _step(compile(tree, "<test>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
    if not isinstance(last, ast.Expr):
        return None
    expression = ast.Expression(last.value)
    return await _step(compile(expression, "<test>", "eval", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)


async def _step(code: Any, names: dict[str, Any]) -> Any:
    value = eval(code, names)
    return (
        await value
        if inspect.iscoroutine(value) and code.co_flags & inspect.CO_COROUTINE
        else value
    )
