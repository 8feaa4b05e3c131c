"""Runs a test's Python in the worker and packs what came of it."""

import textwrap

from pyodide.code import eval_code_async
from pyodide.ffi import JsProxy

from webgpu_py import transfer


async def run(code, payload):
    names = {"__name__": "__main__", **transfer.unpack(payload)}
    try:
        result = await eval_code_async(textwrap.dedent(code), names)
        return transfer.pack_result(result.to_py() if isinstance(result, JsProxy) else result)
    except BaseException as error:
        return transfer.pack_error(error)
