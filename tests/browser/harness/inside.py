"""Runs a test's Python in the worker and packs what came of it."""

import textwrap
import traceback

import transfer
from pyodide.code import eval_code_async
from pyodide.ffi import JsProxy


async def run(code, payload):
    names = {"__name__": "__main__", **transfer.unpack(payload.to_bytes())}
    try:
        result = await eval_code_async(textwrap.dedent(code), names)
        if isinstance(result, JsProxy):
            result = result.to_py()
        return transfer.pack({"result": result})
    except BaseException as error:
        return transfer.pack({"error": described(error)})


def described(error):
    return {
        "type": type(error).__name__,
        "code": getattr(error, "code", None),
        "message": str(error),
        "traceback": "".join(traceback.format_exception(error)),
    }
